import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { normalizeSchema, PROVIDERS, renamesForClaude } from "../../src/schemas/normalize.ts";
import { isRegex } from "../../src/schemas/inline.ts";
import { MAX_PATTERN_LENGTH } from "../../src/schemas/schema-size.ts";

function list<T>(length: number, item: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => item(index));
}

/** How many times longer eight times as much takes: about 8 if the work is linear, 64 if it grows with the square. */
function growth(make: (size: number) => JsonObject, size: number): number {
  const cost = (schema: JsonObject): number => {
    const began = performance.now();
    for (const provider of PROVIDERS) normalizeSchema(schema, provider);
    return performance.now() - began;
  };
  const least = (of: number): number => Math.min(...list(3, () => cost(make(of))));
  least(size / 8);
  return least(size) / Math.max(1, least(size / 8));
}

describe("[trust-06d] a provider's form of a large schema", { retry: 2 }, () => {
  it.each<[string, number, (size: number) => JsonObject]>([
    ["members that all apply", 4000, (size) => ({ allOf: list(size, (i) => ({ properties: { [`p${i}`]: {} } })) })],
    ["alternatives", 4000, (size) => ({ anyOf: list(size, (i) => ({ properties: { [`p${i}`]: {} } })) })],
    [
      "lists of values beside a long one",
      4000,
      (size) => ({
        properties: { a: { allOf: [{ enum: list(size, String) }, ...list(size, (i) => ({ enum: [-1 - i] }))] } },
      }),
    ],
    [
      "schemas that must not apply",
      4000,
      (size) => ({ properties: { a: { allOf: list(size, (i) => ({ not: { const: i } })) } } }),
    ],
  ])("takes time in proportion to its %s", (_what, size, make) => {
    expect(growth((of) => ({ type: "object", ...make(of) }), size)).toBeLessThan(32);
  });

  it("merges members as it does two", () => {
    const members = list(3, (i) => ({
      properties: { [`p${i}`]: { type: "string" }, all: { minimum: i, description: `d${i}` } },
      required: [`p${i}`, "all"],
    }));
    const { schema } = normalizeSchema({ type: "object", allOf: members }, "openai");
    expect(schema).toMatchObject({
      properties: { p0: {}, p1: {}, p2: {}, all: { minimum: 2, description: "d0" } },
      required: ["p0", "all", "p1", "p2"],
    });
  });

  it("numbers names that become the same one, each once", () => {
    const names = list(300, (i) => String.fromCodePoint(0x4e00 + i));
    const given = [...names, "_2", "_11"];
    const renamed = [...renamesForClaude({ properties: Object.fromEntries(given.map((name) => [name, {}])) }).values()];
    expect(renamed.slice(0, 3)).toEqual(["_", "__2", "__3"]);
    expect(renamed.at(-1)).toBe("__300");
    expect(new Set([...renamed, "_2", "_11"]).size).toBe(302);
    const long = list(30, (i) => "a".repeat(64) + String.fromCodePoint(0x4e00 + i));
    const cut = renamesForClaude({ properties: Object.fromEntries(long.map((name) => [name, {}])) });
    expect([...cut.values()].at(-1)).toBe(`${"a".repeat(61)}_30`);
  });

  it("leaves out patterns that are too long, and reads the others at little cost", () => {
    expect(isRegex("a".repeat(MAX_PATTERN_LENGTH))).toBe(true);
    expect(isRegex("a".repeat(MAX_PATTERN_LENGTH + 1))).toBe(false);
  });

  it.each([
    ["[\\p{L}\\P{Script=Greek}]+", true],
    ["\\p{Nothing}", false],
    ["\\p{L", false],
    ["[\\p{L}-z]", false],
    ["\\\\p{Nothing}", false],
    ["\\\\p\\{Nothing\\}", true],
    ["\\p{RGI_Emoji}", false],
    ["\\p{L}{2,3}", true],
  ])("reads %s as the engine does", (source, isOne) => {
    let engine = true;
    try {
      engine = new RegExp(source, "u") instanceof RegExp;
    } catch {
      engine = false;
    }
    expect(engine).toBe(isOne);
    expect(isRegex(source)).toBe(isOne);
  });
});
