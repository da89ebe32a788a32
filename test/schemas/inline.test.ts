import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { normalizeSchema } from "../../src/schemas/normalize.ts";

/** The one property `p` of a schema, normalised; `defs` become `$defs`. */
function property(p: unknown, defs: JsonObject = {}, more: JsonObject = {}): unknown {
  const { schema } = normalizeSchema({ ...more, type: "object", properties: { p }, $defs: defs }, "anthropic");
  return (schema["properties"] as JsonObject)["p"];
}

function notesOf(schema: JsonObject): string {
  return normalizeSchema(schema, "openai").notes.join("\n");
}

describe("references", () => {
  it("[spine-16c] puts the target in place, with annotations beside the reference winning", () => {
    const A = { type: "string", description: "old", maxLength: 3 };
    expect(property({ $ref: "#/$defs/A" }, { A })).toEqual(A);
    expect(property({ $ref: "#/$defs/A", description: "new", default: "x" }, { A })).toEqual({
      ...A,
      description: "new",
      default: "x",
    });
    expect(property({ $ref: "#/$defs/A", minLength: 1 }, { A })).toEqual({ minLength: 1, allOf: [A] });
  });

  it("knows that constraints beside a reference count for nothing up to draft-07", () => {
    const more = { $schema: "http://json-schema.org/draft-07/schema#" };
    expect(property({ $ref: "#/$defs/A", minLength: 1, title: "T" }, { A: { type: "string" } }, more)).toEqual({
      type: "string",
      title: "T",
    });
  });

  it("follows escaped and encoded pointers, and chains", () => {
    const defs = { "a/b c~": { type: "integer" }, next: { $ref: "#/$defs/a~1b%20c~0" } };
    expect(property({ $ref: "#/$defs/next" }, defs)).toEqual({ type: "integer" });
  });

  it("[spine-16c] cuts cycles where they close", () => {
    const Node = { type: "object", properties: { next: { $ref: "#/$defs/Node" }, value: { type: "string" } } };
    expect(property({ $ref: "#/$defs/Node" }, { Node })).toEqual({
      type: "object",
      properties: { next: { type: "object", description: "The shape Node again." }, value: { type: "string" } },
    });
    expect(property({ $ref: "#" })).toEqual({ type: "object", description: "The same shape again." });
    expect(property({ $ref: "#/$defs/A" }, { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } })).toEqual({
      description: "The shape A again.",
    });
    expect(notesOf({ type: "object", properties: { p: { $ref: "#" } } })).toBe(
      "/properties/p: # refers to itself; the cycle is cut",
    );
  });

  it("[spine-16c] leaves open what a reference outside would say, and never fetches it", () => {
    expect(property({ $ref: "https://example.com/x.json", type: "string" })).toEqual({ type: "string", allOf: [{}] });
    expect(property({ $ref: "#/$defs/toString" })).toEqual({});
    expect(notesOf({ type: "object", properties: { p: { $ref: "https://e.com/x" } } })).toContain(
      "https://e.com/x has no target",
    );
  });

  it("drops what a widened part would turn into a narrower whole", () => {
    const Loop = { type: "object", properties: { again: { $ref: "#/$defs/Loop" } } };
    expect(property({ type: "object", not: { $ref: "#/$defs/Loop" } }, { Loop })).toEqual({ type: "object" });
    expect(property({ oneOf: [{ $ref: "#/$defs/Loop" }, { type: "null" }] }, { Loop })).toEqual({
      anyOf: [
        { type: "object", properties: { again: { type: "object", description: "The shape Loop again." } } },
        { type: "null" },
      ],
    });
    expect(property({ anyOf: [{}], oneOf: [{ $ref: "#/nowhere" }] })).toEqual({
      anyOf: [{}],
      allOf: [{ anyOf: [{}] }],
    });
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    expect(property({ if: { $ref: "#/nowhere" }, then: { type: "string" } })).toEqual({});
    expect(property({ allOf: [{ $ref: "#/nowhere" }], unevaluatedProperties: false })).toEqual({ allOf: [{}] });
    expect(property({ not: { type: "null" } })).toEqual({ not: { type: "null" } });
  });

  it("[spine-16c] stays small when definitions double at each step", () => {
    const defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [
        `D${index}`,
        { type: "object", properties: { l: { $ref: `#/$defs/D${index + 1}` }, r: { $ref: `#/$defs/D${index + 1}` } } },
      ]),
    );
    const schema = {
      type: "object",
      properties: { p: { $ref: "#/$defs/D0" } },
      $defs: { ...defs, D40: { type: "string" } },
    };
    const { schema: result, notes } = normalizeSchema(schema, "anthropic");
    expect(JSON.stringify(result).length).toBeLessThan(2_000_000);
    expect(notes.join()).toContain("too large");
  });

  it("[spine-16c] throws for nesting without end, so that the tool can be left out", () => {
    let deep: JsonObject = { type: "string" };
    for (let level = 0; level < 150; level += 1) deep = { type: "array", items: deep };
    const circular: JsonObject = { type: "object", properties: {} };
    circular["properties"] = { self: circular };
    let value: unknown = 1;
    for (let level = 0; level < 150; level += 1) value = [value];
    for (const schema of [{ type: "object", properties: { deep } }, circular, { type: "object", default: value }]) {
      expect(() => normalizeSchema(schema, "openai")).toThrow(
        expect.objectContaining({ name: "ToolcribError", message: expect.stringContaining("deep") }),
      );
    }
  });
});

