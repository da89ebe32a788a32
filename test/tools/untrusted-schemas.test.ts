import { describe, expect, it, vi } from "vitest";
import { checkModelArguments, checkUntrustedArguments } from "../../src/tools/check-arguments.ts";
import type { JsonObject } from "../../src/model/json.ts";
import {
  MAX_PATTERN_LENGTH,
  MAX_SCHEMA_BYTES,
  MAX_SCHEMA_DEPTH,
  MAX_SCHEMA_NODES,
  schemaSize,
} from "../../src/schemas/schema-size.ts";
import { checkUntrustedSchema, runWithinBudget, TimeBudgetExceeded } from "../../src/tools/untrusted-schemas.ts";
import { compileSchema } from "../../src/tools/validator.ts";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const withPattern = (pattern: string) => ({ type: "object", properties: { a: { type: "string", pattern } } });
const items = (pattern: string) => ({ properties: { a: { type: "array", items: { type: "string", pattern } } } });
const check = (parameters: JsonObject, args: JsonObject): Promise<JsonObject> =>
  checkUntrustedArguments({ name: "t", parameters }, args);

/** Work that the worker must give up. It would take minutes, so a fifth of the worker's three seconds shows as much. */
async function runWithShortLimit<T>(work: () => Promise<T>): Promise<T> {
  const { setTimeout } = globalThis;
  const limited = (done: () => void, ms: number): NodeJS.Timeout => setTimeout(done, ms === 3000 ? 600 : ms);
  vi.stubGlobal("setTimeout", limited);
  try {
    return await work();
  } finally {
    vi.unstubAllGlobals();
  }
}

function wide(properties: number, each: JsonObject = { type: "string" }): JsonObject {
  return {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: properties }, (_, i) => [`p${i}`, each])),
  };
}

/** Takes ajv many seconds, as the work grows with the square of the branches. */
const slow = (): JsonObject => ({ oneOf: Array.from({ length: 2500 }, (_, i) => wide(2, { const: i })) });

function nested(levels: number): JsonObject {
  let schema: JsonObject = {};
  for (let level = 0; level < levels; level += 1) schema = { items: schema };
  return schema;
}

/** Each definition uses the one before it twice. */
function doubling(steps: number): JsonObject {
  const $defs: JsonObject = { d0: { type: "object", properties: { x: { type: "string" } } } };
  for (let step = 1; step <= steps; step += 1) {
    const $ref = `#/$defs/d${step - 1}`;
    $defs[`d${step}`] = { anyOf: [{ $ref }, { $ref }] };
  }
  return { $ref: `#/$defs/d${steps}`, $defs };
}

