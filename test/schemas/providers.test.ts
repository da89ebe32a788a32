import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { normalizeSchema, type Provider } from "../../src/schemas/normalize.ts";

const TEXT = { type: "string" };

function root(schema: JsonObject, provider: Provider = "anthropic"): JsonObject {
  return normalizeSchema(schema, provider).schema;
}

function property(p: JsonObject, provider: Provider): unknown {
  return (root({ type: "object", properties: { p }, required: ["p"] }, provider)["properties"] as JsonObject)["p"];
}

describe("the root", () => {
  it.each<[string, JsonObject, JsonObject]>([
    ["says object where nothing is said", {}, { type: "object", properties: {} }],
    ["drops null beside object", { type: ["object", "null"] }, { type: "object", properties: {} }],
    [
      "takes from anyOf all properties, and as required what all branches require",
      {
        anyOf: [
          { type: "object", properties: { a: TEXT, c: TEXT }, required: ["a", "c"] },
          { properties: { b: TEXT, c: { type: "number" } }, required: ["b", "c"] },
        ],
      },
      { type: "object", properties: { a: TEXT, c: { anyOf: [TEXT, { type: "number" }] }, b: TEXT }, required: ["c"] },
    ],
    [
      "takes from allOf all that is required",
      {
        properties: { a: TEXT },
        required: ["a"],
        allOf: [{ properties: { b: TEXT }, required: ["b"] }, { properties: { a: { maxLength: 3 } } }],
      },
      { type: "object", properties: { a: { type: "string", maxLength: 3 }, b: TEXT }, required: ["a", "b"] },
    ],
    [
      "makes one enum of the tags of a discriminated union",
      {
        oneOf: [
          { type: "object", properties: { kind: { type: "string", const: "a" } } },
          { type: "object", properties: { kind: { type: "string", const: "b" } } },
        ],
      },
      { type: "object", properties: { kind: { type: "string", enum: ["a", "b"] } } },
    ],
    [
      "flattens unions inside unions and leaves out branches that are no objects",
      {
        anyOf: [
          { type: "null" },
          { oneOf: [{ properties: { a: TEXT }, required: ["a"] }, { allOf: [{ properties: { b: TEXT } }] }] },
        ],
      },
      { type: "object", properties: { a: TEXT, b: TEXT } },
    ],
    [
      "is closed only where all branches are",
      {
        anyOf: [
          { properties: { a: TEXT }, additionalProperties: false },
          { properties: { b: TEXT }, additionalProperties: false },
        ],
      },
      { type: "object", properties: { a: TEXT, b: TEXT }, additionalProperties: false },
    ],
    [
      "stays open where one branch is",
      { anyOf: [{ properties: { a: TEXT }, additionalProperties: false }, { properties: { b: TEXT } }] },
      { type: "object", properties: { a: TEXT, b: TEXT } },
    ],
    [
      "keeps a property of its own where only one branch narrows it",
      { properties: { a: TEXT }, anyOf: [{ properties: { a: { const: "x" } } }, { required: ["b"] }] },
      { type: "object", properties: { a: TEXT } },
    ],
    [
      "drops enum, const and not",
      { type: "object", not: { required: ["a"] }, enum: [{}], const: {} },
      { type: "object", properties: {} },
    ],
  ])("[spine-16c] %s", (_case, before, after) => {
    for (const provider of ["anthropic", "openai", "bedrock"] as const) expect(root(before, provider)).toEqual(after);
  });

  it("[spine-16c] says in a note that a union was flattened", () => {
    const { notes } = normalizeSchema({ anyOf: [{ required: ["a"] }, { required: ["b"] }] }, "openai");
    expect(notes).toEqual([expect.stringMatching(/^\/: anyOf is flattened/)]);
  });

  it.each<[string, JsonObject]>([
    ["a string", { type: "string" }],
    ["an array in every branch", { anyOf: [{ type: "array" }, { type: "null" }] }],
    ["both object and not", { type: "object", allOf: [{ type: "string" }] }],
  ])("[spine-16c] is refused when it wants %s", (_case, schema) => {
    expect(() => root(schema)).toThrow(
      expect.objectContaining({ name: "ToolcribError", message: expect.stringContaining("not allow an object") }),
    );
  });
});