describe("keywords", () => {
  it("[spine-16c] drops keywords of the document, and no property of that name", () => {
    const noise = { $id: "a", $comment: "c", $anchor: "x", "x-order": 1, id: "b" };
    const properties = Object.fromEntries(
      [...Object.keys(noise), "$ref", "$defs", "format", "title"].map((name) => [name, { type: "string" }]),
    );
    expect(property({ ...noise, type: "object", properties })).toEqual({ type: "object", properties });
  });

  it("keeps values as they are, whatever they look like", () => {
    const value = { $ref: "#/x", "x-a": 1, items: [{ $id: "q" }] };
    expect(property({ const: value, default: value, examples: [value] })).toEqual({
      const: value,
      default: value,
      examples: [value],
    });
  });

  it("turns boolean schemas into objects, except where a boolean is usual", () => {
    expect(property(true)).toEqual({});
    expect(property(false)).toEqual({ not: {} });
    expect(property({ anyOf: [true, false], additionalProperties: false, items: false })).toEqual({
      anyOf: [{}, { not: {} }],
      additionalProperties: false,
      items: false,
    });
  });

  it.each<[string, JsonObject, JsonObject]>([
    [
      "tuples",
      { items: [{ type: "string" }], additionalItems: false },
      { prefixItems: [{ type: "string" }], items: false },
    ],
    [
      "exclusive bounds",
      { minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
      { exclusiveMinimum: 1, maximum: 5 },
    ],
    ["nullable", { type: "string", enum: ["a"], nullable: true }, { type: ["string", "null"], enum: ["a", null] }],
    ["a boolean required", { type: "string", required: true }, { type: "string" }],
    ["an unknown type", { type: "any", title: "T" }, { title: "T" }],
    ["an empty union", { anyOf: [], type: "string" }, { type: "string" }],
    ["properties that are none", { properties: [], type: "object" }, { type: "object" }],
    ["doubled names", { required: ["a", "a", 1] }, { required: ["a"] }],
  ])("mends %s", (_case, before, after) => {
    expect(property(before)).toEqual(after);
  });

  it("translates dependencies of draft-07", () => {
    const dependencies = { a: ["b"], c: { required: ["d"] } };
    expect(property({ dependencies }, {}, { $schema: "http://json-schema.org/draft-07/schema#" })).toEqual({
      dependentRequired: { a: ["b"] },
      dependentSchemas: { c: { required: ["d"] } },
    });
  });

  it("does not let a property called __proto__ touch anything", () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"}},"__proto__":{"type":"x"}}',
    ) as JsonObject;
    const { schema: result } = normalizeSchema(schema, "openai");
    expect(JSON.stringify(result)).toBe('{"type":"object","properties":{"__proto__":{"type":"string"}}}');
    expect(({} as JsonObject)["type"]).toBeUndefined();
  });
});
