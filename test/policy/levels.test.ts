import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolRules } from "../../src/model/server-spec.ts";
import { compilePattern, ToolClasses } from "../../src/policy/pattern.ts";
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