describe("names for Claude", () => {
  const schema = {
    type: "object",
    properties: {
      "filter[id]": TEXT,
      $top: TEXT,
      _top: TEXT,
      ["x".repeat(70)]: TEXT,
      fine: { type: "object", properties: { "@odd": TEXT } },
    },
    required: ["$top", "fine"],
    dependentRequired: { "filter[id]": ["$top"] },
  };

  it.each(["anthropic", "bedrock"] as const)(
    "[spine-16c] changes for %s names at the root that would sink the request, and only those",
    (provider) => {
      const { schema: result, notes } = normalizeSchema(schema, provider);
      const names = Object.keys(result["properties"] as JsonObject);
      expect(names).toEqual(["filter_id_", "_top_2", "_top", "x".repeat(64), "fine"]);
      expect(result).toMatchObject({
        required: ["_top_2", "fine"],
        dependentRequired: { filter_id_: ["_top_2"] },
        properties: { fine: schema.properties["fine"] },
      });
      expect(notes.join("\n")).toContain('"filter[id]" is shown as filter_id_');
    },
  );

  it("[spine-16c] gives the arguments back under the tool's own names", () => {
    const { restore } = normalizeSchema(schema, "anthropic");
    expect(restore({ filter_id_: "1", _top_2: "2", _top: "3", other: 4 })).toEqual({
      "filter[id]": "1",
      $top: "2",
      _top: "3",
      other: 4,
    });
    expect(normalizeSchema(schema, "openai").schema["properties"]).toHaveProperty(["filter[id]"]);
  });
});

