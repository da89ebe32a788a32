import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CLIENT_IDS } from "../../src/clients/agent-client.ts";
import { CLIENTS } from "../../src/clients/clients.ts";
import type { ClientStatus } from "../../src/cli/commands/connect.ts";
import { giveFile, PLAIN_SECRET, textOf } from "./client-files.ts";
import { workspace } from "./run-cli.ts";

interface Imported {
  readonly added: readonly string[];
  readonly skipped: readonly string[];
  readonly leftOut: readonly string[];
  readonly credentials: readonly unknown[];
}

describe("[skill-14b] clients", () => {
  it("shows every client, which are installed, what they have and whether Toolcrib is among it", async () => {
    const place = workspace();
    const cursor = giveFile(place, "cursor");
    for (const client of ["codex", "goose", "continue", "openclaw", "zed"] as const) giveFile(place, client);
    mkdirSync(join(place.home, ".gemini"));
    await place.runHere(["connect", "codex"]);

    const { code, stdout, stderr } = await place.run(["clients", "--json"]);
    expect([code, stderr]).toEqual([0, ""]);
    const seen = JSON.parse(stdout) as ClientStatus[];
    expect(seen.map(({ id }) => id)).toEqual([...CLIENT_IDS]);
    const by = Object.fromEntries(seen.map((client) => [client.id, client]));
    expect(by["cursor"]).toEqual({
      id: "cursor",
      name: "Cursor",
      installed: true,
      files: [
        { scope: "user", path: cursor, exists: true },
        { scope: "project", path: join(place.dir, ".cursor/mcp.json"), exists: false },
      ],
      servers: ["github", "docs"],
      connected: false,
      via: [],
      lastCall: null,
    });
    expect(by["codex"]).toMatchObject({ installed: true, servers: ["memory", "toolcrib"], connected: true });
    expect(by["codex"]?.via).toEqual([{ server: "toolcrib", by: "bridge" }]);
    expect(by["goose"]).toMatchObject({ servers: ["memory"] });
    expect(by["continue"]).toMatchObject({ servers: ["memory"] });
    expect(by["openclaw"]).toMatchObject({ servers: ["memory"] });
    expect(by["zed"]).toMatchObject({ installed: true, servers: [] });
    expect(by["gemini-cli"]).toMatchObject({ installed: true, servers: [], connected: false });
    expect(by["amp"]).toMatchObject({ installed: false, servers: [] });
    expect(stdout).not.toContain(PLAIN_SECRET);
  });

  it("prints a table, and names files that cannot be read with their line", async () => {
    const place = workspace();
    giveFile(place, "cursor");
    const codex = giveFile(place, "codex", "[mcp_servers.x]\ncommand = \n");
    const { code, stdout, stderr } = await place.runHere(["clients"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^cursor +Cursor +yes +- +- +github, docs +.*\.cursor\/mcp\.json$/m);
    expect(stdout).toMatch(/^codex +\S.* yes .*\(cannot be read\)$/m);
    expect(stdout).toMatch(/^amp +\S+ +no /m);
    const installed = [...stdout.matchAll(/^\S+ .*? {2}(yes|no) {2}/gm)].map(([, word]) => word);
    expect(installed).toEqual(installed.toSorted().toReversed());
    expect(installed).toHaveLength(CLIENT_IDS.length);
    expect(stderr).toContain(`warning: ${codex}:2:`);
    expect(stdout + stderr).not.toContain(PLAIN_SECRET);
    const seen = (await place.runHere(["clients", "--json"])).json<ClientStatus[]>();
    expect(seen.find(({ id }) => id === "codex")).toMatchObject({
      problem: expect.stringContaining(`${codex}:2:`),
      servers: [],
    });
  });
});

describe("docs/clients.md", () => {
  it("names the files of every client", () => {
    const docs = textOf(join(import.meta.dirname, "../../docs/clients.md"));
    const place = { platform: "linux", home: "~", env: {}, projectDir: "." } as const;
    for (const client of CLIENTS) {
      const row = docs.split("\n").find((line) => line.startsWith(`| \`${client.id}\` |`)) ?? "";
      for (const scope of ["user", "project"] as const) {
        const first = client.files(place).find((file) => file.scope === scope);
        expect(row).toContain(first === undefined ? "| – |" : `\`${first.path}\``);
      }
      const words = (["http", "sse"] as const)
        .filter((transport) => client.write("x", { url: "http://127.0.0.1/mcp", transport }) !== undefined)
        .map((transport) => transport.toUpperCase());
      expect(row).toMatch(new RegExp(`\\| ${words.join(", ") || "no"} \\|$`));
    }
  });
});

describe("[skill-14c] import of a client", () => {
  it("brings its servers in, without doubles, and tells of secrets without showing them", async () => {
    const place = workspace();
    giveFile(place, "cursor");
    mkdirSync(join(place.dir, ".cursor"));
    writeFileSync(
      join(place.dir, ".cursor/mcp.json"),
      JSON.stringify({
        mcpServers: {
          docs: { url: "https://docs.example/mcp", headers: { "X-Team": "blue" } },
          again: { url: "https://docs.example/mcp", headers: { "X-Team": "blue" } },
          here: { command: "run", args: ["${workspaceFolder}/data", "${env:MODE}"] },
        },
      }),
    );
    const { code, stdout, stderr } = await place.run(["import", "cursor", "--scope", "project", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      source: "cursor",
      added: ["docs", "here", "github"],
      skipped: ["again"],
      credentials: [{ server: "github", key: "env.GITHUB_TOKEN", name: "GITHUB_TOKEN" }],
    });
    expect(stderr).toMatch(/warning: github: env\.GITHUB_TOKEN .*plain text.*toolcrib secrets set GITHUB_TOKEN/);
    expect(stdout + stderr).not.toContain(PLAIN_SECRET);
    const config = JSON.parse(textOf(join(place.home, "toolcrib.json"))) as { mcpServers: Record<string, unknown> };
    expect(config.mcpServers["here"]).toEqual({ command: "run", args: [`${place.dir}/data`, "${MODE}"] });

    const again = await place.runHere(["import", "cursor", "--scope", "project", "--json"]);
    expect(again.json<Imported>()).toMatchObject({ added: [], credentials: [] });
    expect(again.json<Imported>().skipped.toSorted()).toEqual(["again", "docs", "github", "here"]);
  });

  it("in the home, says nothing of files of the project, which are the user's there", async () => {
    const place = workspace();
    giveFile(place, "cursor");
    const { code, stderr } = await place.runHere(["import", "cursor"], { cwd: place.home });
    expect(code).toBe(0);
    expect(stderr).not.toContain("Skipped");
  });

  it("[trust-01j] takes what belongs to the folder only when asked to", async () => {
    const place = workspace();
    giveFile(place, "cursor");
    mkdirSync(join(place.dir, ".cursor"));
    const ofFolder = join(place.dir, ".cursor/mcp.json");
    writeFileSync(ofFolder, JSON.stringify({ mcpServers: { planted: { command: "run" } } }));
    const { stdout, stderr } = await place.run(["import", "cursor"]);
    expect(stdout).not.toContain("planted");
    expect(stderr).toContain(
      `Skipped ${ofFolder}, because it belongs to this folder. Use --scope project to import it.`,
    );
    expect(textOf(join(place.home, "toolcrib.json"))).not.toContain("planted");
  });

  it("takes a server that the config has under another id for the same", async () => {
    const place = workspace();
    giveFile(place, "continue");
    place.configure({ remember: { command: "npx", args: ["-y", "mem"] } });
    const { stdout } = await place.runHere(["import", "continue"]);
    expect(stdout).toContain("remember  already present (memory in the source)");
  });

  it("never imports Toolcrib into itself", async () => {
    const place = workspace();
    giveFile(place, "codex");
    place.configure({ memory: { command: "npx", args: ["-y", "other"] } });
    await place.runHere(["connect", "codex"]);
    await place.runHere(["connect", "codex", "--server", "memory", "--force"]);
    const { code, stdout, stderr } = await place.runHere(["import", "codex", "--json"]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { added: [], leftOut: ["memory", "toolcrib"] }]);
    expect(stderr).toContain("Toolcrib itself");
  });

  it.each(["codex", "goose", "continue", "openclaw", "claude-desktop"] as const)("reads the file of %s", async (id) => {
    const place = workspace();
    giveFile(place, id);
    const { code, stdout, stderr } = await place.runHere(["import", id, "--json"]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { added: ["memory"] }]);
    expect(JSON.parse(textOf(join(place.home, "toolcrib.json")))).toMatchObject({
      mcpServers: { memory: { command: "npx", args: ["-y", "mem"] } },
    });
    expect(stdout + stderr).not.toContain(PLAIN_SECRET);
  });

  it("says what is missing, broken or mistyped", async () => {
    const place = workspace();
    const none = await place.runHere(["import", "cursor"]);
    expect([none.code, none.stderr]).toMatchObject([
      1,
      expect.stringContaining("Cursor has no config file on this machine"),
    ]);
    expect(none.stderr).toContain(join(place.home, ".cursor/mcp.json"));
    giveFile(place, "zed");
    expect((await place.runHere(["import", "zed"])).stderr).toContain("Zed has no MCP servers");
    const broken = giveFile(place, "cursor", '{\n  "mcpServers": nope }');
    expect((await place.runHere(["import", "cursor"])).stderr).toContain(`${broken}:2:17`);
    const typo = await place.runHere(["import", "cursr"]);
    expect([typo.code, typo.stderr]).toMatchObject([1, expect.stringContaining("Did you mean cursor?")]);
  });
});
