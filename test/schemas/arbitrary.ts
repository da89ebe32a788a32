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
        unevaluatedItems: tie("schema"),
        maxItems: fc.integer({ min: 0, max: 2 }),
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
      patternProperties: fc
        .tuple(fc.constantFrom("^p", "^(?!a)", "^\\p{L}"), tie("schema"))
        .map(([pattern, inner]) => ({ [pattern]: inner })),
      not: tie("schema"),
      description: fc.constant("an object"),
    },
    { requiredKeys: [] },
  ),
}));

const KEYWORDS = [
  ...["type", "enum", "const", "required", "dependentRequired", "dependencies", "pattern", "format", "multipleOf"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"],
  ...["uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties", "title", "description", "default"],
  ...["examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"],
  ...["properties", "patternProperties", "dependentSchemas", "anyOf", "oneOf", "allOf", "prefixItems", "items"],
  ...["additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "propertyNames"],
  ...["contains", "not", "if", "then", "else", "nullable", "discriminator", "id", "$id", "$ref", "$dynamicRef"],
  ...["$schema", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "__proto__", "a", "toString"],
];

/** An object whose keys are keywords and whose values are anything, now and then the right thing. */
export function anyJunk(): fc.Arbitrary<JsonObject> {
  const scalar = fc.constantFrom<unknown>(
    ...["", "x", "(", "[]", "^(?=a)", "^\\p{L}+$", "\\-", "string", "array", "object", "#", "#/properties/a", "a"],
    ...[7, -1, 0, 2.5, Number.NaN, Infinity, true, false, null, undefined],
  );
  const { junk } = fc.letrec<{ junk: JsonObject; value: unknown }>((tie) => ({
    junk: fc.dictionary(fc.constantFrom(...KEYWORDS), tie("value"), { maxKeys: 5, noNullPrototype: true }),
    value: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      scalar,
      fc.array(scalar, { maxLength: 3 }),
      fc.array(tie("value"), { maxLength: 3 }),
      tie("junk"),
      schema,
    ),
  }));
  return junk;
}

/** A keyword with a value that it must not have. */
export function anyMalformed(): fc.Arbitrary<JsonObject> {
  return fc.constantFrom<JsonObject>(
    { minLength: "3" },
    { enum: "x" },
    { required: "a" },
    { pattern: "(" },
    { dependentRequired: { a: "b" } },
    { multipleOf: 0 },
    { title: 7 },
    { uniqueItems: "yes" },
  );
}

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
