import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { normalizeSchema, PROVIDERS, type Provider } from "../../src/schemas/normalize.ts";
import { SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS } from "../../src/schemas/schema-keywords.ts";
import { anyArguments, anySchema } from "./arbitrary.ts";
import { SAMPLES } from "./samples.ts";

const NORMALISING = PROVIDERS.filter((provider) => provider !== "raw");
/** For these every argument list that fitted the original fits the normalised schema. */
const FAITHFUL = ["anthropic", "openai", "bedrock"] as const;

const DRAFT_07 = new Ajv({ strict: false, logger: false });
const DRAFT_2020 = new Ajv2020({ strict: false, logger: false });
for (const ajv of [DRAFT_07, DRAFT_2020]) addFormats.default(ajv);

function validator(schema: JsonObject): (value: unknown) => boolean {
  const ajv = typeof schema["$schema"] === "string" && schema["$schema"].includes("draft-07") ? DRAFT_07 : DRAFT_2020;
  const validate = ajv.compile(schema);
  ajv.removeSchema(schema);
  return validate;
}

/** The arguments that fit; none for a schema that ajv cannot use, such as a reference that leads nowhere or only to itself. */
function fitting(schema: JsonObject, many: readonly JsonObject[]): JsonObject[] {
  try {
    return many.filter(validator(schema));
  } catch {
    return [];
  }
}

/** Every schema inside a schema, itself included, whatever the position. */
function everySchema(schema: unknown): JsonObject[] {
  if (!isJsonObject(schema)) return [];
  const inner = Object.entries(schema).flatMap(([keyword, value]) => {
    if (SCHEMA_KEYWORDS.has(keyword)) return everySchema(value);
    if (SCHEMA_LIST_KEYWORDS.has(keyword) && Array.isArray(value)) return value.flatMap(everySchema);
    return SCHEMA_MAP_KEYWORDS.has(keyword) && isJsonObject(value) ? Object.values(value).flatMap(everySchema) : [];
  });
  return [schema, ...inner];
}

function keywordsIn(schema: JsonObject): Set<string> {
  return new Set(everySchema(schema).flatMap(Object.keys));
}

function normalized(schema: JsonObject, provider: Provider): JsonObject {
  return normalizeSchema(schema, provider).schema;
}

/** Arguments under the names that Claude is shown for the samples' two odd ones. */
function asShown(args: JsonObject, provider: Provider): JsonObject {
  if (provider === "openai") return args;
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name.replace("$", "_"), value]));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

