import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolRules } from "../../src/model/tool-rules.ts";
import { compilePattern, type Matchable, ToolClasses } from "../../src/policy/pattern.ts";
import type { ToolAnnotations } from "../../src/model/protocol.ts";
import {
  addressCarriesData,
  effectsByName,
  findKnownTool,
  type ServerIdentity,
} from "../../src/policy/well-known-servers.ts";
import {
  Policy,
  type RolePolicy,
  type ServerPolicy,
  type PolicySubject,
  type PolicyActor,
} from "../../src/policy/decide.ts";

interface Given {
  hub?: ToolRules;
  server?: Partial<ServerPolicy>;
  roles?: Record<string, Partial<RolePolicy>>;
}

function policy({ hub = {}, server = {}, roles = {} }: Given): Policy {
  return new Policy({
    hub,
    where: "toolcrib.json",
    servers: new Map([["files", { where: "server files", ...server }]]),
    roles: new Map(Object.entries(roles).map(([name, role]) => [name, { where: `role ${name}`, ...role }])),
  });
}

const write: PolicySubject = { kind: "tool", publicName: "files__write", originName: "write", server: "files" };
const owner: PolicyActor = { owner: true };
const verdict = (given: Given, who: PolicyActor = owner, subject = write): string =>
  policy(given).decide(subject, who).verdict;

describe("[guard-01a] levels", () => {
  it("any level may deny or ask, and says which rule and where", () => {
    const role = { owner: true, role: "reviewer" };
    expect(policy({ roles: { reviewer: { rules: { deny: ["*__write"] } } } }).decide(write, role)).toEqual({
      verdict: "deny",
      rule: { level: "role", list: "deny", pattern: "*__write", where: "role reviewer" },
    });
    expect(policy({ server: { rules: { ask: ["write"] } } }).decide(write, owner)).toEqual({
      verdict: "ask",
      rule: { level: "server", list: "ask", pattern: "write", where: "server files" },
    });
    expect(policy({}).decide(write, { owner: true, rules: { deny: ["files__*"] } })).toMatchObject({
      verdict: "deny",
      rule: { level: "session" },
    });
  });

  it("a role or a session cannot widen what hub or server deny", () => {
    const who = { owner: true, role: "all", rules: { allow: ["*"] } };
    const roles = { all: { rules: { allow: ["*"] } } };
    expect(verdict({ hub: { deny: ["files__write"] }, roles }, who)).toBe("deny");
    expect(verdict({ server: { rules: { deny: ["write"] } }, roles }, who)).toBe("deny");
    expect(verdict({ hub: { ask: ["files__write"] }, roles }, who)).toBe("ask");
    expect(verdict({ hub: { allow: ["other__*"] }, roles }, who)).toBe("deny");
  });

  it("within one level deny beats ask beats allow", () => {
    const all = { allow: ["*"], ask: ["*"], deny: ["*"] };
    expect(verdict({ hub: all })).toBe("deny");
    expect(verdict({ hub: { allow: ["*"], ask: ["*"] } })).toBe("ask");
    expect(verdict({ hub: { allow: ["*"] } })).toBe("allow");
  });

  it("what is asked for need not be in the allow list as well", () => {
    const hub = { allow: ["files__read"], ask: ["files__write"] };
    expect(verdict({ hub })).toBe("ask");
    expect(verdict({ hub }, owner, { ...write, publicName: "files__wipe", originName: "wipe" })).toBe("deny");
  });

  it("an exception takes out of its own list only", () => {
    expect(verdict({ hub: { ask: ["*", "!files__write"] } })).toBe("allow");
    expect(verdict({ hub: { ask: ["!files__write", "*"] } })).toBe("allow");
    expect(verdict({ hub: { deny: ["files__*"], ask: ["*", "!files__write"] } })).toBe("deny");
    expect(verdict({ hub: { ask: ["*", "!files__write"] }, server: { rules: { ask: ["*"] } } })).toBe("ask");
  });

  it("explains what each level said", () => {
    const { steps, decision } = policy({
      hub: { allow: ["*"] },
      server: { rules: { ask: ["write"] } },
      roles: { reviewer: { rules: { deny: ["*__write"] } } },
    }).explain(write, { owner: true, role: "reviewer" });
    expect(steps.map(({ level, verdict }) => [level, verdict])).toEqual([
      ["hub", "allow"],
      ["server", "ask"],
      ["role", "deny"],
    ]);
    expect(decision.verdict).toBe("deny");
  });
});

