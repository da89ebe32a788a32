import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ConfigChange, PlannedChange } from "../../../src/contract/change-schemas.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { ServerSecrets } from "../../../src/hub/servers/server-secrets.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { OfferingServer } from "../../support/offering-server.ts";

let dir: string;
let home: string;
let file: string;
let hub: Hub | undefined;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "changes-"));
  home = join(dir, "home");
  mkdirSync(home);
  file = join(home, "toolcrib.json");
});

afterEach(async () => {
  vi.restoreAllMocks();
  await hub?.close();
  hub = undefined;
  rmSync(dir, { recursive: true, force: true });
});

const tool = (name: string): { name: string; inputSchema: { type: "object" } } => ({
  name,
  inputSchema: { type: "object" },
});

/** `git` with three tools and `files` with two; the rest of the file comes after them. */
async function start(rest = "", ofGit = ""): Promise<Hub> {
  const [git, files] = [new OfferingServer(dir, "git"), new OfferingServer(dir, "files")];
  git.offer({ tools: ["push", "pull", "log"].map(tool) });
  files.offer({ tools: ["read", "write"].map(tool) });
  const entry = JSON.stringify(git.entry).slice(0, -1);
  writeFileSync(
    file,
    `{\n  // Mine.\n  "mcpServers": {\n    "git": ${entry}${ofGit} },\n    "files": ${JSON.stringify(files.entry)}\n  }${rest}\n}\n`,
  );
  return open();
}

async function open(): Promise<Hub> {
  hub = await createHub(file, { env: { ...process.env, TOOLCRIB_HOME: home } });
  await hub.servers.settled();
  return hub;
}

/** A server in the store, with two tools. */
async function addNotes(to: Hub, id = "notes"): Promise<void> {
  const notes = new OfferingServer(dir, id);
  notes.offer({ tools: ["add", "drop"].map(tool) });
  await to.servers.add(id, { ...notes.entry });
}

const names = (of: Hub, session: Session): string[] => of.view(session).tools.map(({ name }) => name);
const deny = (...patterns: string[]): ConfigChange => ({ kind: "rule", verdict: "deny", patterns });

async function write(of: Hub, ...changes: ConfigChange[]): Promise<PlannedChange> {
  const { etag } = await (await of.internals.changes()).preview(changes);
  return (await of.internals.changes()).write(changes, etag);
}

