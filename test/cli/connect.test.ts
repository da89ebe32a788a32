import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, it } from "vitest";
import { FILES, type FiledClient, giveFile, PLAIN_SECRET, TEXTS, textOf } from "./client-files.ts";
import { misbehaving, workspace } from "./run-cli.ts";
import { eventually } from "../support/eventually.ts";

interface ErrorOutput {
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

/** `.lock` and `.tmp` files would be litter. */
function litter(folder: string): string[] {
  return readdirSync(folder).filter((name) => /\.(?:lock|tmp)$/.test(name));
}

describe("[skill-14d] connect and disconnect", () => {
  it.each(Object.keys(FILES) as FiledClient[])("[skill-15a] [skill-15c] leave the file of %s as it was", async (id) => {
    const place = workspace();
    const path = giveFile(place, id);
    chmodSync(path, 0o640);
    const connected = await place.runHere(["connect", id]);
    expect([connected.code, connected.stderr]).toEqual([0, ""]);
    expect(connected.stdout).toContain(`Added toolcrib to ${path}`);
    const text = textOf(path);
    // All of the text before is still there, in its order.
    let at = 0;
    for (const line of TEXTS[id].split("\n").map((each) => each.trim().replace(/[,}\]]+$/, ""))) {
      const found = text.indexOf(line, at);
      expect([line, found]).not.toEqual([line, -1]);
      at = found;
    }
    expect(text).toContain("toolcrib.js");
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(textOf(`${path}.toolcrib-backup`)).toBe(TEXTS[id]);
    expect(statSync(`${path}.toolcrib-backup`).mode & 0o777).toBe(0o640);
    expect(litter(dirname(path))).toEqual([]);

    const again = await place.runHere(["connect", id]);
    expect([again.code, again.stdout]).toMatchObject([0, expect.stringContaining("already")]);
    expect(textOf(path)).toBe(text);

    const gone = await place.runHere(["disconnect", id]);
    expect([gone.code, gone.stderr]).toEqual([0, ""]);
    expect(textOf(path)).toBe(TEXTS[id]);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(existsSync(join(place.home, "clients.json"))).toBe(false);
  });

  it("write a command that a client can start, for the whole catalog and for one server", async () => {
    const place = workspace();
    place.configure({ one: misbehaving("ok"), two: misbehaving("ok") });
    const path = giveFile(place, "claude-desktop");
    expect((await place.run(["connect", "claude-desktop"])).code).toBe(0);
    expect((await place.run(["connect", "claude-desktop", "--server", "one"])).code).toBe(0);
    const { mcpServers } = JSON.parse(textOf(path)) as {
      mcpServers: Record<string, { command: string; args: string[]; env: Record<string, string> }>;
    };
    expect(Object.keys(mcpServers)).toEqual(["memory", "toolcrib", "one"]);
    for (const [id, tools] of [
      ["toolcrib", ["one__echo", "two__echo"]],
      ["one", ["echo"]],
    ] as const) {
      const entry = mcpServers[id];
      if (entry === undefined) throw new Error(`${id} is missing`);
      const client = new Client({ name: "test", version: "1" });
      await client.connect(new StdioClientTransport({ ...entry, cwd: "/" }));
      const names = await eventually(async () => {
        const listed = (await client.listTools()).tools.map(({ name }) => name);
        return tools.every((tool) => listed.includes(tool)) && listed;
      });
      expect(names.filter((name) => name.endsWith("echo")).toSorted()).toEqual(tools);
      await client.close();
    }
    expect((await place.run(["disconnect", "claude-desktop"])).code).toBe(0);
    expect(textOf(path)).toBe(TEXTS["claude-desktop"]);
  });

  it("write an address where the client can, and say so where it cannot", async () => {
    const place = workspace();
    const path = giveFile(place, "vscode");
    const url = "http://127.0.0.1:4700/mcp";
    expect((await place.runHere(["connect", "vscode", "--url", url, "--server", "a b"])).code).toBe(0);
    expect(JSON.parse(textOf(path))).toMatchObject({ servers: { "a b": { type: "http", url: `${url}?servers=a+b` } } });
    giveFile(place, "claude-desktop");
    const refused = await place.runHere(["connect", "claude-desktop", "--url", url, "--json"]);
    expect([refused.code, refused.json<ErrorOutput>().error]).toMatchObject([
      2,
      { code: "invalid_arguments", message: expect.stringContaining("Claude Desktop cannot") },
    ]);
    const secret = await place.runHere(["connect", "vscode", "--url", `${url}?token=${PLAIN_SECRET}`]);
    expect(secret.code).toBe(2);
    expect(secret.stderr).not.toContain(PLAIN_SECRET);
    expect((await place.runHere(["connect", "vscode", "--url", "file:///x"])).code).toBe(2);
  });