describe("[agent-02a] schemas that a client brings", () => {
  it("check as others do, the small ones at once", async () => {
    const schema = {
      type: "object",
      properties: {
        id: { type: "string", pattern: "^[a-z]+(-[a-z]+)*$" },
        year: { type: "string", pattern: "^\\d{4}$" },
      },
      patternProperties: { "^x-": { type: "number" } },
    };
    await expect
      .poll(async () => {
        await nextTurn();
        return checkUntrustedSchema({ ...schema });
      })
      .toBeUndefined();
    const fitting = { id: "a-b", year: "2026", "x-1": 1 };
    expect(await check(schema, fitting)).toEqual(fitting);
    await expect(check(schema, { id: "A" })).rejects.toThrow("id must match pattern");
    await expect(check(schema, { year: "26", "x-1": "one" })).rejects.toThrow(/year.*; x-1 must be number/);
    expect(() => checkUntrustedSchema({ properties: { a: { pattern: "(" } } })).toThrow(/regular expression/);
  });

  it("check the same in the worker", async () => {
    const schema = { ...wide(2000), required: ["p1"], additionalProperties: false };
    expect(await check(schema, { p1: "x" })).toEqual({ p1: "x" });
    await expect(check(schema, { p2: 1, z: 2 })).rejects.toMatchObject({
      code: "invalid_arguments",
      details: { problems: ["p1 is missing", expect.stringContaining("z is not an argument"), expect.any(String)] },
    });
    await expect(check({ ...wide(2000), type: "nothing" }, {})).rejects.toThrow(/schema is invalid/);
  });

  it.each([
    ["^(a+)+$", `${"a".repeat(39)}!`],
    ["^(a|a){40}$", `${"a".repeat(39)}!`],
    ["\\s+$", `${" ".repeat(300_000)}a`],
    ["x*y", "x".repeat(300_000)],
  ])("are given up where %s takes too long", async (pattern, text) => {
    const parameters = withPattern(pattern);
    await checkUntrustedSchema(parameters);
    await expect(runWithShortLimit(() => check(parameters, { a: text }))).rejects.toThrow("takes too long");
    expect(await check(parameters, {})).toEqual({});
  });

  it("have one time for all of a turn, and more of it in the worker", async () => {
    const some = { a: Array.from({ length: 1000 }, () => "x".repeat(20_000)) };
    await expect(runWithShortLimit(() => check(items("x*y"), some))).rejects.toThrow("takes too long");
    const forever = (): never => {
      for (;;);
    };
    await nextTurn();
    expect(() => runWithinBudget(forever)).toThrow(TimeBudgetExceeded);
    expect(() => runWithinBudget(() => true)).toThrow(TimeBudgetExceeded);
    // On a busy machine the thread may be off its core for longer than the budget.
    await expect
      .poll(async () => {
        await nextTurn();
        return runWithinBudget(() => true);
      })
      .toBe(true);
    const many = { a: Array.from({ length: 20_000 }, (_, index) => `ab-${index}`) };
    expect(await check(items("^[a-z]+-[0-9]+$"), many)).toEqual(many);
  });

  it("hold the same for what servers say of their tools, when an agent checks a call", async () => {
    const tool = { name: "t", parameters: withPattern("^(a+)+$") };
    const hopeless = { a: `${"a".repeat(39)}!` };
    await expect(runWithShortLimit(() => checkModelArguments(tool, hopeless))).rejects.toThrow("takes too long");
    const given = { a: 1 };
    expect(await checkModelArguments({ name: "odd", parameters: { type: "nothing" } }, given)).toEqual(given);
    expect(await checkModelArguments({ name: "huge", parameters: wide(MAX_SCHEMA_NODES) }, given)).toEqual(given);
  });
});

