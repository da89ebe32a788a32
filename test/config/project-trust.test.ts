import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isTrusted, onlyNarrows, trustRecordOf, trustCommand, trustSubjectOf } from "../../src/config/project-trust.ts";
import type { ToolRules } from "../../src/model/tool-rules.ts";
import { Policy } from "../../src/policy/decide.ts";

const NAMES = ["a__x", "a__y", "b__x", "b__y"];
const STRICTNESS = { allow: 0, ask: 1, deny: 2 };

const pattern = fc.constantFrom("*", "a__*", "*__x", "a__x", "b__y", "!a__x", "!b__*", "!*__y");
const list = fc.option(fc.array(pattern, { maxLength: 4 }), { nil: undefined });
const rules = fc.record({ allow: list, deny: list, ask: list });

/** Most pairs differ in everything; these differ in an entry or two, as edits do. */
const edit = rules.chain((before) =>
  fc
    .record({
      key: fc.constantFrom("allow", "deny", "ask"),
      adds: fc.array(pattern, { maxLength: 2 }),
      drops: fc.nat(3),
    })
    .map(({ key, adds, drops }) => {
      const kept = ((before as Record<string, string[] | undefined>)[key] ?? []).slice(drops > 1 ? 1 : 0);
      return [before, { ...before, [key]: [...kept, ...adds] }] as const;
    }),
);

function strictness({ allow, deny, ask }: ToolRules, name: string): number {
  const policy = new Policy({ hub: { allow, deny, ask }, where: "test", servers: new Map() });
  const subject = { kind: "tool", publicName: name, originName: name, server: "s" } as const;
  return STRICTNESS[policy.decide(subject, { owner: true }).verdict];
}

describe("[trust-01h] a change of rules needs no new question", () => {
  it("only if no name gets more than before", () => {
    let narrower = 0;
    fc.assert(
      fc.property(fc.oneof(edit, fc.tuple(rules, rules)), ([before, after]) => {
        if (!onlyNarrows({ tools: before }, { tools: after })) return;
        narrower += 1;
        for (const name of NAMES) expect(strictness(after, name)).toBeGreaterThanOrEqual(strictness(before, name));
      }),
      { numRuns: 5000 },
    );
    expect(narrower).toBeGreaterThan(200);
  });

  it.each<[string, object, object, boolean]>([
    ["more is denied", { tools: { deny: ["a"] } }, { tools: { deny: ["b", "a"] } }, true],
    ["less is denied", { tools: { deny: ["a", "b"] } }, { tools: { deny: ["b"] } }, false],
    ["an exception", { tools: { deny: ["a"] } }, { tools: { deny: ["a", "!a"] } }, false],
    ["no exception any more", { tools: { deny: ["a", "!a"] } }, { tools: { deny: ["a"] } }, true],
    ["the list is gone", { tools: { ask: ["a"] } }, {}, false],
    ["more is asked for", {}, { tools: { ask: ["a"] } }, true],
    [
      "what is asked for need not be allowed",
      { tools: { allow: ["b"] } },
      { tools: { allow: ["b"], ask: ["a"] } },
      false,
    ],
    ["a first list of what is allowed", {}, { tools: { allow: ["a"] } }, true],
    ["more is allowed", { tools: { allow: ["a"] } }, { tools: { allow: ["a", "b"] } }, false],
    ["all is allowed again", { tools: { allow: ["a"] } }, { tools: {} }, false],
    ["a smaller limit", { limits: { concurrency: 4 } }, { limits: { concurrency: 3 } }, true],
    ["a larger limit", { limits: { concurrency: 4 } }, { limits: { concurrency: 5 } }, false],
    ["no limit any more", { limits: { concurrency: 4 } }, {}, false],
    ["a limit that is no number", {}, { limits: { concurrency: "many" } }, false],
    ["a stricter guard", { guard: { taint: "ask" } }, { guard: { taint: "deny" } }, true],
    ["a more lenient guard", { guard: { taint: "ask" } }, { guard: { taint: "off" } }, false],
    ["a stricter profile", { guard: "balanced" }, { guard: "strict" }, true],
    ["a more lenient profile", { guard: "balanced" }, { guard: "watch" }, false],
    ["a profile with a lenient key", { guard: "balanced" }, { guard: { profile: "balanced", taint: "off" } }, false],
    ["a profile with a stricter key", { guard: "balanced" }, { guard: { profile: "balanced", wrap: "all" } }, true],
    ["no profile any more", { guard: "strict" }, {}, false],
    ["a guard that nobody knows", {}, { guard: { other: "x" } }, false],
    ["no guard any more", { guard: { pins: "block" } }, { guard: {} }, false],
    ["a class gains a tool", { guard: { classes: {} } }, { guard: { classes: { destructive: ["a"] } } }, true],
    ["a class loses a tool", {}, { guard: { classes: { destructive: ["!a"] } } }, false],
    ["a server's tool is denied", {}, { servers: { a: { deny: ["x"] } } }, true],
    ["a server's tool is not denied any more", { servers: { a: { deny: ["x"] } } }, { servers: { a: {} } }, false],
    ["what is no list", {}, { tools: { deny: "a" } }, false],
  ])("%s", (_what, before, after, narrows) => {
    expect(onlyNarrows({ ...before }, { ...after })).toBe(narrows);
  });
});

