import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type NormalizedSchema, normalizeSchema, PROVIDERS, type Provider } from "../../src/schemas/normalize.ts";
import { SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS } from "../../src/schemas/schema-keywords.ts";
import { anyArguments, anyJunk, anyMalformed, anySchema } from "./arbitrary.ts";

const NORMALISING = PROVIDERS.filter((provider) => provider !== "raw");
const FAITHFUL = ["anthropic", "openai", "bedrock"] as const;

const ajv = new Ajv2020({ strict: false, logger: false });
addFormats.default(ajv);

/** Against the meta-schema, and for what ajv does not ask of it (patterns, an empty enum) by use. */
function expectSound(schema: JsonObject): void {
  for (const { pattern, patternProperties = {} } of everySchema(schema)) {
    for (const source of [pattern ?? "", ...Object.keys(Object(patternProperties))])
      RegExp(typeof source === "string" ? source : "", "u");
  }
  expect(ajv.validateSchema(schema), ajv.errorsText()).toBe(true);
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  ajv.compile(schema);
  ajv.removeSchema(schema);
}

/** The arguments that fit; none for a schema that ajv cannot use, such as a reference that leads only to itself. */
function fitting(schema: JsonObject, many: readonly JsonObject[]): JsonObject[] {
  try {
    return many.filter((args) => ajv.validate(schema, args));
  } catch {
    return [];
  } finally {
    ajv.removeSchema(schema);
  }
}

/** Every schema inside a schema, made anew by `change`, whatever the position. */
function mapSchemas(schema: unknown, change: (node: JsonObject) => JsonObject): unknown {
  if (!isJsonObject(schema)) return schema;
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (SCHEMA_KEYWORDS.has(keyword)) return [keyword, mapSchemas(value, change)];
    if (SCHEMA_LIST_KEYWORDS.has(keyword) && Array.isArray(value))
      return [keyword, value.map((inner) => mapSchemas(inner, change))];
    if ((SCHEMA_MAP_KEYWORDS.has(keyword) || keyword === "$defs") && isJsonObject(value)) {
      const map = Object.entries(value).map(([name, inner]) => [name, mapSchemas(inner, change)]);
      return [keyword, Object.fromEntries(map)];
    }
    return [keyword, value];
  });
  return change(Object.fromEntries(entries));
}

function everySchema(schema: JsonObject): JsonObject[] {
  const nodes: JsonObject[] = [];
  mapSchemas(schema, (node) => (nodes.push(node), node));
  return nodes;
}

function property(p: JsonObject, provider: Provider): unknown {
  const { schema } = normalizeSchema({ type: "object", properties: { p }, required: ["p"] }, provider);
  return (schema["properties"] as JsonObject)["p"];
}

it.each<[string, JsonObject]>([
  ["a pattern", { pattern: "(" }],
  ["a list of names", { required: "a" }],
  ["a map", { properties: [] }],
])("the check itself refuses %s that is none", (_case, schema) => {
  expect(() => expectSound(schema)).toThrow(/to be true|regular expression/);
});