describe("[trust-06a] a schema from outside", () => {
  it.each<[string, JsonObject, RegExp]>([
    ["values", wide(MAX_SCHEMA_NODES), /has more than 20000 values/],
    ["bytes of text", { description: "x".repeat(MAX_SCHEMA_BYTES) }, /is larger than 512 KB/],
    ["bytes of other things", { description: "\u0001".repeat(MAX_SCHEMA_BYTES / 5) }, /is larger than 512 KB/],
    ["characters of one pattern", withPattern("a".repeat(MAX_PATTERN_LENGTH + 1)), /a pattern of more than 8192/],
    [
      "characters of a pattern for names",
      { patternProperties: { ["a".repeat(MAX_PATTERN_LENGTH + 1)]: {} } },
      /a pattern of more than 8192/,
    ],
    ["levels", nested(MAX_SCHEMA_DEPTH), /nested more than 100 levels/],
    ["levels without end", nested(200_000), /nested more than 100 levels/],
  ])("has a bound on its %s", (_what, schema, reason) => {
    expect(schemaSize(schema).fault).toMatch(reason);
    expect(() => checkUntrustedSchema(schema)).toThrow(expect.objectContaining({ code: "too_large" }));
  });

  it("may be as large as honest ones are", async () => {
    const schema = wide(3000, { type: ["string", "null"], description: "One of many columns of a table." });
    expect(await check(schema, { p1: null })).toEqual({ p1: null });
  });

  it.each([
    ["long patterns", withPattern(`^${"ab".repeat(600)}`)],
    ["patterns with many Unicode properties", withPattern("\\p{L}".repeat(60))],
    ["long patterns for names", { patternProperties: { [`^${"ab".repeat(600)}`]: {} } }],
    ["many patterns", wide(60, { pattern: "^[a-z0-9]{1,40}$|^$" })],
  ])("goes to the worker with %s, since nothing interrupts their compilation", async (_what, schema) => {
    await nextTurn();
    const checked = checkUntrustedSchema(schema);
    expect(checked).toBeInstanceOf(Promise);
    await checked;
  });

  it("cannot make V8 look at all ways in which a pattern may match", { retry: 2 }, () => {
    const cost = (pattern: string): number => {
      const validate = compileSchema(withPattern(pattern));
      const began = performance.now();
      validate({ a: "\u{1F600}é" });
      return performance.now() - began;
    };
    cost("\\p{L}");
    const anchored = Math.max(1, cost(`^${"\\p{Cn}".repeat(9)}`));
    // Searched by V8's own means it takes thousands of milliseconds.
    expect(cost("\\p{C}".repeat(9)) / anchored).toBeLessThan(200);
  });

  it("is searched for patterns as ever", () => {
    const fits = (pattern: string, a: string): boolean => compileSchema(withPattern(pattern))({ a });
    expect(fits("\\p{Lu}", "ab\nC")).toBe(true);
    expect(fits("^\\p{Lu}|é$", "abC")).toBe(false);
    expect(fits("^\\p{Lu}|é$", "abé")).toBe(true);
    expect(fits("(?<l>\\p{L})\\k<l>", "1aa")).toBe(true);
    expect(fits("^\\u{1F600}$", "\u{1F600}")).toBe(true);
    expect(fits("[\\uDC00-\\uDFFF]", "\u{1F600}")).toBe(false);
    expect(() => compileSchema(withPattern("a)|(\\p{L}"))).toThrow(/regular expression/);
  });

  it("is compiled off the main thread: what comes later and is small is done first", async () => {
    const order: string[] = [];
    const large = Promise.resolve(checkUntrustedSchema(slow())).catch((error: unknown) => {
      order.push("large");
      return error;
    });
    await nextTurn();
    await Promise.resolve(checkUntrustedSchema(withPattern("^a"))).then(() => order.push("small"));
    expect(await large).toMatchObject({ code: "invalid_arguments", message: expect.stringContaining("too long") });
    expect(order).toEqual(["small", "large"]);
    // The worker that took too long has ended; the next one works.
    expect(await check(wide(2000), {})).toEqual({});
  });

  it("is remembered as too slow, and not tried again", async () => {
    const schema = slow();
    await expect(checkUntrustedSchema(schema)).rejects.toThrow("too long");
    expect(() => checkUntrustedSchema(schema)).toThrow("too long");
  });

  it("cannot double its work with each step, nor use up the memory", async () => {
    const schema = doubling(60);
    await checkUntrustedSchema(schema);
    await expect(runWithShortLimit(() => check(schema, { x: 1 }))).rejects.toThrow(/takes too (?:long|much memory)/);
    const branches = { items: { anyOf: Array.from({ length: 100 }, () => ({ type: "string" })) } };
    const many = { a: Array.from({ length: 200_000 }, () => 1) };
    await expect(check({ properties: { a: branches } }, many)).rejects.toThrow(/takes too (?:long|much memory)/);
    expect(await check(wide(2000), {})).toEqual({});
  });

  it("does not write a definition out again for each of its uses", { retry: 2 }, () => {
    const cost = (uses: number): number => {
      const times = Array.from({ length: 3 }, () => {
        const schema = { ...wide(uses, { $ref: "#/$defs/b" }), $defs: { b: wide(100) } };
        const began = performance.now();
        compileSchema(schema);
        return performance.now() - began;
      });
      return Math.min(...times);
    };
    cost(1);
    // Otherwise a hundred uses would cost about a hundred times one.
    expect(cost(100) / cost(1)).toBeLessThan(25);
  });
});