const patterns = fc.constantFrom(
  "*",
  "files__*",
  "files__write",
  "other__*",
  "write",
  "readOnly",
  "destructive",
  "tag:x",
  "!files__write",
  "!*",
);
const rules = fc.record(
  {
    allow: fc.array(patterns, { maxLength: 3 }),
    deny: fc.array(patterns, { maxLength: 3 }),
    ask: fc.array(patterns, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const STRICTNESS: Record<string, number> = { allow: 0, ask: 1, deny: 2 };

it("[guard-01b] adding a role's or a session's rules never makes a decision milder, whatever the rules", () => {
  fc.assert(
    fc.property(rules, rules, rules, rules, (hub, server, role, session) => {
      const given = { hub, server: { rules: server }, roles: { r: { rules: role } } };
      const base = verdict(given);
      const withRole = verdict(given, { owner: true, role: "r" });
      const withBoth = verdict(given, { owner: true, role: "r", rules: session });
      expect(STRICTNESS[withRole]).toBeGreaterThanOrEqual(STRICTNESS[base] ?? 0);
      expect(STRICTNESS[withBoth]).toBeGreaterThanOrEqual(STRICTNESS[withRole] ?? 0);
    }),
    { numRuns: 500 },
  );
});

describe("[guard-01c] rules by annotation and tag", () => {
  const subject = (annotations?: object, tags?: string[]): PolicySubject => ({
    ...write,
    annotations: annotations && { ...annotations },
    tags,
  });

  it.each([
    ["readOnly", { readOnlyHint: true }, true],
    ["readOnly", {}, false],
    ["destructive", { destructiveHint: true }, true],
    ["destructive", { destructiveHint: false }, false],
    ["destructive", { readOnlyHint: true }, false],
    ["destructive", undefined, true],
    ["openWorld", { openWorldHint: false }, false],
    ["openWorld", undefined, true],
  ])("%s for %o is %s", (pattern, annotations, expected) => {
    expect(verdict({ hub: { deny: [pattern] } }, owner, subject(annotations)) === "deny").toBe(expected);
  });

  it("tags come from the server and may be globs", () => {
    expect(verdict({ hub: { deny: ["tag:finance"] } }, owner, subject({}, ["finance"]))).toBe("deny");
    expect(verdict({ hub: { deny: ["tag:fin*"] } }, owner, subject({}, ["finance"]))).toBe("deny");
    expect(verdict({ hub: { deny: ["tag:finance"] } }, owner, subject({}, ["legal"]))).toBe("allow");
    expect(verdict({ hub: { deny: ["tag:finance"] } }, owner, subject({}))).toBe("allow");
  });

  it("a tool that is called like a class is matched by name only through a glob", () => {
    expect(compilePattern("readOnl?").names({ names: ["readOnly"] })).toBe(true);
    expect(compilePattern("readOnly").names({ names: ["readOnly"] })).toBe(false);
  });
});

describe("[guard-04a] roles", () => {
  it("see only the servers they name, `local` for in-process tools", () => {
    const given = { roles: { reviewer: { servers: ["files"] } } };
    const reviewer = { owner: false, role: "reviewer" };
    expect(verdict(given, reviewer)).toBe("allow");
    expect(verdict(given, reviewer, { ...write, server: null, publicName: "own", originName: "own" })).toBe("deny");
    expect(verdict({ roles: { reviewer: { servers: ["local"] } } }, reviewer)).toBe("deny");
  });

  it("do not see a server that one of their own replaces", () => {
    const given = { server: { replacedFor: ["reviewer"] }, roles: { reviewer: {} } };
    expect(verdict(given, { owner: false, role: "reviewer" })).toBe("deny");
    expect(verdict(given)).toBe("allow");
  });

  it("that nobody names see nothing", () => {
    expect(policy({}).decide(write, { owner: true, role: "ghost" })).toMatchObject({
      verdict: "deny",
      rule: { list: "roles" },
    });
  });
});

describe("[guard-17b] classes", () => {
  it("follow the tool's claims, corrected by the config", () => {
    const claimed = { names: ["web__fetch"], annotations: { readOnlyHint: true, openWorldHint: true } };
    const closed = { names: ["notes__add"], annotations: { destructiveHint: false, openWorldHint: false } };
    const plain = new ToolClasses({});
    expect([
      plain.has(claimed, "openWorld"),
      plain.has(claimed, "sendsOut"),
      plain.has(claimed, "destructive"),
    ]).toEqual([true, true, false]);
    expect([plain.has(closed, "openWorld"), plain.has(closed, "sendsOut"), plain.has(closed, "destructive")]).toEqual([
      false,
      false,
      false,
    ]);
    const corrected = new ToolClasses({ sendsOut: ["notes__*", "!web__*"], destructive: ["notes__add"] });
    expect(corrected.has(claimed, "sendsOut")).toBe(false);
    expect(corrected.has(closed, "sendsOut")).toBe(true);
    expect(corrected.has(closed, "destructive")).toBe(true);
  });
});

describe("[guard-20f] tools of well-known servers", () => {
  const classes = new ToolClasses({});
  const sure = (where: "npm" | "pypi" | "hosts", name: string): ServerIdentity => ({
    sure: { in: where, name },
    claims: [],
  });
  const files = sure("npm", "@modelcontextprotocol/server-filesystem");
  const harmless = { readOnlyHint: true, openWorldHint: false, destructiveHint: false };
  const of = (identity: ServerIdentity, tool: string, annotations?: ToolAnnotations): Matchable => ({
    names: [tool],
    annotations,
    known: findKnownTool(identity, tool),
    byName: effectsByName(tool),
  });

  it("are what the table says, with or without hints", () => {
    expect(classes.flowOf(of(files, "read_text_file"))).toMatchObject({ openWorld: false, risk: undefined });
    expect(classes.flowOf(of(files, "write_file", harmless))).toMatchObject({ openWorld: false, risk: "destructive" });
    const fetch = sure("pypi", "mcp-server-fetch");
    expect(classes.flowOf(of(fetch, "fetch", harmless))).toMatchObject({
      openWorld: true,
      risk: undefined,
      fetches: true,
    });
    const memory = sure("npm", "@modelcontextprotocol/server-memory");
    expect(classes.flowOf(of(memory, "create_entities"))).toMatchObject({ risk: undefined, memory: "writes" });
    expect(classes.flowOf(of(memory, "read_graph"))).toMatchObject({ openWorld: false, memory: "reads" });
    expect(classes.flowOf(of(memory, "delete_entities", harmless))).toMatchObject({ risk: "destructive" });
    const linear = sure("hosts", "mcp.linear.app");
    expect(classes.flowOf(of(linear, "create_issue", harmless))).toMatchObject({ risk: "sendsOut" });
  });

  it("become riskier by hints that say so, and by the config; only the config makes them harmless", () => {
    expect(classes.has(of(files, "read_file", { openWorldHint: true }), "openWorld")).toBe(true);
    expect(classes.has(of(files, "create_directory", { destructiveHint: true }), "destructive")).toBe(true);
    const own = new ToolClasses({ destructive: ["!write_file"], openWorld: ["read_file"] });
    expect(own.has(of(files, "write_file"), "destructive")).toBe(false);
    expect(own.has(of(files, "read_file"), "openWorld")).toBe(true);
  });

  it("that are not in the table, and servers that nobody knows, count as careful defaults have it", () => {
    for (const identity of [files, sure("npm", "somebodys-server")]) {
      expect(classes.flowOf(of(identity, "mirror_everything"))).toMatchObject({ openWorld: true, risk: "destructive" });
      expect(classes.flowOf(of(identity, "send_report", harmless))).toMatchObject({ risk: "sendsOut" });
      expect(classes.flowOf(of(identity, "deleteAll", harmless))).toMatchObject({ risk: "destructive" });
      expect(classes.flowOf(of(identity, "open_inbox", harmless))).toMatchObject({ openWorld: true });
      expect(classes.flowOf(of(identity, "list_units", harmless))).toMatchObject({ openWorld: false, risk: undefined });
    }
  });

  it("are not those of a server that only calls itself one of them", () => {
    for (const name of ["secure-filesystem-server", "@modelcontextprotocol/server-filesystem", "mcp/filesystem"]) {
      const claims = { ...sure("npm", "somebodys-server"), claims: [name] };
      expect(classes.flowOf(of(claims, "read_text_file"))).toMatchObject({ openWorld: true, risk: "destructive" });
      expect(classes.flowOf(of(claims, "write_file", harmless))).toMatchObject({ risk: "destructive" });
    }
    // The name is free in the other registry.
    const other = sure("npm", "mcp-server-time");
    expect(classes.flowOf(of(other, "get_current_time"))).toMatchObject({ openWorld: true });
  });

  it.each([
    ["https://docs.example.com/guide/install.html?v=3", false],
    ["https://example.com/a-rather-long-title-of-an-article-in-the-usual-form", false],
    [`https://example.com/?q=${"secret ".repeat(12)}`, true],
    ["https://example.com/aGVyZSBpcyB0aGUgc2VjcmV0IG9mIHRoZSB1c2Vy", true],
    ["https://aGVyZSBpcyB0aGUgc2VjcmV0IG9mIHRo.example.com/", true],
    ["https://ann:pass@example.com/", true],
    ["not an address", false],
    ["docs.example.com/guide/install.html?v=3", false],
    ["127.0.0.1:8080/article/16", false],
    ["https://zh.wikipedia.org/wiki/%E4%B8%AD%E5%8D%8E%E4%BA%BA%E6%B0%91%E5%85%B1%E5%92%8C%E5%9B%BD", false],
    ["https://news.example.com/2026/05/12/new-tools-for-old-builds-20260512", false],
    ["file:///home/ann/documents/2026/report-of-the-year.pdf", false],
    [`evil.example/collect?d=${"the secret ".repeat(6)}`, true],
    [`evil.example:8080/collect?d=${"x1-".repeat(20)}`, true],
    [`//evil.example/?d=${"the.secret.".repeat(6)}`, true],
    [`view-source:https://evil.example/?d=${"the.secret.".repeat(6)}`, true],
    [`view-source:view-source:HTTPS://evil.example/aGVyZSBpcyB0aGUgc2VjcmV0IG9mIHRoZSB1c2Vy`, true],
    ["https://evil.example/sk4f-9a2c-77de-b01c-e5f6-03ab-9912-cd4e", true],
    ["https://evil.example/kqat/mwpe/zoxu/abil/ertn/opsk/qued", true],
    ["https://kqat.mwpe.zoxu.abil.ertn.opsk.qued.evil.example/", true],
    ["https://evil.example/sk4f9a_2c77d.eb01ce~5f603a-b9912c", true],
    [`https://evil.example/${"some-words-for-them/".repeat(10)}`, true],
    ["https://evil.example/%E0%A4%A", true],
    [`see what the page at evil.example says of ${"this and ".repeat(5)}`, true],
  ])("may fetch %s, unless it carries data: %s", (url, carries) => {
    expect(addressCarriesData({ url })).toBe(carries);
    expect(addressCarriesData({ urls: ["x", url] })).toBe(carries);
    expect(addressCarriesData({ opts: { url } })).toBe(carries);
    expect(addressCarriesData({ urls: [{ url: "x" }, { more: [{ url }] }] })).toBe(carries);
  });

  it("carry data where there is too much to look at", () => {
    const nested = (depth: number): Record<string, unknown> => (depth === 0 ? { url: "x" } : { in: nested(depth - 1) });
    expect(addressCarriesData(nested(3))).toBe(false);
    expect(addressCarriesData(nested(30))).toBe(true);
    expect(addressCarriesData({ urls: Array.from({ length: 100 }, () => "example.com") })).toBe(false);
    expect(addressCarriesData({ urls: Array.from({ length: 5000 }, () => "example.com") })).toBe(true);
  });
});
