import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { maskCredential } from "../../src/cli/config-target.ts";
import { misbehaving, workspace } from "./run-cli.ts";

interface ErrorOutput {
  error: { code: string; message: string; hint?: string };
}

const COMMENTED = `{
  // what I use at home
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] }, // the files
    /* remote */
    "linear": {
      "url": "https://mcp.linear.app/mcp",
    },
  },
  "limits": { "concurrency": 4 }
}
`;

describe("[spine-19c] add, remove, enable, disable", () => {
  it("adds a command and a URL to the config that would be found, and keeps comments", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    mkdirSync(join(place.dir, "sub"));
    const added = await place.runHere([
      "add",
      "memory",
      "--no-test",
      "--env",
      "A=b=c",
      "--env",
      "HOME_TOKEN",
      "--",
      "node",
      "x.mjs",
      "--json",
      "-v",
    ]);
    expect(added).toMatchObject({ code: 0, stdout: `Added memory in ${place.configFile}\n`, stderr: "" });
    const url = await place.runHere([
      "add",
      "near",
      "http://127.0.0.1:9/mcp",
      "--header",
      "X-Team: red",
      "--transport",
      "http",
      "--disabled",
      "--json",
    ]);
    expect(url.json()).toEqual({ id: "near", file: place.configFile, changed: true });

    const text = place.read("toolcrib.json");
    for (const comment of ["// what I use at home", "// the files", "/* remote */"]) expect(text).toContain(comment);
    const { stdout } = await place.runHere(["status", "--json", "--timeout", "1"]);
    expect(JSON.parse(stdout)).toMatchObject([
      { id: "files" },
      { id: "linear" },
      { id: "memory" },
      { id: "near", state: "disabled" },
    ]);
    expect(text).toMatch(/"command": "node",\s+"args": \["x\.mjs", "--json", "-v"\]/);
    expect(text).toMatch(/"A": "b=c",\s+"HOME_TOKEN": "\$\{HOME_TOKEN\}"/);
    expect(text).toMatch(/"X-Team": "red"/);
  });

  it("removing what was added gives the same bytes back, and leaves nothing else in the folder", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    chmodSync(place.configFile, 0o640);
    await place.runHere(["add", "extra", "--", "true"]);
    expect(place.read("toolcrib.json")).not.toBe(COMMENTED);
    const removed = await place.runHere(["remove", "extra"]);
    expect(removed.stdout).toBe(`Removed extra in ${place.configFile}\n`);
    expect(place.read("toolcrib.json")).toBe(COMMENTED);
    expect(statSync(place.configFile).mode & 0o777).toBe(0o640);
    expect(readdirSync(place.dir).toSorted()).toEqual(["home", "toolcrib.json"]);
  });

  it("switches a server off and on", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    expect((await place.runHere(["disable", "files"])).stdout).toContain("Disabled files");
    expect(place.read("toolcrib.json")).toMatch(/"files": \{.*"enabled": false \}, \/\/ the files/);
    expect((await place.runHere(["enable", "files"])).stdout).toContain("Enabled files");
    expect((await place.runHere(["enable", "files", "--json"])).json()).toMatchObject({ changed: false });
  });

  it("makes a config in the home where there is none, and the one that --config names", async () => {
    const place = workspace();
    expect((await place.runHere(["add", "a", "--", "true"])).stdout).toContain(join(place.home, "toolcrib.json"));
    await place.runHere(["add", "b", "--config", "other.json", "--", "true"]);
    expect(JSON.parse(place.read("other.json"))).toEqual({ mcpServers: { b: { command: "true" } } });
  });

  it("--dry-run prints a diff and changes nothing", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    const added = await place.runHere(["add", "x", "--dry-run", "--env", "API_TOKEN=hunter2", "--", "true"]);
    expect(added.code).toBe(0);
    expect(added.stdout).toMatch(/^\+ {5}"x": \{$/m);
    expect(added.stdout + added.stderr).not.toContain("hunter2");
    const removed = await place.runHere(["remove", "linear", "--dry-run", "--json"]);
    expect(removed.json()).toMatchObject({
      id: "linear",
      dryRun: true,
      changed: true,
      diff: expect.arrayContaining(['-     "linear": {']),
    });
    expect((await place.runHere(["disable", "files", "--dry-run"])).stdout).toMatch(/^\+ .*"enabled": false/m);
    expect(place.read("toolcrib.json")).toBe(COMMENTED);
    expect((await place.runHere(["add", "x", "--config", "new.json", "--dry-run", "--", "true"])).code).toBe(0);
    expect(existsSync(join(place.dir, "new.json"))).toBe(false);
  });

  it("warns of a credential in plain text and names the reference to use, never the value", async () => {
    const place = workspace();
    const { code, stdout, stderr } = await place.runHere([
      "add",
      "x",
      "https://example.com/mcp",
      "--header",
      "Authorization=Bearer hunter2",
    ]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/warning: .*plain text.*\$\{NAME\} or secret:\/\/env\/NAME/);
    expect(stdout + stderr).not.toContain("hunter2");
    expect(
      (await place.runHere(["add", "y", "--quiet", "https://example.com/mcp", "--header", "X-Api-Key: k"])).stderr,
    ).toBe("");
    expect(maskCredential('+  "a": 1, "API_KEY": "k\\"2", "B": "${C}"')).toBe(
      '+  "a": 1, "API_KEY": "[redacted]", "B": "${C}"',
    );
  });

  it("[spine-19e] refuses what makes no sense, each with its code", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    place.write("more.json", JSON.stringify({ mcpServers: { imported: { command: "true" } } }));
    place.write("toolcrib.json", COMMENTED.replace('"limits"', '"import": ["./more.json"],\n  "limits"'));
    const before = place.read("toolcrib.json");
    const cases: [args: string[], exit: number, code: string, says: RegExp][] = [
      [["add", "files", "--", "true"], 1, "conflict", /Use --force to replace it/],
      [["add", "x"], 2, "invalid_arguments", /Pass a URL, or -- followed by a command/],
      [["add", "x", "npx"], 2, "invalid_arguments", /Pass a URL, or -- followed by a command/],
      [["add", "x", "ftp://example.com"], 2, "invalid_arguments", /https/],
      [["add", "x", "https://example.com", "--transport", "carrier-pigeon"], 2, "invalid_arguments", /expected .*sse/],
      [["add", "x", "--env", "=v", "--", "true"], 2, "invalid_arguments", /NAME=value/],
      [["add", "local", "--", "true"], 2, "invalid_arguments", /in-process tools/],
      [["add", "bad/id", "--", "true"], 2, "invalid_arguments", /valid id/],
      [["remove", "file"], 1, "not_found", /Did you mean \\?"files/],
      [["remove", "imported"], 1, "conflict", /comes from .*more\.json/],
      [["disable", "imported"], 1, "conflict", /more\.json/],
      [["enable", "nothing-like-it"], 1, "not_found", /has no server/],
    ];
    for (const [[command = "", ...args], exit, code, says] of cases) {
      // Options stand before the `--` of a command to add.
      const { code: got, stdout } = await place.runHere([command, "--json", ...args]);
      expect([args, got, (JSON.parse(stdout) as ErrorOutput).error.code]).toEqual([args, exit, code]);
      expect(stdout).toMatch(says);
    }
    expect(place.read("toolcrib.json")).toBe(before);
    expect((await place.runHere(["add", "files", "--force", "--", "true"])).code).toBe(0);
    expect(place.read("toolcrib.json")).toMatch(/"files": \{ "command": "true" \}/);
  });

  it("two processes that add at the same time lose nothing", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    const ids = ["a", "b", "c", "d"];
    const runs = await Promise.all(ids.map((id) => place.run(["add", id, "--", "true"])));
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    for (const id of ids) expect(place.read("toolcrib.json")).toContain(`"${id}": {`);
  });
});