describe.each(SAMPLES)("$name", ({ schema, valid }) => {
  it("is a sample that its own arguments fit", () => {
    const fits = validator(schema);
    for (const args of valid) expect(fits(args), JSON.stringify(args)).toBe(true);
  });

  it.each(FAITHFUL)("[spine-16c] allows for %s what it allowed before", (provider) => {
    const fits = validator(normalized(schema, provider));
    for (const args of valid) expect(fits(asShown(args, provider)), JSON.stringify(args)).toBe(true);
  });

  it.each(NORMALISING)("[spine-16c] has for %s a plain root, no reference, and is a valid schema", (provider) => {
    const result = normalized(deepFreeze(schema), provider);
    expect(result).toMatchObject({ type: "object", properties: expect.any(Object) });
    for (const union of ["anyOf", "oneOf", "allOf", "not", "enum", "const"]) expect(result).not.toHaveProperty(union);
    const keywords = keywordsIn(result);
    for (const gone of ["$ref", "$defs", "definitions", "$schema", "$id", "$anchor"])
      expect(keywords).not.toContain(gone);
    // Gemini's `nullable` is no JSON Schema, but ajv knows it.
    expect(() => validator(result)).not.toThrow();
  });

  it.each(NORMALISING)("[spine-16c] stays the same for %s when normalised again", (provider) => {
    const once = normalized(schema, provider);
    expect(normalizeSchema(once, provider).schema).toEqual(once);
  });

  it("[spine-16c] keeps within what Gemini knows", () => {
    const known = new Set([
      "type",
      "format",
      "title",
      "description",
      "nullable",
      "enum",
      "items",
      "properties",
      "required",
      "minItems",
      "maxItems",
      "minimum",
      "maximum",
      "minLength",
      "maxLength",
      "minProperties",
      "maxProperties",
      "anyOf",
      "propertyOrdering",
    ]);
    for (const node of everySchema(normalized(schema, "gemini"))) {
      for (const keyword of Object.keys(node)) expect(known, keyword).toContain(keyword);
      if (node["anyOf"] !== undefined) expect(Object.keys(node)).toEqual(["anyOf"]);
      else expect(node["type"]).toEqual(expect.any(String));
      if (node["type"] === "array") expect(node["items"]).toBeDefined();
      if (node["enum"] !== undefined) {
        expect(node["type"]).toBe("string");
        for (const value of node["enum"] as unknown[]) expect(value).toEqual(expect.stringMatching(/./));
      }
    }
  });

  it("[spine-16c] keeps within what OpenAI's strict mode knows", () => {
    const known = new Set([
      "type",
      "enum",
      "const",
      "properties",
      "required",
      "additionalProperties",
      "items",
      "anyOf",
      "title",
      "description",
      "pattern",
      "format",
      "multipleOf",
      "minimum",
      "maximum",
      "exclusiveMinimum",
      "exclusiveMaximum",
      "minItems",
      "maxItems",
    ]);
    for (const node of everySchema(normalized(schema, "openai-strict"))) {
      for (const keyword of Object.keys(node)) expect(known, keyword).toContain(keyword);
      expect(node["type"] ?? node["anyOf"]).toBeDefined();
      if (![node["type"]].flat().includes("object")) continue;
      expect(node["additionalProperties"]).toBe(false);
      expect(node["required"]).toEqual(Object.keys(node["properties"] as object));
    }
  });
});

describe("any schema", () => {
  it.each(NORMALISING)(
    "[spine-16c] for %s: plain root, no reference, valid, idempotent, input untouched",
    (provider) => {
      fc.assert(
        fc.property(anySchema(), (schema) => {
          const before = structuredClone(schema);
          const { schema: once } = normalizeSchema(deepFreeze(schema), provider);
          expect(schema).toEqual(before);
          expect(once["type"]).toBe("object");
          expect(keywordsIn(once)).not.toContain("$ref");
          expect(() => validator(once)).not.toThrow();
          expect(normalizeSchema(once, provider).schema).toEqual(once);
        }),
        { numRuns: 100 },
      );
    },
  );

  it("[spine-16c] for openai: allows whatever was allowed, cycles and lost references included", () => {
    let compared = 0;
    fc.assert(
      fc.property(
        anySchema({ rootUnions: 0 }),
        fc.array(anyArguments(), { minLength: 20, maxLength: 20 }),
        (schema, many) => {
          const fits = validator(normalized(schema, "openai"));
          for (const args of fitting(schema, many)) {
            compared += 1;
            expect(fits(args), JSON.stringify(args)).toBe(true);
          }
        },
      ),
      { numRuns: 200 },
    );
    expect(compared).toBeGreaterThan(100);
  });

  it.each(FAITHFUL)("[spine-16c] for %s: shares nothing with its input that could be changed", (provider) => {
    fc.assert(
      fc.property(anySchema(), (schema) => {
        const inputs = new Set(everyObject(schema));
        for (const object of everyObject(normalizeSchema(schema, provider).schema))
          expect(inputs.has(object)).toBe(false);
      }),
      { numRuns: 100 },
    );
  });
});

function everyObject(value: unknown): object[] {
  return typeof value === "object" && value !== null ? [value, ...Object.values(value).flatMap(everyObject)] : [];
}

it("[spine-16c] raw gives the very object back", () => {
  const schema = { anyOf: [{ $ref: "x" }] };
  expect(normalizeSchema(schema, "raw").notes).toEqual([]);
  expect(normalizeSchema(schema, "raw").schema).toBe(schema);
});
