import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LoadedConfig } from "../../src/model/loaded-config.ts";
import { isToolcribEntry } from "../../src/config/entry-reader.ts";
import { watchFiles } from "../../src/hub/reload/file-watcher.ts";
import { codes, Workplace } from "./support.ts";

class ClientWorkplace extends Workplace {
  readonly user = join(this.dir, "user");

  /** With the clients that `import` names, and the project where the config is. */
  import(names: readonly string[], more: object = {}): Promise<LoadedConfig> {
    const file = this.write("project/toolcrib.json", { import: names, ...more });
    return this.load({ file, env: { HOME: this.user } });
  }
}

describe("[skill-14c] import by a client's name", () => {
  it("reads its files of project and user, the project's first, and all are watched", async () => {
    const place = new ClientWorkplace();
    const user = place.write("user/.cursor/mcp.json", {
      mcpServers: {
        both: { command: "of-user" },
        same: { command: "same" },
        mine: { command: "${userHome}/run", env: { KEY: "${env:MINE}" } },
      },
    });
    const project = place.write("project/.cursor/mcp.json", {
      mcpServers: { both: { command: "of-project", args: ["${workspaceFolder}"] }, same: { command: "same" } },
    });
    const { servers, warnings, files } = await place.import(["cursor"]);
    expect(servers.map(({ id, command, origin }) => [id, command, origin.file, origin.dialect])).toEqual([
      ["both", "of-project", project, "cursor"],
      ["same", "same", project, "cursor"],
      ["mine", `${place.user}/run`, user, "cursor"],
    ]);
    expect(servers[0]?.args).toEqual([join(place.dir, "project")]);
    expect(servers[2]?.env).toEqual({ KEY: "${MINE}" });
    expect(warnings.map(({ code, file, message }) => [code, file, message])).toEqual([
      ["duplicate_id", user, `the server "both" is also in ${project}, which counts`],
    ]);
    expect(files).toEqual([join(place.dir, "project/toolcrib.json"), user, project, etc(place)]);
  });

  it("of Claude Code takes what the user has for the project before the project's, and that before the user's", async () => {
    const place = new ClientWorkplace();
    const servers = (command: string, ...ids: string[]): object =>
      Object.fromEntries(ids.map((id) => [id, { command }]));
    const project = join(place.dir, "project");
    place.write("user/.claude.json", {
      mcpServers: servers("of-user", "all", "two", "user"),
      projects: { [project]: { mcpServers: servers("local", "all", "mine") } },
    });
    place.write("project/.mcp.json", { mcpServers: servers("of-project", "all", "two", "project") });
    const config = await place.import(["claude-code"]);
    expect(config.servers.map(({ id, command }) => [id, command])).toEqual([
      ["all", "local"],
      ["mine", "local"],
      ["two", "of-project"],
      ["project", "of-project"],
      ["user", "of-user"],
    ]);
  });

  it("reads YAML, TOML and JSON5", async () => {
    const place = new ClientWorkplace();
    place.write("user/.codex/config.toml", '[mcp_servers.a]\ncommand = "x"\nargs = ["1"]\n');
    place.write("user/.config/goose/config.yaml", "extensions:\n  b:\n    type: stdio\n    cmd: y\n    args: []\n");
    place.write("user/.continue/config.yaml", "mcpServers:\n  - name: c\n    url: https://c.example/mcp\n");
    place.write("user/.openclaw/openclaw.json", "{mcp: {servers: {d: {command: 'z'}}}}");
    const { servers, warnings } = await place.import(["codex", "goose", "continue", "openclaw"]);
    expect(servers.map(({ id, command, url }) => [id, command ?? url])).toEqual([
      ["a", "x"],
      ["b", "y"],
      ["c", "https://c.example/mcp"],
      ["d", "z"],
    ]);
    expect(warnings).toEqual([]);
  });

  it("tells of a client that is not there, of broken files and of plain credentials, and goes on", async () => {
    const place = new ClientWorkplace();
    const broken = place.write("user/.cursor/mcp.json", '{\n  "mcpServers": {,}\n}');
    const vscode = place.write("user/.config/Code/User/mcp.json", {
      servers: {
        good: { command: "x", env: { API_KEY: "plain-text-key", TOKEN: "${input:my-token}" } },
        bad: { command: "x", cwd: 5 },
      },
    });
    mkdirSync(join(place.user, ".gemini"), { recursive: true });
    const { servers, warnings } = await place.import(["amp", "cursor", "vscode", "gemini-cli"]);
    expect(servers.map(({ id, env }) => [id, env?.["TOKEN"]])).toEqual([["good", "secret://env/MY_TOKEN"]]);
    expect(warnings.every(({ severity }) => severity === "warning")).toBe(true);
    const said = warnings.map(({ code, file, line, message }) => `${code} ${file}:${line} ${message}`);
    expect(said).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^missing_import .*toolcrib\.json:3 Amp is not installed here; nothing is imported/),
        expect.stringMatching(`^syntax ${broken}:2 .*; the file is skipped$`),
        expect.stringMatching(`^plain_credential ${vscode}:6 `),
        expect.stringMatching(`^wrong_value ${vscode}:\\d+ .*; this server is skipped$`),
        expect.stringMatching(`^input ${vscode}:\\d+ .*MY_TOKEN`),
      ]),
    );
    expect(said.join("\n")).not.toContain("plain-text-key");
    expect(codes(warnings).filter((code) => code.startsWith("missing_import"))).toHaveLength(1);
  });

  it("leaves Toolcrib itself out, and reads no file twice", async () => {
    const place = new ClientWorkplace();
    const file = place.write("user/.cursor/mcp.json", {
      mcpServers: {
        toolcrib: { command: process.execPath, args: ["/opt/toolcrib/bin/toolcrib.js", "mcp"] },
        files: { command: "toolcrib", args: ["mcp", "--server", "files"] },
        other: { command: "x" },
      },
    });
    const { servers, warnings } = await place.import(["cursor", file, "cursor"]);
    expect(servers.map(({ id }) => id)).toEqual(["other"]);
    expect(warnings).toEqual([]);
  });

  it("and a client's file as the config itself, or by its path, never start the hub from within the hub", async () => {
    const place = new ClientWorkplace();
    const mcpServers = { toolcrib: { command: "toolcrib", args: ["mcp"] }, other: { command: "x" } };
    const file = place.write("user/.config/Claude/claude_desktop_config.json", { mcpServers });
    for (const { servers, warnings } of [await place.load({ file }), await place.import([file])]) {
      expect(servers.map(({ id }) => id)).toEqual(["other"]);
      expect(codes(warnings)).toEqual(["own_entry mcpServers.toolcrib"]);
    }
    // Somebody who writes it into a config of Toolcrib's own means another one.
    expect((await place.import([], { mcpServers })).servers).toHaveLength(2);
  });

  it("[gate-07a] is noticed when a client's file comes or changes", async () => {
    const place = new ClientWorkplace();
    mkdirSync(place.user, { recursive: true });
    const { files } = await place.import(["cursor"]);
    let stop = (): void => {};
    await new Promise<void>((changed) => {
      stop = watchFiles(files, changed, { debounceMs: 20 });
      place.write("user/.cursor/mcp.json", { mcpServers: { new: { command: "x" } } });
    });
    stop();
    expect(readdirSync(join(place.user, ".cursor"))).toEqual(["mcp.json"]);
    expect((await place.import(["cursor"])).servers.map(({ id }) => id)).toEqual(["new"]);
  });
});