describe("[spine-19f] import", () => {
  const DESKTOP = JSON.stringify({
    globalShortcut: "Ctrl+Space",
    mcpServers: {
      ok: misbehaving("ok"),
      github: { command: "npx", args: ["-y", "github"], env: { GITHUB_TOKEN: "ghp_secret" }, cwd: "work" },
    },
  });

  it("adds the servers of another program's file, without defaults, and flags secrets", async () => {
    const place = workspace();
    const file = place.write("claude_desktop_config.json", DESKTOP);
    place.write("toolcrib.json", COMMENTED);
    const { code, stdout, stderr } = await place.runHere(["import", "claude_desktop_config.json", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      source: file,
      file: place.configFile,
      added: ["ok", "github"],
      replaced: [],
      renamed: [],
      skipped: [],
      leftOut: [],
      credentials: [{ server: "github", key: "env.GITHUB_TOKEN", name: "GITHUB_TOKEN" }],
    });
    expect(stderr).toMatch(/warning: .*GITHUB_TOKEN.*plain text/);
    expect(stdout + stderr).not.toContain("ghp_secret");
    const text = place.read("toolcrib.json");
    expect(text).toContain("// what I use at home");
    expect(text).not.toContain("autoConnect");
    expect(text).toContain(`"cwd": ${JSON.stringify(join(place.dir, "work"))}`);
    expect((await place.runHere(["call", "ok__echo", "text=imported"])).stdout).toBe("imported\n");

    const again = await place.runHere(["import", "claude_desktop_config.json", "--json"]);
    expect(again.json()).toMatchObject({ added: [], skipped: ["ok", "github"] });
    expect(place.read("toolcrib.json")).toBe(text);
  });

  it("reads VS Code's form", async () => {
    const place = workspace();
    place.write("mcp.json", JSON.stringify({ servers: { docs: { type: "http", url: "https://docs.example/mcp" } } }));
    expect((await place.runHere(["import", "mcp.json"])).stdout).toMatch(/docs {2}added/);
    expect(JSON.parse(place.read("home/toolcrib.json"))).toEqual({
      mcpServers: { docs: { url: "https://docs.example/mcp" } },
    });
  });

  it("refuses a taken id as a whole, replaces with --force, renames with --rename, and shows it with --dry-run", async () => {
    const place = workspace();
    place.write("toolcrib.json", COMMENTED);
    place.write(
      "other.json",
      JSON.stringify({ mcpServers: { fresh: { command: "true" }, files: { command: "other-files" } } }),
    );
    const refused = await place.runHere(["import", "other.json", "--json"]);
    expect(refused.code).toBe(1);
    expect(refused.json<ErrorOutput>().error).toMatchObject({
      code: "conflict",
      hint: expect.stringContaining("--rename"),
    });
    const dry = await place.runHere(["import", "other.json", "--rename", "--dry-run"]);
    expect(dry.stdout).toMatch(/^\+ {5}"fresh": \{$/m);
    expect(dry.stdout).toMatch(/^\+ {5}"files-2": \{$/m);
    expect(place.read("toolcrib.json")).toBe(COMMENTED);
    expect((await place.runHere(["import", "other.json", "--rename", "--json"])).json()).toMatchObject({
      renamed: [{ from: "files", to: "files-2" }],
    });
    expect((await place.runHere(["import", "other.json", "--force", "--json"])).json()).toMatchObject({
      replaced: ["files"],
      skipped: ["fresh"],
    });
    expect(place.read("toolcrib.json")).toContain("other-files");
  });

  it("[whole-02d] brings the servers of OpenClaw's defaults, and those of single agents to their roles", async () => {
    const place = workspace();
    const agents = {
      defaults: { mcp: { servers: { notes: { command: "notes-mcp" } } } },
      list: [
        { id: "ops", mcp: { servers: { files: { env: { LEVEL: "9" } } } }, tools: { deny: ["notes__write"] } },
        { id: "reader" },
      ],
    };
    const mcp = { servers: { files: { command: "files-mcp" } } };
    place.write("openclaw.json", JSON.stringify({ mcp, agents }));
    const env = { OPENCLAW_CONFIG_PATH: join(place.dir, "openclaw.json") };
    const first = await place.runHere(["import", "openclaw", "--json"], { env });
    expect(first.json()).toMatchObject({ added: ["files", "notes", "files@ops"] });
    expect(JSON.parse(place.read("home/toolcrib.json"))).toEqual({
      mcpServers: { files: { command: "files-mcp" }, notes: { command: "notes-mcp" } },
      roles: {
        ops: {
          tools: { deny: ["notes__write"] },
          mcpServers: { files: { command: "files-mcp", env: { LEVEL: "9" } } },
        },
        reader: {},
      },
    });
    const again = await place.runHere(["import", "openclaw.json", "--json"]);
    expect(again.json()).toMatchObject({ added: [], skipped: ["files", "notes", "files"] });
    mcp.servers.files.command = "other-mcp";
    place.write("openclaw.json", JSON.stringify({ mcp, agents }));
    expect((await place.runHere(["import", "openclaw.json", "--json"])).json<ErrorOutput>().error).toMatchObject({
      code: "conflict",
      message: expect.stringContaining("files, files@ops"),
    });
  });

  it("[whole-01e] brings nothing while the own server of an agent has an error: its role would get the shared one", async () => {
    const place = workspace();
    const list = [{ id: "ops", mcp: { servers: { files: { toolFilter: { exclude: "delete_*" } } } } }];
    place.write("openclaw.json", JSON.stringify({ mcp: { servers: { files: { command: "x" } } }, agents: { list } }));
    for (const command of [
      ["import", "openclaw.json"],
      ["export", "compose", "--config", "openclaw.json"],
    ]) {
      const refused = await place.runHere(command);
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain('agents.list[0].mcp.servers.files.tools.deny: found "delete_*"');
    }
    expect(existsSync(join(place.dir, "home/toolcrib.json"))).toBe(false);
  });

  it.each([
    ["zed.json", { context_servers: { it: { source: "custom", command: "npx", args: ["-y", "it"] } } }],
    ["opencode.json", { mcp: { it: { type: "local", command: ["npx", "-y", "it"], enabled: true } } }],
    ["settings.json", { "amp.mcpServers": { it: { command: "npx", args: ["-y", "it"] } } }],
    ["warp.json", { it: { command: "npx", args: ["-y", "it"], working_directory: null } }],
    ["alone.json", { command: "npx", args: ["-y", "it"] }],
    ["codex.toml", '[mcp_servers.it]\ncommand = "npx"\nargs = ["-y", "it"]\n'],
    ["goose.yaml", "extensions:\n  it:\n    type: stdio\n    cmd: npx\n    args: [-y, it]\n"],
  ])("[whole-01a] reads a snippet for a program that keeps servers in another place: %s", async (name, snippet) => {
    const place = workspace();
    const file = place.write(name, typeof snippet === "string" ? snippet : JSON.stringify(snippet));
    const { code, stderr } = await place.runHere(["import", file]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(place.read("home/toolcrib.json"))).toMatchObject({
      mcpServers: { it: { command: "npx", args: ["-y", "it"] } },
    });
    if (typeof snippet === "string") return;
    // In Toolcrib's own file it is not read, which says what to do.
    place.write("home/toolcrib.json", JSON.stringify(snippet));
    const listed = await place.runHere(["list", "--standalone"]);
    expect(listed.stderr).toContain('servers are under "mcpServers" here; toolcrib import <file> reads');
  });

  it("tells of what cannot be imported", async () => {
    const place = workspace();
    place.write("half.json", JSON.stringify({ mcpServers: { good: { command: "true" }, bad: { args: ["x"] } } }));
    const half = await place.runHere(["import", "half.json"]);
    expect(half.code).toBe(0);
    expect(half.stderr).toMatch(/warning: .*half\.json.*bad/);
    place.write("empty.json", "{}");
    place.write("broken.json", "{");
    for (const [file, exit, code] of [
      ["empty.json", 1, "not_found"],
      ["broken.json", 1, "invalid_config"],
      ["cursor", 1, "not_found"],
    ] as const) {
      const { code: got, stdout } = await place.runHere(["import", file, "--json"]);
      expect([file, got, (JSON.parse(stdout) as ErrorOutput).error.code]).toEqual([file, exit, code]);
    }
  });
});

describe("[spine-19f] schema", () => {
  it("prints the JSON Schema of the config", async () => {
    const { code, stdout, stderr } = await workspace().runHere(["schema"]);
    expect([code, stderr]).toEqual([0, ""]);
    const schema = JSON.parse(stdout) as { $schema: string; properties: Record<string, unknown> };
    expect(schema.$schema).toContain("2020-12");
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(["mcpServers", "tools", "limits"]));
  });
});
