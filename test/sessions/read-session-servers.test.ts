import { describe, expect, it } from "vitest";
import { ConfigSchema } from "../../src/model/config.ts";
import type { SessionNotice, SessionServers } from "../../src/sessions/session-parts.ts";
import {
  type SessionServerEntry,
  baseId,
  readSessionServers,
  type ReadServersOptions,
} from "../../src/sessions/read-session-servers.ts";

function read(
  given: unknown,
  options: Partial<ReadServersOptions> = {},
): { servers: SessionServerEntry[]; told: SessionNotice[] } {
  const told: SessionNotice[] = [];
  // What clients send may be anything.
  const servers = readSessionServers(given as SessionServers, {
    workspaceDir: "/work",
    mayRunCommands: true,
    references: new Set(),
    toolTimeout: 120_000,
    serverDefaults: { config: ConfigSchema.parse({}), baseDir: "/config" },
    tell: (notice) => told.push(notice),
    ...options,
  });
  return { servers, told };
}

const said = (told: readonly SessionNotice[]): string => told.map(({ message }) => message).join("\n");

describe("[agent-03b] entries that a client sends", () => {
  it("are taken as a list, as an object, or as a whole config", () => {
    const entry = { command: "prog" };
    for (const given of [
      [{ name: "a", ...entry }],
      { a: entry },
      { mcpServers: { a: entry } },
      { mcpServers: [{ name: "a", ...entry }] },
    ]) {
      const { servers, told } = read(given);
      expect(servers).toMatchObject([{ name: "a", spec: { name: "a", command: "prog", cwd: "/work" } }]);
      expect(told).toEqual([]);
    }
  });

  it("[counter-08e] have no say in what they inherit", () => {
    for (const wish of [{ inherit: ["SECRET"] }, { env: { inherit: ["SECRET"] } }]) {
      const { servers, told } = read([{ name: "a", command: "p", ...wish }]);
      expect(servers[0]?.spec).not.toHaveProperty("inherit");
      expect(said(told)).toContain("not used: inherit");
    }
    const serverDefaults = { config: ConfigSchema.parse({ env: { inherit: ["X"] } }), baseDir: "/config" };
    expect(read([{ name: "a", command: "p" }], { serverDefaults }).servers[0]?.spec.hubInherit).toEqual(["X"]);
  });

  it("may have any name, also one that the config keeps for itself", () => {
    const { servers, told } = read([
      { name: "local", command: "prog" },
      { name: "1: a/b", command: "prog" },
    ]);
    expect(servers.map(({ name }) => name)).toEqual(["local", "1: a/b"]);
    expect(told).toEqual([]);
  });

  it("mean the same in every spelling, and something else with another value", () => {
    const keyOf = (entry: object): unknown => read([{ name: "a", ...entry }]).servers[0]?.key;
    const plain = keyOf({ command: "p", args: ["x"], env: { A: "1" } });
    expect(keyOf({ type: "stdio", args: ["x"], env: [{ name: "A", value: "1" }], command: "p" })).toBe(plain);
    expect(keyOf({ command: "p", args: ["x"], env: { A: "1" }, headers: null, _meta: { x: 1 } })).toBe(plain);
    expect(keyOf({ command: "p", args: ["x"], env: { A: "2" } })).not.toBe(plain);
    expect(keyOf({ type: "http", url: "https://a.test/mcp", headers: [] })).not.toBe(plain);
  });

  it.each([
    [[7], "has no name"],
    [[{ name: " " }], "has no name"],
    [{ a: "text" }, "its entry is not an object"],
    [{ a: {} }, "left out"],
    [{ a: { command: "p", args: "x y" } }, ""],
    [{ a: { command: "p", env: 7 } }, "left out"],
    [{ a: { command: "p", disabled: true } }, "disables it"],
    [{ a: { command: "toolcrib", args: ["mcp"] } }, "Toolcrib itself"],
    ["text", "neither a list nor an object"],
    [null, "neither a list nor an object"],
  ])("leave out %j and no other", (given, reason) => {
    const good = { name: "good", command: "p" };
    const all = Array.isArray(given) ? [...given, good] : isRecord(given) ? { ...given, good } : given;
    const { servers, told } = read(all);
    if (reason !== "") expect(said(told)).toContain(reason);
    expect(servers.some(({ name }) => name === "good")).toBe(typeof all === "object" && all !== null);
  });

  it("do not get what only an operator grants", () => {
    const privileged = { trust: "trusted", toolPrefix: "", roles: ["x"], tags: ["safe"], isolation: "user" };
    const { servers, told } = read({ a: { command: "p", ...privileged, name: "Pretty" } });
    expect(servers[0]?.spec).toMatchObject({ trust: "untrusted", isolation: "shared", name: "a" });
    for (const key of ["toolPrefix", "roles", "tags"]) expect(servers[0]?.spec).not.toHaveProperty(key);
    expect(said(told)).toContain("not used: isolation, roles, tags, toolPrefix, trust");
  });

  it("[cage-01a] a client's program is in the hub's cage, whatever the client says", () => {
    const serverDefaults = { config: ConfigSchema.parse({ sandbox: { read: ["data"] } }), baseDir: "/config" };
    const given = { a: { command: "prog", sandbox: "none" }, b: { url: "https://h.test/mcp" } };
    const { servers, told } = read(given, { serverDefaults });
    expect(servers.map(({ spec }) => spec.sandbox)).toEqual([{ read: ["/config/data"], network: "none" }, undefined]);
    expect(said(told)).toContain("not used: sandbox");
    const image = { c: { sandbox: { image: "thing" } } };
    const none = read(image, { serverDefaults });
    expect(none.servers).toEqual([]);
    expect(said(none.told)).toContain("neither a command nor a url");
  });

  it("[cage-01a] [cage-02a] a client calls none a skill's, and its folders are those of its workspace", () => {
    const serverDefaults = {
      config: ConfigSchema.parse({ sandbox: "bubblewrap", skills: { sandbox: "none" } }),
      baseDir: "/c",
    };
    const given = { a: { command: "prog", skill: "skill-x", cwd: "/elsewhere" } };
    const { servers, told } = read(given, { serverDefaults, workspaceDir: "/work" });
    expect(servers[0]?.spec).toMatchObject({ sandbox: "bubblewrap", cwd: "/elsewhere", ownFolder: "/work" });
    expect(servers[0]?.spec).not.toHaveProperty("skill");
    expect(said(told)).toContain("not used: skill");
    expect(read(given, { serverDefaults, workspaceDir: undefined }).servers[0]?.spec.ownFolder).toBeNull();
  });

  it("with one name are told apart, and names are made fit to be shown", () => {
    const { servers, told } = read([
      { name: "a", command: "p" },
      { name: "a", command: "q" },
      { name: 'x\n"y"/z', command: "p" },
      { name: "é".repeat(200), command: "p" },
    ]);
    expect(servers.map(({ name }) => name)).toEqual(["a", "a-2", "x y /z", "é".repeat(80)]);
    expect(servers.map(({ name }) => baseId(name))).toEqual(["a", "a-2", "x y -z", "server"]);
    expect(said(told)).toContain('Several servers are named "a"');
  });

  it("have their references looked up where the program named them", () => {
    const entry = { a: { url: "https://a.test", headers: { X: "${HOME}" } } };
    expect(read(entry, { references: "any" })).toMatchObject({ servers: [{ resolvesReferences: true }], told: [] });
    expect(read({ a: { command: "p" } }, { references: "any" }).servers[0]?.resolvesReferences).toBe(false);
  });

  it.each([
    "${KEY}",
    "${KEY:-x}",
    "a ${KEY} b",
    "${env:KEY}",
    "${input:key}",
    "${workspaceFolder}",
    "${}",
    "secret://env/KEY",
    "Bearer secret://env/KEY",
    "SECRET://env/KEY",
    "${secret://env/KEY}",
    "secret://nonsense/x",
  ])("[trust-05a] with %j anywhere in them are left out, and the message says where", (text) => {
    const url = "https://a.test/mcp";
    for (const [where, entry] of [
      ["command", { command: text }],
      ["args[1]", { command: "p", args: ["x", text] }],
      ["env.A", { command: "p", env: { A: text } }],
      ["a name in env", { command: "p", env: { [text]: "x" } }],
      ["env[0].value", { command: "p", env: [{ name: "A", value: text }] }],
      ["cwd", { command: "p", cwd: text }],
      ["url", { url: `https://a.test/?k=${text}` }],
      ["headers.X", { url, headers: { X: text } }],
      ["headers[0].value", { url, headers: [{ name: "X", value: text }] }],
      ["auth.token", { url, auth: { type: "bearer", token: text } }],
      ["auth.key", { url, auth: { type: "api-key", key: text } }],
      ["transport.url", { transport: { type: "http", url: `https://a.test/${text}` } }],
      ["anything.else[0].at", { url, anything: { else: [{ at: text }] } }],
    ] as const) {
      const { servers, told } = read({ a: entry, good: { command: "p" } });
      expect(servers.map(({ name }) => name)).toEqual(["good"]);
      expect(told).toMatchObject([{ level: "warning", server: "a", hint: expect.stringContaining("allowReferences") }]);
      expect(said(told)).toContain(`: ${where} contains the reference `);
    }
  });

  it("[trust-05a] with a spelling that becomes a reference when it is read are left out as well", () => {
    const { servers, told } = read({ a: { command: "p", env: { A: "$KEY" } } });
    expect(servers).toEqual([]);
    expect(said(told)).toContain("env.A contains the reference ${KEY}");
  });

  it("[trust-05b] may hold what only looks like a reference, and what `$${` stands for", () => {
    for (const text of [
      "pa$$word",
      "a${b",
      "$home",
      "%PATH%",
      "$${KEY}",
      "$$${KEY}",
      "secret:/env/KEY",
      "top-secret",
    ]) {
      const { servers, told } = read({ a: { command: "p", env: { A: text } } });
      expect([servers.length, servers[0]?.resolvesReferences, told], text).toEqual([1, false, []]);
    }
  });

  it("[trust-05c] may hold exactly the references that the config lists", () => {
    const references = new Set(["${KEY}", "secret://env/KEY"]);
    const of = (text: string): ReturnType<typeof read> =>
      read({ a: { command: "p", env: { A: text } } }, { references });
    for (const text of ["${KEY}", "secret://env/KEY", "Bearer secret://env/KEY!", "${KEY}${KEY}"]) {
      expect(of(text), text).toMatchObject({ servers: [{ resolvesReferences: true }], told: [] });
    }
    for (const text of [
      "${KEYS}",
      "${KEY:-x}",
      "secret://env/KEY2",
      "${KEY}${OTHER}",
      "${secret://env/KEY}",
      "${env:KEY}",
    ]) {
      expect(of(text), text).toMatchObject({ servers: [], told: [{ level: "warning" }] });
    }
  });

  it("[trust-05a] show no default of a reference, which may be the secret itself", () => {
    const { told } = read({ a: { command: "p", env: { A: "${KEY:-hunter2-and-more}" } } });
    expect(said(told)).toContain("${KEY:-…}");
    expect(said(told)).not.toContain("hunter2");
  });

  it("[agent-01f] may name no program without the right to run one", () => {
    const given = { a: { command: "p" }, b: { url: "https://b.test/mcp" } };
    const { servers, told } = read(given, { mayRunCommands: false });
    expect(servers.map(({ name }) => name)).toEqual(["b"]);
    expect(told).toMatchObject([{ level: "warning", server: "a", hint: expect.stringContaining("admin") }]);
  });
});

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