describe("malformed keywords", () => {
  it.each<[JsonObject, JsonObject]>([
    [{ enum: "x" }, {}],
    [{ enum: [] }, {}],
    [{ enum: ["x", "x", { a: 1, b: 2 }, { b: 2, a: 1 }] }, { enum: ["x", { a: 1, b: 2 }] }],
    [{ required: "a" }, {}],
    [{ required: ["a", 7, "a"] }, { required: ["a"] }],
    [{ properties: "x", additionalProperties: false }, {}],
    [{ properties: [], additionalProperties: false }, { additionalProperties: false }],
    [{ properties: { a: 7 } }, { properties: { a: {} } }],
    [{ type: 7 }, {}],
    [{ type: [] }, {}],
    [{ type: ["string", 7] }, {}],
    [{ type: ["string", "string"] }, { type: "string" }],
    [{ minimum: "3", maximum: 5 }, { maximum: 5 }],
    [{ maximum: Infinity, exclusiveMaximum: Number.NaN }, {}],
    [{ multipleOf: 0 }, {}],
    [{ minLength: -1, maxLength: 2.5, minItems: null, maxItems: "2", minProperties: [] }, {}],
    [{ pattern: "(" }, {}],
    [{ pattern: 7 }, {}],
    [{ patternProperties: { "(": {} }, additionalProperties: false }, {}],
    [{ patternProperties: 7, additionalProperties: false }, {}],
    [{ const: Number.NaN }, {}],
    [
      { patternProperties: { "(": {}, a: {} }, additionalProperties: { type: "string" } },
      { patternProperties: { a: {} } },
    ],
    [{ dependentRequired: { a: ["b", 7], c: "d" } }, { dependentRequired: { a: ["b"] } }],
    [{ dependentRequired: ["a"] }, {}],
    [{ anyOf: { type: "string" } }, {}],
    [{ prefixItems: {}, items: { type: "string" } }, {}],
    [{ prefixItems: [], items: { type: "string" } }, { items: { type: "string" } }],
    [{ items: 7 }, { items: {} }],
    [{ contains: { type: "string" }, minContains: "0" }, {}],
    [{ contains: { type: "string" }, maxContains: "0" }, { contains: { type: "string" } }],
    [{ uniqueItems: "true" }, {}],
    [{ title: 7, description: [], deprecated: "no", readOnly: 1, writeOnly: null, examples: "x" }, {}],
    [{ format: 7, contentEncoding: 7, contentMediaType: {} }, {}],
    [{ $ref: 7, id: 7, type: "string" }, { type: "string" }],
    [
      { discriminator: { $anchor: "" }, tags: [{ $id: "" }], hint: "h", enumNames: ["a"] },
      { hint: "h", enumNames: ["a"] },
    ],
    [{ example: { $id: "(" } }, { examples: [{ $id: "(" }] }],
    [{ not: { pattern: "(" } }, {}],
    [{ not: { required: "a" } }, {}],
    [{ not: { $ref: null } }, {}],
    [{ oneOf: [{ minimum: "1" }, { type: "null" }] }, { anyOf: [{}, { type: "null" }] }],
    [{ $ref: "#/nowhere", unevaluatedProperties: false }, {}],
    [
      { default: "(", const: { required: "a" } },
      { default: "(", const: { required: "a" } },
    ],
  ])("[spine-16c] %j becomes %j", (before, after) => {
    for (const provider of ["anthropic", "bedrock"] as const) expect(property(before, provider)).toEqual(after);
    for (const provider of NORMALISING) {
      const once = normalizeSchema({ type: "object", properties: { p: before } }, provider).schema;
      expectSound(once);
      expect(normalizeSchema(once, provider).schema).toEqual(once);
    }
  });

  it("[spine-16c] are never taken for properties of that name", () => {
    const properties = { enum: { type: "string" }, required: { type: "boolean" }, pattern: { type: "number" } };
    expect(property({ properties }, "openai")).toEqual({ properties });
  });

  it("[spine-16c] are mended at the root, so that the tool stays", () => {
    const root = { type: 7, properties: [], required: "a", enum: "x", additionalProperties: "no" };
    for (const provider of ["anthropic", "openai", "bedrock"] as const) {
      const { schema, notes } = normalizeSchema(root, provider);
      expect(schema).toEqual({ type: "object", properties: {}, additionalProperties: {} });
      expect(notes).toContain("/required: a malformed required is dropped");
    }
  });

  it.each(NORMALISING)("[spine-16c] for %s: no junk leads to a schema that the meta-schema refuses", (provider) => {
    let kept = 0;
    fc.assert(
      fc.property(anyJunk(), (junk) => {
        let result: NormalizedSchema;
        try {
          result = normalizeSchema(junk, provider);
        } catch (error) {
          expect(error).toBeInstanceOf(ToolcribError);
          return;
        }
        kept += 1;
        expectSound(result.schema);
        expect(normalizeSchema(result.schema, provider).schema).toEqual(result.schema);
      }),
      { numRuns: 400 },
    );
    expect(kept).toBeGreaterThan(200);
  });

  it.each(FAITHFUL)("[spine-16c] for %s: leave a schema that allows no less than without them", (provider) => {
    let compared = 0;
    fc.assert(
      fc.property(
        anySchema({ rootUnions: 0 }),
        fc.array(anyMalformed(), { minLength: 1, maxLength: 5 }),
        fc.array(anyArguments(), { minLength: 20, maxLength: 20 }),
        (schema, malformed, many) => {
          let turn = 0;
          const broken = mapSchemas(schema, (node) => ({ ...malformed[turn++ % (malformed.length + 2)], ...node }));
          // The names that Claude cannot take have their own tests.
          const plain = many.filter((args) => !("$ref" in args));
          const normalised = normalizeSchema(broken as JsonObject, provider).schema;
          const allows = ajv.compile(normalised);
          ajv.removeSchema(normalised);
          for (const args of fitting(schema, plain)) {
            compared += 1;
            expect(allows(args), JSON.stringify(args)).toBe(true);
          }
        },
      ),
      { numRuns: 100 },
    );
    expect(compared).toBeGreaterThan(50);
  });
});