  it("use the project's file with --scope project", async () => {
    const place = workspace();
    const user = giveFile(place, "cursor");
    const made = await place.runHere(["connect", "cursor", "--scope", "project", "--json"]);
    const project = join(place.dir, ".cursor/mcp.json");
    expect(made.json()).toMatchObject({ client: "cursor", scope: "project", file: project, written: ["toolcrib"] });
    expect(statSync(project).mode & 0o777).toBe(0o600);
    expect(textOf(user)).toBe(TEXTS.cursor);
    const other = await place.runHere(["disconnect", "cursor"]);
    expect([other.code, other.stdout]).toMatchObject([
      0,
      expect.stringContaining("Nothing to change: toolcrib is not in"),
    ]);
    const gone = await place.runHere(["disconnect", "cursor", "--scope", "project"]);
    expect([gone.code, gone.stdout]).toEqual([0, expect.not.stringContaining("enable the server")]);
    expect(existsSync(join(place.dir, ".cursor"))).toBe(false);
    expect((await place.runHere(["connect", "cursor", "--scope", "team"])).code).toBe(2);
  });

  it("do not follow a link of the project out of it", async () => {
    const place = workspace();
    const { home: elsewhere } = workspace();
    symlinkSync(elsewhere, join(place.dir, ".cursor"));
    symlinkSync(join(elsewhere, "not-there-yet.json"), join(place.dir, ".mcp.json"));
    for (const client of ["cursor", "claude-code"]) {
      for (const more of [[], ["--dry-run"]]) {
        const { code, stderr } = await place.runHere(["connect", client, "--scope", "project", ...more]);
        expect([code, stderr]).toEqual([3, expect.stringContaining(`leads out of the project ${place.dir}`)]);
      }
    }
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it("show what would change with --dry-run, without secrets, and change nothing", async () => {
    const place = workspace();
    for (const client of ["cursor", "codex", "goose"] as const) {
      const path = giveFile(place, client);
      const dry = await place.runHere(["connect", client, "--dry-run"]);
      expect(dry.stdout).toMatch(/^\+ .*toolcrib/m);
      expect(textOf(path)).toBe(TEXTS[client]);
      expect(readdirSync(dirname(path))).not.toContain(`${path}.toolcrib-backup`);
      await place.runHere(["connect", client]);
      const back = await place.runHere(["disconnect", client, "--dry-run"]);
      expect(back.stdout).toMatch(/^- .*toolcrib/m);
      expect(textOf(path)).toContain("toolcrib.js");
      expect(dry.stdout + back.stdout).not.toContain(PLAIN_SECRET);
    }
    giveFile(place, "cursor", `{"mcpServers": {"github": {"command": "x", "env": {"ODD": "${PLAIN_SECRET}"}}}}`);
    const flat = await place.runHere(["connect", "cursor", "--dry-run", "--json"]);
    expect(flat.json()).toMatchObject({ dryRun: true, changed: true, written: ["toolcrib"] });
    expect(flat.stdout).not.toContain(PLAIN_SECRET);
  });

  it("refuse unknown clients and servers with what may be meant", async () => {
    const place = workspace();
    place.configure({ files: misbehaving("ok") });
    for (const [args, exit, message] of [
      [["connect", "cursr"], 2, "Did you mean cursor?"],
      [["connect", "Claude Desktop"], 2, "claude-desktop"],
      [["disconnect", "nothing-like-it"], 2, "claude-desktop, claude-code, cursor"],
      [["connect", "cursor", "--server", "file"], 1, "Did you mean files?"],
    ] as const) {
      const { code, stderr } = await place.runHere(args);
      expect([args, code, stderr]).toMatchObject([args, exit, expect.stringContaining(message)]);
    }
    expect(existsSync(join(place.home, ".cursor"))).toBe(false);
  });

  it("refuse an entry that is not Toolcrib's, replace it with --force, and bring it back", async () => {
    const place = workspace();
    place.configure({ github: misbehaving("ok") });
    const path = giveFile(place, "cursor");
    const refused = await place.runHere(["connect", "cursor", "--server", "github", "--json"]);
    expect([refused.code, refused.json<ErrorOutput>().error]).toMatchObject([
      1,
      { code: "conflict", hint: expect.stringContaining("--force") },
    ]);
    expect(textOf(path)).toBe(TEXTS.cursor);
    expect((await place.runHere(["connect", "cursor", "--server", "github", "--force"])).code).toBe(0);
    expect(textOf(path)).not.toContain(PLAIN_SECRET);
    expect(statSync(join(place.home, "clients.json")).mode & 0o777).toBe(0o600);
    expect((await place.runHere(["disconnect", "cursor", "--server", "github"])).code).toBe(0);
    expect(textOf(path)).toBe(TEXTS.cursor);
  });
});

describe("[skill-15b] files that others write too", () => {
  it("keep what their owner changed in between, around the entry and in it", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    await place.runHere(["connect", "cursor"]);
    const edited = textOf(path).replace('"X-Team": "blue"', '"X-Team": "red"').replace("// what I use", "// all I use");
    writeFileSync(path, edited);
    expect((await place.runHere(["disconnect", "cursor"])).code).toBe(0);
    expect(textOf(path)).toBe(
      TEXTS.cursor.replace('"X-Team": "blue"', '"X-Team": "red"').replace("// what I use", "// all I use"),
    );

    await place.runHere(["connect", "cursor"]);
    const mine = textOf(path).replace("toolcrib.js", "my-toolcrib.js");
    writeFileSync(path, mine);
    const kept = await place.runHere(["disconnect", "cursor"]);
    expect([kept.code, kept.stderr]).toMatchObject([0, expect.stringContaining("toolcrib was edited since")]);
    expect(textOf(path)).toBe(mine);
    expect((await place.runHere(["disconnect", "cursor", "--force"])).stdout).toContain("Removed toolcrib from");
    expect(textOf(path)).not.toContain("my-toolcrib.js");
  });

  it("are not touched where they do not parse, and are named with line and column", async () => {
    const place = workspace();
    for (const [client, text, where] of [
      ["cursor", '{\n  "mcpServers": { nope }\n}', "line 2, column 19"],
      ["codex", "[mcp_servers\ncommand = 1\n", "line 2, column 1"],
      ["goose", "extensions:\n  a: [1\nb: }\n", "line 3, column"],
      ["openclaw", "{ mcp: { servers: { } }", "line 1, column"],
    ] as const) {
      const path = giveFile(place, client, text);
      for (const command of [
        ["connect", client],
        ["connect", client, "--dry-run"],
      ]) {
        const { code, stderr } = await place.runHere(command);
        expect([client, code, stderr]).toMatchObject([client, 1, expect.stringContaining(`${path}: ${where}`)]);
      }
      expect(textOf(path)).toBe(text);
      expect(readdirSync(dirname(path))).toHaveLength(1);
    }
  });

  it("stay links where they are links", async () => {
    const place = workspace();
    const path = join(place.home, FILES.cursor);
    mkdirSync(dirname(path), { recursive: true });
    const real = place.write("dotfiles-mcp.json", TEXTS.cursor);
    symlinkSync(real, path);
    await place.runHere(["connect", "cursor"]);
    expect(textOf(real)).toContain("toolcrib.js");
    await place.runHere(["disconnect", "cursor"]);
    expect(textOf(real)).toBe(TEXTS.cursor);
  });

  it("lose nothing when several processes write at the same time", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    const ids = ["a", "b", "c"];
    place.configure(Object.fromEntries(ids.map((id) => [id, misbehaving("ok")])));
    const runs = await Promise.all([
      ...ids.map((id) => place.run(["connect", "cursor", "--server", id])),
      place.run(["connect", "cursor"]),
    ]);
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual(runs.map(() => [0, ""]));
    for (const id of [...ids, "toolcrib", "github", "docs"]) expect(textOf(path)).toContain(`"${id}": {`);
    await Promise.all(ids.map((id) => place.run(["disconnect", "cursor", "--server", id])));
    await place.run(["disconnect", "cursor"]);
    expect(textOf(path)).toBe(TEXTS.cursor);
    expect(litter(dirname(path))).toEqual([]);
  });

  it("refuse to write where the record of what was written is damaged", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    writeFileSync(join(place.home, "clients.json"), "{ half");
    const { code, stderr } = await place.runHere(["connect", "cursor"]);
    expect([code, stderr]).toMatchObject([1, expect.stringContaining("clients.json")]);
    expect(textOf(path)).toBe(TEXTS.cursor);
  });

  it("disconnecting what is not connected is no error", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    const { code, stdout } = await place.runHere(["disconnect", "cursor", "--json"]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { removed: [], absent: ["toolcrib"], changed: false }]);
    expect(readdirSync(dirname(path))).toEqual(["mcp.json"]);
    expect((await place.runHere(["disconnect", "codex"])).code).toBe(0);
    expect(existsSync(join(place.home, ".codex"))).toBe(false);
  });
});