describe("gemini", () => {
  it.each<[string, JsonObject, JsonObject]>([
    [
      "a type with null",
      { type: ["string", "null"], description: "d" },
      { type: "string", nullable: true, description: "d" },
    ],
    [
      "an optional of pydantic",
      { anyOf: [{ type: "integer" }, { type: "null" }], title: "T", default: null },
      { type: "integer", nullable: true, title: "T" },
    ],
    [
      "several types",
      { type: ["string", "integer", "null"], description: "d" },
      {
        anyOf: [
          { type: "string", nullable: true, description: "d" },
          { type: "integer", nullable: true },
        ],
      },
    ],
    [
      "a union with a description",
      { description: "d", oneOf: [TEXT, { type: "boolean" }] },
      { anyOf: [{ type: "string", description: "d" }, { type: "boolean" }] },
    ],
    ["a constant", { const: "x" }, { type: "string", enum: ["x"] }],
    ["constants in a union", { anyOf: [{ const: "x" }, { const: "y" }] }, { type: "string", enum: ["x", "y"] }],
    [
      "numbers in an enum",
      { type: "integer", enum: [4, 1, 2], description: "Size." },
      { type: "integer", minimum: 1, maximum: 4, description: "Size. One of 4, 1, 2." },
    ],
    ["a constant number", { const: 3 }, { type: "integer", minimum: 3, maximum: 3, description: "Always 3." }],
    ["a constant boolean", { const: true }, { type: "boolean", description: "Always true." }],
    [
      "a mixed enum",
      { enum: ["auto", 1, null] },
      {
        anyOf: [
          { type: "string", enum: ["auto"], nullable: true },
          { type: "integer", minimum: 1, maximum: 1, description: "Always 1.", nullable: true },
        ],
      },
    ],
    ["the empty string in an enum", { enum: ["", "x"] }, { type: "string", enum: ["x"] }],
    [
      "exclusive bounds of integers",
      { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 10 },
      { type: "integer", minimum: 1, maximum: 9 },
    ],
    ["exclusive bounds of numbers", { type: "number", exclusiveMinimum: 0 }, { type: "number", minimum: 0 }],
    [
      "formats",
      {
        type: "object",
        properties: {
          a: { ...TEXT, format: "date-time" },
          b: { ...TEXT, format: "uri" },
          c: { type: "integer", format: "int64" },
        },
      },
      {
        type: "object",
        properties: { a: { ...TEXT, format: "date-time" }, b: TEXT, c: { type: "integer", format: "int64" } },
      },
    ],
    [
      "a tuple",
      { type: "array", prefixItems: [TEXT, { type: "number" }], items: false },
      { type: "array", maxItems: 2, items: { anyOf: [TEXT, { type: "number" }] } },
    ],
    [
      "allOf",
      {
        allOf: [
          { type: "object", properties: { a: TEXT } },
          { properties: { b: TEXT }, required: ["b", "c"] },
        ],
      },
      { type: "object", properties: { a: TEXT, b: TEXT }, required: ["b"] },
    ],
    ["an open map", { type: "object", additionalProperties: { type: "number" } }, { type: "object" }],
    [
      "required beside anyOf",
      { type: "object", properties: { a: TEXT, b: TEXT }, anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      { type: "object", properties: { a: TEXT, b: TEXT } },
    ],
    ["null alone", { type: "null" }, { type: "string", nullable: true }],
    [
      "unknown keywords",
      { type: "string", pattern: "x", contentEncoding: "base64", readOnly: true, minLength: 1 },
      { type: "string", minLength: 1 },
    ],
    [
      "a list of anything",
      { type: "array" },
      {
        type: "array",
        items: {
          anyOf: [
            { type: "string" },
            { type: "number" },
            { type: "boolean" },
            { type: "object" },
            { type: "array", items: { type: "string" } },
          ],
        },
      },
    ],
  ])("[spine-16c] says %s in its own way", (_case, before, after) => {
    expect(property(before, "gemini")).toEqual(after);
  });

  it("[spine-16c] notes what is lost", () => {
    const { notes } = normalizeSchema(
      { type: "object", properties: { a: { ...TEXT, pattern: "x" }, b: { ...TEXT, pattern: "y" } } },
      "gemini",
    );
    expect(notes).toEqual(["/properties/a and 1 more: pattern is dropped for Gemini"]);
  });
});

describe("openai-strict", () => {
  const closed = (properties: JsonObject): JsonObject => ({
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  });

  it("[spine-16c] closes every object, requires everything, and lets what was optional be null", () => {
    const schema = {
      type: "object",
      properties: {
        a: TEXT,
        b: { type: "integer", default: 3, minimum: 1 },
        c: { enum: ["x", "y"] },
        d: { const: 1 },
        e: { anyOf: [TEXT, { type: "object", properties: { n: TEXT } }] },
        f: { type: ["string", "null"] },
        g: {
          type: "array",
          items: { type: "object", properties: { n: TEXT }, required: ["n"] },
          minItems: 1,
          uniqueItems: true,
        },
      },
      required: ["a", "g"],
    };
    expect(root(schema, "openai-strict")).toEqual(
      closed({
        a: TEXT,
        b: { type: ["integer", "null"], minimum: 1 },
        c: { type: ["string", "null"], enum: ["x", "y", null] },
        d: { type: ["integer", "null"], enum: [1, null] },
        e: { anyOf: [TEXT, closed({ n: { type: ["string", "null"] } }), { type: "null" }] },
        f: { type: ["string", "null"] },
        g: { type: "array", items: closed({ n: TEXT }), minItems: 1 },
      }),
    );
  });

  it.each<[string, JsonObject, JsonObject]>([
    [
      "known formats and patterns",
      { ...TEXT, format: "email", pattern: "^a" },
      { ...TEXT, format: "email", pattern: "^a" },
    ],
    ["no unknown format, lookaround or length", { ...TEXT, format: "uri", pattern: "(?=a)", minLength: 2 }, TEXT],
    ["anyOf for oneOf", { oneOf: [TEXT, { type: "number" }] }, { anyOf: [TEXT, { type: "number" }] }],
    [
      "one object for allOf",
      {
        allOf: [
          { type: "object", properties: { a: TEXT }, required: ["a"] },
          { properties: { b: TEXT }, required: ["b"] },
        ],
      },
      closed({ a: TEXT, b: TEXT }),
    ],
    [
      "the type in each branch",
      { type: "string", anyOf: [{ format: "date" }, { format: "time" }] },
      {
        anyOf: [
          { type: "string", format: "date" },
          { type: "string", format: "time" },
        ],
      },
    ],
    [
      "some value for any value",
      {},
      { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "null" }] },
    ],
  ])("[spine-16c] has %s", (_case, before, after) => {
    expect(property(before, "openai-strict")).toEqual(after);
  });

  it("[spine-16c] notes what cannot be strict", () => {
    const notes = (p: JsonObject): string =>
      normalizeSchema({ type: "object", properties: { p } }, "openai-strict").notes.join("\n");
    expect(notes({ type: "object", additionalProperties: TEXT })).toContain("not strict");
    expect(notes({ type: "object" })).toContain("not strict");
    expect(notes({ type: "object", properties: { a: TEXT } })).toBe("");
    let deep: JsonObject = { type: "object", properties: {}, additionalProperties: false };
    for (let level = 0; level < 10; level += 1) deep = { type: "object", properties: { deep } };
    expect(notes(deep)).toContain("10 levels, this schema has 12");
    const many = Object.fromEntries(Array.from({ length: 5001 }, (_, index) => [`p${index}`, TEXT]));
    expect(notes({ type: "object", properties: many })).toContain("5000 properties, this schema has 5002");
    expect(notes({ enum: Array.from({ length: 1001 }, (_, index) => `v${index}`) })).toContain("1000 enum values");
  });

  it("[spine-16c] takes the nulls out again that only strict mode allowed", () => {
    const schema = {
      type: "object",
      properties: {
        a: TEXT,
        b: TEXT,
        c: { type: ["string", "null"] },
        d: {},
        e: { enum: ["x", null] },
        list: { type: "array", items: { $ref: "#/$defs/Item" } },
        either: { anyOf: [{ $ref: "#/$defs/Item" }, TEXT] },
      },
      required: ["b"],
      $defs: { Item: { type: "object", properties: { n: { type: "integer" }, m: { allOf: [TEXT] } } } },
    };
    const { restore } = normalizeSchema(schema, "openai-strict");
    const args = {
      a: null,
      b: null,
      c: null,
      d: null,
      e: null,
      unknown: null,
      list: [{ n: null, m: null }, { n: 1, m: "x" }, null],
      either: { n: null, m: "x" },
    };
    const before = structuredClone(args);
    expect(restore(args)).toEqual({
      b: null,
      c: null,
      d: null,
      e: null,
      unknown: null,
      list: [{}, { n: 1, m: "x" }, null],
      either: { m: "x" },
    });
    expect(args).toEqual(before);
  });
});