describe("[trust-01c] what is trusted", () => {
  const content = (value: unknown, others: [string, string | null][] = [], real = "/p/toolcrib.json") => ({
    real,
    value,
    others: new Map(others),
  });
  const server = { command: "node", args: ["x.mjs"] };
  const trusted = trustRecordOf(trustSubjectOf(content({ mcpServers: { a: server } }, [["/p/i.json", "{}"]])), false);
  const holds = (value: unknown, others: [string, string | null][] = [["/p/i.json", "{}"]], real?: string): boolean =>
    isTrusted(trusted, trustSubjectOf(content(value, others, real)));

  it("is what can run or reach something, whatever the order of keys", () => {
    expect(holds({ mcpServers: { a: { args: ["x.mjs"], command: "node" } } })).toBe(true);
    expect(holds({ mcpServers: { a: { ...server, tools: { deny: ["x"] } } }, tools: { deny: ["*"] } })).toBe(true);
    for (const other of [
      { mcpServers: { a: { ...server, env: { NODE_OPTIONS: "--require=./x" } } } },
      { mcpServers: { a: { ...server, args: ["y.mjs"] } } },
      { mcpServers: { a: { ...server, cwd: "/" } } },
      { mcpServers: { a: { ...server, sandbox: "none" } } },
      { mcpServers: { a: server, b: server } },
      { mcpServers: {} },
      { mcpServers: { a: server }, plugins: ["./p.mjs"] },
      { mcpServers: { a: server }, guard: { detectors: [{ type: "module", path: "./d.mjs" }] } },
      { mcpServers: { a: server }, secrets: { exec: { op: ["op"] } } },
      { mcpServers: { a: server }, skills: { dirs: ["."] } },
      { mcpServers: { a: server }, import: ["./j.json"] },
      { mcpServers: { a: server }, tools: { naming: "{tool}" } },
      [],
      null,
    ]) {
      expect(holds(other)).toBe(false);
    }
  });

  it("is also what belongs to it, and where it really is", () => {
    const value = { mcpServers: { a: server } };
    expect(holds(value, [["/p/i.json", "{ }"]])).toBe(false);
    expect(holds(value, [["/p/i.json", null]])).toBe(false);
    expect(holds(value, [])).toBe(false);
    expect(holds(value, undefined, "/q/toolcrib.json")).toBe(false);
    expect(isTrusted(undefined, trustSubjectOf(content(value)))).toBe(false);
  });
});

it("[trust-01b] the command that trusts a file can be pasted into a shell", () => {
  expect(trustCommand("/w/app/toolcrib.json")).toBe("toolcrib trust /w/app/toolcrib.json");
  expect(trustCommand("/w/$(x) 'y'/toolcrib.json", true)).toBe(
    String.raw`toolcrib trust --shared '/w/$(x) '\''y'\''/toolcrib.json'`,
  );
  expect(trustCommand("/w/a\nb\u001b/toolcrib.json")).not.toMatch(/[\n\u001b]/);
});