describe("patterns for OpenAI", () => {
  it.each([
    "^(?=a)b",
    "^(?!undefined$)",
    "(?<=a)b",
    "(?<year>\\d{4})",
    "^[^\\p{Cc}]+$",
    "\\u{1F600}",
    "(a)\\1",
    "\\cA",
    "[^]",
    "[]",
    "a{9999999999}",
    "a{1,9999999999}",
  ])("[spine-16c] drops %s, which would sink the request", (pattern) => {
    for (const provider of ["openai", "openai-strict"] as const) {
      expect(property({ type: "string", pattern }, provider)).toEqual({ type: "string" });
    }
    expect(property({ type: "string", pattern }, "anthropic")).toEqual({ type: "string", pattern });
  });

  it.each(["^(?:a|b)$", "\\(?=", "[\\[\\]]+", "\\\\p{2}", "\\u0041\\x41\\/\\.", "^\\d{1,3}$", "[\\w\\-.]+@"])(
    "[spine-16c] keeps %s",
    (pattern) => {
      expect(property({ type: "string", pattern }, "openai")).toEqual({ type: "string", pattern });
    },
  );

  it("[spine-16c] opens an object whose pattern for names is dropped", () => {
    const object = { type: "object", patternProperties: { "^(?!_)": { type: "string" } }, additionalProperties: false };
    expect(property(object, "openai")).toEqual({ type: "object" });
    expect(property({ not: object }, "openai")).toEqual({});
    expect(property(object, "anthropic")).toEqual(object);
  });
});

describe("items of arrays", () => {
  const TEXT = { type: "string" };
  const NUMBER = { type: "number" };

  it.each<[JsonObject, JsonObject]>([
    [{ type: "array" }, { type: "array", items: {} }],
    [{ type: ["string", "array"] }, { type: ["string", "array"], items: {} }],
    [
      { type: "array", items: TEXT },
      { type: "array", items: TEXT },
    ],
    [
      { type: "array", items: true },
      { type: "array", items: {} },
    ],
    [
      { type: "array", items: false },
      { type: "array", items: {}, maxItems: 0 },
    ],
    [{ prefixItems: [TEXT] }, { prefixItems: [TEXT], items: {} }],
    [
      { type: "array", items: [TEXT, NUMBER], additionalItems: false },
      { type: "array", prefixItems: [TEXT, NUMBER], items: { anyOf: [TEXT, NUMBER] }, maxItems: 2 },
    ],
    [
      { type: "array", prefixItems: [NUMBER, NUMBER], minItems: 2, maxItems: 2 },
      { type: "array", prefixItems: [NUMBER, NUMBER], items: NUMBER, minItems: 2, maxItems: 2 },
    ],
    [
      { type: "array", prefixItems: [NUMBER, TEXT], items: false, maxItems: 1 },
      { type: "array", prefixItems: [NUMBER, TEXT], items: { anyOf: [NUMBER, TEXT] }, maxItems: 1 },
    ],
    [
      { type: "array", prefixItems: [NUMBER], maxItems: 3 },
      { type: "array", prefixItems: [NUMBER], maxItems: 3, items: {} },
    ],
    [
      { type: "array", prefixItems: [{ type: "array" }], unevaluatedItems: false },
      {
        type: "array",
        prefixItems: [{ type: "array", items: {} }],
        items: {},
      },
    ],
    [{ not: { type: "array", unevaluatedItems: TEXT } }, {}],
    [{ anyOf: [{ type: "array" }, { type: "null" }] }, { anyOf: [{ type: "array", items: {} }, { type: "null" }] }],
    [{ not: { type: "array" } }, { not: { type: "array", items: {} } }],
    [{ properties: { items: { type: "array" } } }, { properties: { items: { type: "array", items: {} } } }],
  ])("[spine-16c] for openai %j becomes %j", (before, after) => {
    expect(property(before, "openai")).toEqual(after);
  });

  it("[spine-16c] are there where a cycle is cut", () => {
    const schema = {
      type: "object",
      properties: { tree: { $ref: "#/$defs/Tree" } },
      $defs: { Tree: { type: "array", items: { $ref: "#/$defs/Tree" } } },
    };
    expect(normalizeSchema(schema, "openai").schema["properties"]).toEqual({
      tree: { type: "array", items: { type: "array", description: "The shape Tree again.", items: {} } },
    });
  });

  it("[spine-16c] are not forced on Claude, which does without", () => {
    for (const provider of ["anthropic", "bedrock"] as const) {
      expect(property({ type: "array" }, provider)).toEqual({ type: "array" });
      expect(property({ prefixItems: [TEXT], items: false }, provider)).toEqual({ prefixItems: [TEXT], items: false });
    }
  });

  it.each(["openai", "openai-strict", "gemini"] as const)("[spine-16c] are never missing for %s", (provider) => {
    fc.assert(
      fc.property(anySchema(), (schema) => {
        for (const node of everySchema(normalizeSchema(schema, provider).schema)) {
          const isArray = [node["type"]].flat().includes("array") || "prefixItems" in node;
          if (isArray) expect(isJsonObject(node["items"]), JSON.stringify(node)).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });
});