describe("[whole-07a] properties that only conditions describe", () => {
  // As text, because an object with a `then` looks like a promise.
  const address = JSON.parse(`{
    "type": "object",
    "properties": { "country": { "type": "string" } },
    "required": ["country"],
    "allOf": [
      { "if": { "properties": { "country": { "const": "US" } } },
        "then": { "properties": { "zip": { "type": "string" } }, "required": ["zip"] } },
      { "if": { "properties": { "country": { "const": "CA" } } },
        "then": { "properties": { "postal": { "type": "string" } }, "required": ["postal"] } }
    ],
    "dependentSchemas": { "card": { "properties": { "billing": { "type": "string" } }, "required": ["billing"] } },
    "if": { "required": ["gift"] },
    "then": { "properties": { "message": { "type": "string" } } },
    "else": { "properties": { "receipt": { "type": "string" } } }
  }`) as JsonObject;
  const names = ["billing", "country", "message", "postal", "receipt", "zip"];

  it.each(["gemini", "openai-strict"] as const)("reach %s, at the root and below", (provider) => {
    const schema = root(address, provider);
    expect(Object.keys(schema["properties"] as JsonObject).toSorted()).toEqual(names);
    expect(Object.keys((property(address, provider) as JsonObject)["properties"] as JsonObject).toSorted()).toEqual(
      names,
    );
    expect(normalizeSchema(schema, provider).schema).toEqual(schema);
  });

  it("are optional for Gemini, and null that strict mode wants is taken out again", () => {
    expect(root(address, "gemini")["required"]).toEqual(["country"]);
    const { restore } = normalizeSchema(address, "openai-strict");
    const sent = { country: "US", zip: "10001", postal: null, billing: null, message: null, receipt: null };
    expect(restore(sent)).toEqual({ country: "US", zip: "10001" });
  });

  it.each(["gemini", "openai-strict", "anthropic"] as const)("reach %s out of the branches of a union", (provider) => {
    const oneOf = JSON.parse(`[
      { "properties": { "kind": { "type": "string" } }, "if": { "required": ["kind"] },
        "then": { "properties": { "size": { "type": "integer" } } } },
      { "properties": { "whole": { "type": "boolean" } },
        "dependentSchemas": { "whole": { "properties": { "why": { "type": "string" } } } } }
    ]`) as JsonObject[];
    const found = Object.keys(root({ type: "object", oneOf }, provider)["properties"] as JsonObject);
    expect(found.toSorted()).toEqual(["kind", "size", "whole", "why"]);
  });

  it.each(["openai", "openai-strict", "any"] as const)("reach %s where the condition itself cannot", (provider) => {
    const schema = JSON.parse(`{
      "type": "object", "properties": { "x": { "type": "string" } },
      "if": { "properties": { "x": { "pattern": "^(?!a)b" } } },
      "then": { "properties": { "y": { "type": "string" } }, "required": ["y"] }
    }`) as JsonObject;
    expect(Object.keys(root(schema, provider)["properties"] as JsonObject)).toEqual(["x", "y"]);
    if (provider !== "openai-strict") expect(root(schema, provider)["required"] ?? []).toEqual([]);
  });

  it("of all conditions are kept for Claude, which takes one of them", () => {
    expect(Object.keys(root(address, "anthropic")["properties"] as JsonObject)).toEqual(
      expect.arrayContaining(["zip", "postal"]),
    );
  });

  it("are left out where the object is closed", () => {
    expect(root({ ...address, additionalProperties: false }, "gemini")["properties"]).not.toHaveProperty("message");
  });
});