function etc(place: Workplace): string {
  return join(place.home, "etc/mcp-servers.json");
}

describe("[skill-14c] an entry that starts Toolcrib", () => {
  it.each([
    ["toolcrib", { command: "toolcrib", args: ["mcp"] }],
    ["x", { command: "/usr/bin/node", args: ["/opt/toolcrib/bin/toolcrib.js", "mcp", "--server", "x"] }],
    ["x", { command: "C:\\Program Files\\nodejs\\node.exe", args: ["C:\\x\\bin\\toolcrib.js", "mcp"] }],
    ["x", { command: "npx", args: ["-y", "toolcrib@latest", "mcp"] }],
    ["x", { command: "cmd", args: ["/c", "npx", "-y", "toolcrib", "mcp"] }],
    ["x", { command: ["toolcrib", "mcp"] }],
    ["toolcrib", { url: "http://127.0.0.1:4700/mcp" }],
    ["toolcrib", { httpUrl: "https://hub.example/mcp" }],
  ])("is recognised: %s %j", (id, entry) => {
    expect(isToolcribEntry(id, entry)).toBe(true);
  });

  it.each([
    ["toolcrib", { command: "toolcrib", args: ["--version"] }],
    ["files", { command: "npx", args: ["-y", "server-filesystem", "/home/me/toolcrib", "mcp"] }],
    ["hub", { url: "http://127.0.0.1:4700/mcp" }],
    ["x", { command: "toolcrib-mcp", args: ["mcp"] }],
    ["x", {}],
  ])("is not mistaken: %s %j", (id, entry) => {
    expect(isToolcribEntry(id, entry)).toBe(false);
  });
});
