/** Arbitrary object schemas with references, unions, odd property names and older spellings. */
import fc from "fast-check";
import type { JsonObject } from "../../src/model/json.ts";

const NAMES = ["a", "b", "format", "$ref", "title", "__proto__", "x-y", "anyOf", "required"];
const DEFS = ["A", "B", "C"];

const name = fc.constantFrom(...NAMES);
const literal = fc.oneof(
  fc.constantFrom("", "x", "y"),
  fc.integer({ min: -3, max: 3 }),
  fc.boolean(),
  fc.constant(null),
);
const annotations = fc.record(
  { description: fc.constantFrom("one", "two"), title: fc.constant("T"), default: literal, "x-own": literal },
  { requiredKeys: [] },
);

const { schema } = fc.letrec<{
  schema: unknown;
  object: JsonObject;
  leaf: JsonObject;
  union: JsonObject;
  array: JsonObject;
  reference: JsonObject;
}>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    tie("leaf"),
    tie("reference"),
    tie("object"),
    tie("array"),
    tie("union"),
    fc.boolean(),
  ),
  leaf: fc.oneof(
    fc
      .tuple(
        annotations,
        fc.constantFrom("string", "number", "integer", "boolean", "null", ["string", "null"], ["integer", "string"]),
      )
      .map(([about, type]) => ({ ...about, type })),
    fc.uniqueArray(literal, { minLength: 1, maxLength: 3 }).map((values) => ({ enum: values })),
    literal.map((value) => ({ const: value })),
    fc.record({ type: fc.constantFrom("integer", "number"), exclusiveMinimum: fc.integer({ min: 0, max: 3 }) }),
    fc.constant({ type: "string", nullable: true, pattern: "^(?!x)", format: "uri" }),
    fc.constant({}),
  ),
  reference: fc
    .tuple(fc.constantFrom(...DEFS.map((def) => `#/$defs/${def}`), "#", "#/$defs/none"), annotations)
    .map(([$ref, about]) => ({ ...about, $ref })),
  array: fc.oneof(
    fc.record({ type: fc.constant("array"), items: tie("schema") }, { requiredKeys: ["type"] }),
    fc.record(
      {
        type: fc.constant("array"),
        prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        items: tie("schema"),
      },
      { requiredKeys: ["prefixItems"] },
    ),
  ),
  union: fc
    .tuple(
      fc.constantFrom("anyOf", "oneOf", "allOf"),
      fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
      annotations,
    )
    .map(([keyword, branches, about]) => ({ ...about, [keyword]: branches })),
  object: fc.record(
    {
      type: fc.constantFrom("object", ["object", "null"]),
      properties: fc
        .array(fc.tuple(name, tie("schema")), { maxLength: 3 })
        .map((entries) => Object.fromEntries(entries)),
      required: fc.uniqueArray(name, { maxLength: 2 }),
      additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
      patternProperties: tie("schema").map((inner) => ({ "^p": inner })),
      not: tie("schema"),
      description: fc.constant("an object"),
    },
    { requiredKeys: [] },
  ),
}));

/** Arguments of which some fit some schemas. */
export function anyArguments(): fc.Arbitrary<JsonObject> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      literal,
      fc.array(tie("value"), { maxLength: 2 }),
      fc.dictionary(name, tie("value"), { maxKeys: 2, noNullPrototype: true }),
    ),
  }));
  return fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true });
}

/** A root that an object can satisfy as far as its own type goes; with `rootUnions: 0` it has no union itself. */
export function anySchema({ rootUnions = 2 } = {}): fc.Arbitrary<JsonObject> {
  const object = fc.dictionary(name, schema, { maxKeys: 4, noNullPrototype: true });
  return fc
    .record({
      properties: object,
      required: fc.uniqueArray(name, { maxLength: 2 }),
      definitions: fc.tuple(schema, schema, schema),
      unions: fc.array(
        fc.tuple(
          fc.constantFrom("anyOf", "oneOf", "allOf"),
          fc.array(
            object.map((properties) => ({ type: "object", properties })),
            { minLength: 1, maxLength: 3 },
          ),
        ),
        { maxLength: rootUnions },
      ),
    })
    .map(({ properties, required, definitions, unions }) => ({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties,
      required,
      ...Object.fromEntries(unions),
      $defs: Object.fromEntries(DEFS.map((def, index) => [def, definitions[index]])),
    }));
}