describe("rules", () => {
  it("[joy-03a] the diff and what clients and roles lose are known before anything is written", async () => {
    const hub = await start(`,\n  "roles": { "reader": { "servers": ["files"] }, "coder": {} }`);
    const cursor = hub.openSession({ door: "mcp", clientInfo: { name: "cursor" } });
    hub.openSession({ door: "mcp", role: "reader", clientInfo: { name: "reader" } });
    const before = readFileSync(file, "utf8");
    const plan = await (await hub.internals.changes()).preview([deny("git__push", "git__pull")]);
    expect(plan.saved).toBe(false);
    expect(plan.diffs).toEqual([{ where: file, lines: expect.any(Array) as string[] }]);
    const added = plan.diffs[0]?.lines.filter((line) => line.startsWith("+")).join("\n");
    expect(added).toContain('"git__push"');
    expect(plan.effect.clients).toEqual([
      {
        session: cursor.id,
        client: "cursor",
        user: null,
        role: null,
        loses: ["git__push", "git__pull"],
        gains: [],
        asks: [],
        frees: [],
        counts: { loses: 2, gains: 0, asks: 0, frees: 0 },
      },
    ]);
    expect(plan.effect.roles.map(({ role, counts }) => [role, counts.loses])).toEqual([
      [null, 2],
      ["coder", 2],
    ]);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(names(hub, cursor)).toHaveLength(5);
  });

  it("[joy-03b] are written in place, applied at once, and taken back to the same bytes", async () => {
    const hub = await start(`,\n  "tools": { "deny": ["git__log"] /* loud */ }`);
    const before = readFileSync(file, "utf8");
    expect(names(hub, hub.session)).not.toContain("git__log");
    await write(hub, deny("files__write"), { kind: "rule", verdict: "ask", patterns: ["git__push"] });
    expect(readFileSync(file, "utf8")).toContain("/* loud */");
    expect(readFileSync(file, "utf8")).toContain("// Mine.");
    expect(names(hub, hub.session)).toEqual(["git__push", "git__pull", "files__read"]);
    expect(hub.explain("git__push")?.decision.verdict).toBe("ask");
    await write(hub, { kind: "rule", verdict: "none", patterns: ["files__write", "git__push"] });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("[joy-03b] allow a tool in spite of wider rules of the hub and of its server", async () => {
    const hub = await start(
      `,\n  "tools": { "deny": ["git__*"], "ask": ["*__push"] }`,
      `, "tools": { "deny": ["push"] }`,
    );
    const plan = await write(hub, { kind: "rule", verdict: "allow", patterns: ["git__push"] });
    expect(plan.unmet).toEqual([]);
    expect(hub.explain("git__push")?.decision.verdict).toBe("allow");
    expect(hub.explain("git__pull")?.decision.verdict).toBe("deny");
    expect(plan.effect.roles).toEqual([expect.objectContaining({ role: null, gains: ["git__push"] })]);
  });

  it("[joy-03b] of a role widen nothing for others, and say which rule still decides", async () => {
    const hub = await start(`,\n  "tools": { "deny": ["git__*"] }, "roles": { "coder": {} }`);
    const plan = await write(hub, { kind: "rule", verdict: "allow", patterns: ["git__push"], role: "coder" });
    expect(plan.unmet).toEqual([
      { name: "git__push", verdict: "deny", rule: { level: "hub", list: "deny", pattern: "git__*", where: file } },
    ]);
    expect(hub.explain("git__push")?.decision.verdict).toBe("deny");
    await write(hub, { kind: "rule", verdict: "deny", patterns: ["files__*"], role: "coder" });
    expect(names(hub, hub.openSession({ role: "coder" }))).toEqual([]);
    expect(names(hub, hub.session)).toEqual(["files__read", "files__write"]);
  });

  it("[joy-03b] of a server in the store are written there", async () => {
    const hub = await start();
    await addNotes(hub);
    const before = readFileSync(file, "utf8");
    const plan = await write(hub, { kind: "rule", verdict: "deny", patterns: ["drop"], serverId: "notes" });
    expect(plan.diffs).toHaveLength(1);
    expect(plan.diffs[0]?.where).toContain("(server notes)");
    expect(plan.effect.roles[0]?.loses).toEqual(["notes__drop"]);
    expect(names(hub, hub.session)).not.toContain("notes__drop");
    expect(readFileSync(file, "utf8")).toBe(before);
    await write(hub, { kind: "rule", verdict: "allow", patterns: ["notes__drop"] });
    expect(hub.explain("notes__drop")?.decision.verdict).toBe("allow");
  });
});

describe("a write", () => {
  it("[joy-03c] is refused if the file changed since the diff was made", async () => {
    const hub = await start();
    const { etag } = await (await hub.internals.changes()).preview([deny("git__push")]);
    writeFileSync(file, readFileSync(file, "utf8").replace("// Mine.", "// Mine, still."));
    const changed = readFileSync(file, "utf8");
    await expect((await hub.internals.changes()).write([deny("git__push")], etag)).rejects.toMatchObject({
      code: "conflict",
    });
    expect(readFileSync(file, "utf8")).toBe(changed);
  });

  it("[joy-03c] that would not load is refused, and nothing is written", async () => {
    const hub = await start(`,\n  "roles": { "coder": {} }`);
    const before = readFileSync(file, "utf8");
    const refused: readonly ConfigChange[] = [
      { kind: "role", role: "coder", settings: { servers: 5 } },
      { kind: "role", role: "coder", settings: { nonsense: true } },
      { kind: "server", serverId: "git", updates: { command: null } },
      { kind: "rule", verdict: "deny", patterns: ["git__push (branch=main)"] },
    ];
    for (const change of refused) {
      await expect(write(hub, change), JSON.stringify(change)).rejects.toMatchObject({
        code: "invalid_config",
      });
    }
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("[joy-03c] is taken back if the new config loads but cannot be applied", async () => {
    const hub = await start(`,\n  "plugins": []`);
    const before = readFileSync(file, "utf8");
    const plugin = join(dir, "plugin.mjs");
    writeFileSync(plugin, `export default function register() { throw new Error("no"); }`);
    const changes = await hub.internals.changes();
    const { etag } = await changes.preview([deny("git__push")]);
    // A plugin that came into the file by hand, and was not loaded yet, is applied together with the change.
    const edited = before.replace('"plugins": []', `"plugins": [${JSON.stringify(plugin)}]`);
    writeFileSync(file, edited);
    await expect(changes.write([deny("git__push")], etag)).rejects.toMatchObject({ code: "conflict" });
    await expect(write(hub, deny("git__push"))).rejects.toThrow("plugin.mjs");
    expect(readFileSync(file, "utf8")).toBe(edited);
  });

  it("[joy-03c] with a plain secret for a server in the store is refused before anything is written", async () => {
    const hub = await start();
    await addNotes(hub);
    const before = readFileSync(file, "utf8");
    const plain = { env: { API_KEY: "plain-secret-text" } };
    for (const updates of [plain, { id: "other" }]) {
      const changes: ConfigChange[] = [deny("git__push"), { kind: "server", serverId: "notes", updates }];
      await expect((await hub.internals.changes()).preview(changes)).rejects.toMatchObject({
        code: "invalid_arguments",
      });
    }
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(names(hub, hub.session)).toContain("git__push");
  });

  it("[joy-03c] is taken back in the file and in the hub if the store fails", async () => {
    const hub = await start();
    await addNotes(hub);
    const before = readFileSync(file, "utf8");
    const changes: ConfigChange[] = [
      deny("git__push"),
      { kind: "server", serverId: "notes", updates: { name: "Notes" } },
    ];
    const storing = vi.spyOn(ServerSecrets.prototype, "secure");
    storing.mockImplementationOnce(async () => {
      expect(names(hub, hub.session)).not.toContain("git__push");
      throw new Error("the store is full");
    });
    await expect(write(hub, ...changes)).rejects.toThrow(/^the store is full$/);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(names(hub, hub.session)).toContain("git__push");
    storing.mockImplementationOnce(async () => {
      writeFileSync(file, `${readFileSync(file, "utf8")}\n// By hand.\n`);
      throw new Error("the store is full");
    });
    await expect(write(hub, ...changes)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/the store is full.*could not be taken back/) as string,
    });
    expect(readFileSync(file, "utf8")).toContain("// By hand.");
  });

  it("[joy-03c] leaves no file where there was none, if the store fails", async () => {
    hub = await createHub(undefined, { env: { ...process.env, TOOLCRIB_HOME: home }, cwd: dir } as never);
    await addNotes(hub);
    const changes: ConfigChange[] = [
      deny("notes__add"),
      { kind: "server", serverId: "notes", updates: { name: "Notes" } },
    ];
    vi.spyOn(ServerSecrets.prototype, "secure").mockRejectedValueOnce(new Error("the store is full"));
    await expect(write(hub, ...changes)).rejects.toThrow(/^the store is full$/);
    expect(existsSync(file)).toBe(false);
    expect(names(hub, hub.session)).toContain("notes__add");
    await write(hub, ...changes);
    expect(existsSync(file)).toBe(true);
    expect(names(hub, hub.session)).not.toContain("notes__add");
  });

  it("[joy-03c] of several servers in the store changes all or none", async () => {
    const hub = await start();
    await addNotes(hub);
    await addNotes(hub, "more");
    const kept = (await hub.servers.get("notes"))?.config;
    expect(kept).toBeDefined();
    const more: ConfigChange = { kind: "server", serverId: "more", updates: { name: "More" } };
    const secure = vi.spyOn(ServerSecrets.prototype, "secure");
    for (const updates of [{ name: "Notes" }, null]) {
      secure.mockImplementation(async (id, entry) => {
        if (id === "more") throw new Error("the store is full");
        return { entry, undo: async () => {} };
      });
      const changes: ConfigChange[] = [{ kind: "server", serverId: "notes", updates }, more];
      await expect(write(hub, ...changes)).rejects.toThrow("the store is full");
      expect((await hub.servers.get("notes"))?.config).toEqual(kept);
    }
    secure.mockRestore();
    await write(hub, { kind: "server", serverId: "notes", updates: null }, more);
    expect(await hub.servers.get("notes")).toBeUndefined();
    expect((await hub.servers.get("more"))?.config["name"]).toBe("More");
  });

  it("[joy-03c] of what another file has is refused", async () => {
    const other = join(dir, "other.json");
    const notes = new OfferingServer(dir, "notes");
    notes.offer({ tools: [tool("add")] });
    writeFileSync(other, JSON.stringify({ mcpServers: { notes: notes.entry } }));
    const hub = await start(`,\n  "import": [${JSON.stringify(other)}]`);
    expect(names(hub, hub.session)).toContain("notes__add");
    await expect(write(hub, { kind: "server", serverId: "notes", updates: { name: "N" } })).rejects.toMatchObject({
      code: "conflict",
      details: { file: other },
    });
    await write(hub, deny("notes__add"));
    expect(names(hub, hub.session)).not.toContain("notes__add");
  });

  it.skipIf(process.getuid?.() === 0)("[joy-03c] to a folder that cannot be written says so", async () => {
    const hub = await start();
    chmodSync(home, 0o500);
    try {
      await expect(write(hub, deny("git__push"))).rejects.toMatchObject({ code: "conflict" });
    } finally {
      chmodSync(home, 0o700);
    }
  });

  it("[joy-03c] makes the file of the home where there is none, and refuses a config given in code", async () => {
    hub = await createHub(undefined, { env: { ...process.env, TOOLCRIB_HOME: home }, cwd: dir } as never);
    const plan = await write(hub, deny("git__push"));
    expect(plan.diffs[0]?.where).toBe(file);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ mcpServers: {}, tools: { deny: ["git__push"] } });
    await hub.close();
    hub = await createHub({ mcpServers: {} }, { env: { ...process.env, TOOLCRIB_HOME: home } });
    await expect((await hub.internals.changes()).preview([deny("a")])).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("roles", () => {
  it("[joy-03d] are made, edited key by key, and removed", async () => {
    const hub = await start();
    const before = readFileSync(file, "utf8");
    await write(hub, { kind: "role", role: "coder", settings: { servers: ["git"], tools: { ask: ["git__push"] } } });
    expect(names(hub, hub.openSession({ role: "coder" }))).toEqual(["git__push", "git__pull", "git__log"]);
    await write(hub, { kind: "role", role: "coder", settings: { servers: null } });
    expect(names(hub, hub.openSession({ role: "coder" }))).toHaveLength(5);
    const plan = await write(hub, { kind: "role", role: "coder", settings: null });
    expect(plan.effect.roles).toEqual([
      expect.objectContaining({ role: "coder", counts: { loses: 5, gains: 0, asks: 0, frees: 0 } }),
    ]);
    expect(JSON.parse(readFileSync(file, "utf8").replace("// Mine.", ""))).toEqual(
      expect.objectContaining({ mcpServers: JSON.parse(before.replace("// Mine.", "")).mcpServers as unknown }),
    );
    await expect(write(hub, { kind: "role", role: "nobody", settings: null })).rejects.toMatchObject({
      code: "not_found",
    });
  });
});

describe("servers of the file", () => {
  it("[joy-03e] are edited in place, with secrets masked in the diff and kept in the file", async () => {
    const hub = await start(
      "",
      `, "headers": { "X-Team": "a" }, "env": { "GIT_TOKEN": "plain-secret-4711", "MODE": "a" }`,
    );
    const changes: ConfigChange[] = [{ kind: "server", serverId: "git", updates: { env: { MODE: "b" }, name: "Git" } }];
    const plan = await (await hub.internals.changes()).preview(changes);
    expect(JSON.stringify(plan)).not.toContain("plain-secret-4711");
    await write(hub, ...changes);
    expect(readFileSync(file, "utf8")).toContain("plain-secret-4711");
    expect(readFileSync(file, "utf8")).toContain('"MODE": "b"');
    expect(readFileSync(file, "utf8")).toContain("// Mine.");
    expect(hub.servers.list().find(({ id }) => id === "git")?.name).toBe("Git");
    const masked = { env: { GIT_TOKEN: "********" } };
    const detail = await hub.servers.get("git");
    const { GIT_TOKEN: shown = "" } = (detail?.config["env"] ?? {}) as Record<string, string>;
    expect(shown).not.toContain("plain");
    masked.env.GIT_TOKEN = shown;
    await expect(write(hub, { kind: "server", serverId: "git", updates: masked })).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });

  it("[joy-03e] are disabled and removed, several at once, with the tools that clients lose", async () => {
    const hub = await start();
    const off = ["git", "files"].map((serverId): ConfigChange => ({
      kind: "server",
      serverId,
      updates: { enabled: false },
    }));
    const plan = await write(hub, ...off);
    expect(plan.effect.roles).toEqual([
      expect.objectContaining({ role: null, counts: { loses: 5, gains: 0, asks: 0, frees: 0 } }),
    ]);
    expect(hub.servers.list().map(({ state }) => state)).toEqual(["disabled", "disabled"]);
    await write(hub, { kind: "server", serverId: "git", updates: null });
    expect(hub.servers.list().map(({ id }) => id)).toEqual(["files"]);
  });
});

describe("tokens", () => {
  it("[joy-03f] are made once, stored as a digest, and revoked by name", async () => {
    const hub = await start();
    const add: ConfigChange = { kind: "token", name: "laptop", user: "ada", scopes: ["read", "call"] };
    const plan = await (await hub.internals.changes()).preview([add]);
    expect(plan.token).toBeUndefined();
    expect(plan.notes.join(" ")).toContain("http.auth is new");
    const { token = "" } = await write(hub, add);
    expect(token).toMatch(/^tc_[\w-]{43}$/);
    expect(readFileSync(file, "utf8")).not.toContain(token);
    expect(hub.config.config.http.auth?.tokens).toEqual([
      expect.objectContaining({ name: "laptop", sha256: createHash("sha256").update(token).digest("hex") }),
    ]);
    await expect(write(hub, add)).rejects.toMatchObject({ code: "conflict" });
    await expect(write(hub, { ...add, name: "a" }, { ...add, name: "b" })).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    const left = await write(hub, { kind: "revokeToken", name: "laptop" });
    expect(left.notes.join(" ")).toContain("No token is left");
    expect(hub.config.config.http.auth).toEqual({ tokens: [] });
    await expect(write(hub, { kind: "revokeToken", name: "laptop" })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("entries with wrong values", () => {
  const change = (serverId: string, updates: JsonObject): ConfigChange => ({ kind: "server", serverId, updates });

  it("[whole-01d] are not written, and the message says what is allowed", async () => {
    const hub = await start();
    const before = readFileSync(file, "utf8");
    const refusal = write(hub, change("git", { timeout: "long" }));
    await expect(refusal).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringMatching(/mcpServers\.git\.timeout: found "long"; expected a whole number above 0$/),
    });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("[whole-01d] that the file has already do not keep others from being changed", async () => {
    const hub = await start("", `, "timeout": "long"`);
    expect((await write(hub, change("files", { timeout: 5000 }))).saved).toBe(true);
    expect(hub.servers.list()).toMatchObject([
      { id: "git", state: "failed" },
      { id: "files", state: "ready" },
    ]);
    await expect(write(hub, change("git", { timeout: "longer" }))).rejects.toMatchObject({ code: "invalid_config" });
    expect((await write(hub, change("git", { timeout: 5000 }))).saved).toBe(true);
    expect(hub.servers.list()).toMatchObject([{ id: "git", state: "ready" }, { id: "files" }]);
  });

  it("[whole-01d] are neither replaced nor made right by a rule beside them", async () => {
    const hub = await start(`,\n  "roles": { "coder": {} }`, `, "tools": { "deny": "push" }`);
    const before = readFileSync(file, "utf8");
    const rule: ConfigChange = { kind: "rule", verdict: "deny", serverId: "git", patterns: ["pull"] };
    await expect(write(hub, rule)).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("mcpServers.git.tools.deny is not a list"),
    });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("[whole-01b] a key that is set takes the place of another program's word for it", async () => {
    const hub = await start("", `, "workingDir": "/", "connectTimeoutMs": 9000, "isActive": false`);
    expect((await write(hub, change("git", { cwd: "/tmp", timeout: null, enabled: true }))).saved).toBe(true);
    expect(hub.config.servers[0]).toMatchObject({ id: "git", cwd: "/tmp", timeout: 30_000, enabled: true });
    expect(readFileSync(file, "utf8")).not.toMatch(/workingDir|connectTimeoutMs|isActive/);
  });

  it("[whole-01d] a list of allowed tools, as other programs have it, stays beside a rule of ours", async () => {
    const hub = await start("", `, "tools": ["pull", "log"]`);
    await write(hub, change("git", { tools: { deny: ["log"] } }));
    expect(names(hub, hub.openSession({ door: "mcp" })).filter((name) => name.startsWith("git"))).toEqual([
      "git__pull",
    ]);
  });
});
