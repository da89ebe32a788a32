import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { codex } from "../../../src/clients/codex.ts";
import { cursor } from "../../../src/clients/json-clients.ts";
import type { AgentClient, ClientFile, ClientEnvironment } from "../../../src/clients/agent-client.ts";
import { CLIENTS } from "../../../src/clients/clients.ts";
import { ChangeSet } from "../../../src/files/change-set/change-set.ts";
import {
  fileToWrite,
  readWrittenEntries,
  removeClientServers,
  writeClientServers,
} from "../../../src/hub/clients/client-files.ts";
import { changesDir } from "../../../src/hub/install/install-files.ts";

class Home {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-clients-"));
  readonly home = join(this.dir, ".toolcrib");
  readonly place: ClientEnvironment = {
    platform: "linux",
    home: this.dir,
    env: {},
    projectDir: join(this.dir, "work"),
  };

  constructor() {
    onTestFinished(() => rmSync(this.dir, { recursive: true, force: true }));
  }

  changes(): ChangeSet {
    return new ChangeSet({ journalDir: changesDir(this.home) });
  }

  give(path: string, text: string): string {
    const full = join(this.dir, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  }

  file(client: AgentClient): ClientFile {
    const file = fileToWrite(client, "user", this.place);
    if (file === undefined) throw new Error("no file");
    return file;
  }

  /** Every file below, but for the journals. */
  all(): string[] {
    return readdirSync(this.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.dir.length + 1))
      .toSorted();
  }
}

const gateway = { command: "/usr/bin/node", args: ["/opt/toolcrib/bin/toolcrib.js", "mcp"] };
const TEXT = '{\n  "mcpServers": {\n    "mine": {"command": "x"}\n  }\n}\n';

describe("[skill-15b] servers in a client's file", () => {
  it("go in and out through one change set, with a record", async () => {
    const home = new Home();
    const path = home.give(".cursor/mcp.json", TEXT);
    const target = { home: home.home, client: cursor, file: home.file(cursor) };
    const changes = home.changes();
    const written = await writeClientServers({
      ...target,
      changes,
      servers: { a: gateway, b: gateway },
      by: "skill-x",
    });
    await changes.done();
    expect(written).toMatchObject({ written: ["a", "b"], present: [] });
    expect(await readWrittenEntries(home.home)).toMatchObject([
      {
        client: "cursor",
        scope: "user",
        file: path,
        id: "a",
        by: "skill-x",
        path: ["mcpServers", "a"],
        madeFile: false,
      },
      { id: "b" },
    ]);
    expect(statSync(join(home.home, "clients.json")).mode & 0o777).toBe(0o600);

    const again = home.changes();
    expect(await removeClientServers({ ...target, changes: again, ids: ["a", "b", "mine"] })).toMatchObject({
      removed: ["b", "a"],
      kept: [{ id: "mine", reason: "not ours" }],
    });
    await again.done();
    expect(readFileSync(path, "utf8")).toBe(TEXT);
    expect(home.all()).toEqual([".cursor/mcp.json"]);
  });

  it("are undone together with the record, over several clients", async () => {
    const home = new Home();
    const path = home.give(".cursor/mcp.json", TEXT);
    const first = home.changes();
    const target = { home: home.home, client: cursor, file: home.file(cursor) };
    await writeClientServers({ ...target, changes: first, servers: { a: gateway } });
    await first.done();
    const text = readFileSync(path, "utf8");
    const before = readFileSync(join(home.home, "clients.json"), "utf8");

    const changes = home.changes();
    await writeClientServers({ ...target, changes, servers: { b: gateway } });
    await removeClientServers({ ...target, changes, ids: ["a"] });
    await writeClientServers({ ...target, changes, client: codex, file: home.file(codex), servers: { b: gateway } });
    const refused = writeClientServers({ ...target, changes, servers: { mine: gateway } });
    await expect(refused).rejects.toMatchObject({ code: "conflict" });
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(readFileSync(path, "utf8")).toBe(text);
    expect(readFileSync(join(home.home, "clients.json"), "utf8")).toBe(before);
    expect(existsSync(join(home.dir, ".codex"))).toBe(false);
  });

  it("leave nothing behind where nothing can be written", async () => {
    const home = new Home();
    const changes = home.changes();
    const servers = { a: { ...gateway, env: { API_TOKEN: "in-plain-sight" } } };
    const refused = writeClientServers({ changes, home: home.home, client: cursor, file: home.file(cursor), servers });
    await expect(refused).rejects.toMatchObject({ code: "invalid_arguments" });
    await changes.undo();
    expect(home.all()).toEqual([]);
  });
});

describe("[skill-14d] the file that is written", () => {
  const clientOf = (id: string): AgentClient => CLIENTS.find((client) => client.id === id) ?? cursor;

  it.each([
    ["opencode", [".config/opencode/opencode.jsonc"], ".config/opencode/opencode.jsonc"],
    ["opencode", [], ".config/opencode/opencode.json"],
    ["vscode", [".config/Code - Insiders/User/settings.json"], ".config/Code - Insiders/User/mcp.json"],
    ["windsurf", [".codeium/mcp_config.json", ".codeium/windsurf/x"], ".codeium/windsurf/mcp_config.json"],
    ["claude-code", [".claude.json"], ".claude.json"],
  ])("of %s with %j is %s", (id, there, expected) => {
    const home = new Home();
    for (const path of there) home.give(path, "{}");
    expect(fileToWrite(clientOf(id), "user", home.place)?.path).toBe(join(home.dir, expected));
  });

  it("of a project is the project's own, and there may be none", () => {
    const home = new Home();
    home.give(".claude.json", "{}");
    expect(fileToWrite(clientOf("claude-code"), "project", home.place)?.path).toBe(join(home.dir, "work/.mcp.json"));
    expect(fileToWrite(clientOf("goose"), "project", home.place)).toBeUndefined();
  });
});
