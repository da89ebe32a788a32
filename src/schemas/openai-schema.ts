/**
 * Schemas for OpenAI's strict mode: every object is closed, every property is required, and what was optional may be
 * null instead. What strict mode cannot express is dropped with a note; the tool's own check still has the whole schema.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { simplify, typesOf, unionOf, valuesOf } from "./combine.ts";
import {
  mapValues,
  SCHEMA_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  schemaList,
  schemaMap,
  type SchemaNotes,
  stringList,
} from "./schema-keywords.ts";

const KEPT = [
  "title",
  "description",
  "enum",
  "const",
  "pattern",
  "format",
  "multipleOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems",
] as const;

const LOST = [
  "minLength",
  "maxLength",
  "uniqueItems",
  "propertyNames",
  "minProperties",
  "maxProperties",
  "dependentRequired",
  "dependentSchemas",
  "not",
  "if",
  "contains",
  "unevaluatedProperties",
  "unevaluatedItems",
  "default",
] as const;

const FORMATS: ReadonlySet<unknown> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
]);

const MAX_LEVELS = 10;
const MAX_PROPERTIES = 5000;
const MAX_ENUM_VALUES = 1000;

export function openAiStrictSchema(root: JsonObject, notes: SchemaNotes): JsonObject {
  const counts = { properties: 0, values: 0, levels: 0 };
  const schema = new StrictConverter(notes, counts).convert(root, "", 0);
  if (counts.levels > MAX_LEVELS)
    notes.add(`strict mode allows ${MAX_LEVELS} levels, this schema has ${counts.levels}`, "");
  if (counts.properties > MAX_PROPERTIES) {
    notes.add(`strict mode allows ${MAX_PROPERTIES} properties, this schema has ${counts.properties}`, "");
  }
  if (counts.values > MAX_ENUM_VALUES) {
    notes.add(`strict mode allows ${MAX_ENUM_VALUES} enum values, this schema has ${counts.values}`, "");
  }
  return schema;
}

class StrictConverter {
  readonly #notes: SchemaNotes;
  readonly #counts: { properties: number; values: number; levels: number };

  constructor(notes: SchemaNotes, counts: { properties: number; values: number; levels: number }) {
    this.#notes = notes;
    this.#counts = counts;
  }

  convert(schema: JsonObject, path: string, level: number): JsonObject {
    const node = simplify(schema, this.#notes, path);
    if (node["anyOf"] !== undefined) return this.#union(node, path, level);
    const types = typesOf(node);
    const kept = this.#keywords(node, path);
    if (types.length === 0) {
      this.#notes.add("strict mode cannot express “any value”; objects and lists are left out", path);
      return { ...kept, anyOf: ["string", "number", "boolean", "null"].map((type) => ({ type })) };
    }
    this.#counts.values += valuesOf(node)?.length ?? 0;
    return {
      type: types.length === 1 ? types[0] : types,
      ...kept,
      ...(types.includes("array") ? { items: this.#items(node, path, level) } : {}),
      ...(types.includes("object") ? this.#object(node, path, level + 1) : {}),
    };
  }

  #union(node: JsonObject, path: string, level: number): JsonObject {
    const { anyOf, ...about } = node;
    const branches = schemaList(anyOf).map((branch, index) => this.convert(branch, `${path}/anyOf/${index}`, level));
    return { ...about, anyOf: branches };
  }

  #items(node: JsonObject, path: string, level: number): JsonObject {
    return this.convert(isJsonObject(node["items"]) ? node["items"] : {}, `${path}/items`, level);
  }

  #object(node: JsonObject, path: string, level: number): JsonObject {
    const declared = schemaMap(node["properties"]);
    const required = new Set(stringList(node["required"]));
    const names = Object.keys(declared);
    this.#counts.properties += names.length;
    this.#counts.levels = Math.max(this.#counts.levels, level);
    const { additionalProperties: more, patternProperties } = node;
    if (
      isJsonObject(more) ||
      more === true ||
      patternProperties !== undefined ||
      (path !== "" && names.length === 0 && more !== false)
    ) {
      this.#notes.add(
        "not strict: an object with free property names becomes closed; send this tool without strict",
        path,
      );
    }
    const properties = mapValues(declared, `${path}/properties`, (inner, at) => this.convert(inner, at, level));
    return {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, inner]) => [name, required.has(name) ? inner : orNull(inner)]),
      ),
      required: names,
      additionalProperties: false,
    };
  }

  #keywords(node: JsonObject, path: string): JsonObject {
    for (const keyword of LOST) {
      if (node[keyword] !== undefined) this.#notes.add(`${keyword} is dropped for OpenAI strict`, path);
    }
    const kept = Object.fromEntries(
      KEPT.filter((keyword) => node[keyword] !== undefined).map((keyword) => [keyword, node[keyword]]),
    );
    if (kept["format"] !== undefined && !FORMATS.has(kept["format"])) {
      this.#notes.add(`the format ${JSON.stringify(kept["format"])} is dropped for OpenAI strict`, path);
      delete kept["format"];
    }
    // The grammar behind strict mode has no lookaround and no back references.
    if (typeof kept["pattern"] === "string" && /\(\?[=!<]|\\[1-9k]/.test(kept["pattern"])) {
      this.#notes.add("a pattern with lookaround is dropped for OpenAI strict", path);
      delete kept["pattern"];
    }
    return kept;
  }
}

/** The converted schema, or null. */
function orNull(schema: JsonObject): JsonObject {
  if (schema["anyOf"] !== undefined) {
    const branches = schemaList(schema["anyOf"]);
    const accepted = branches.some((branch) => stringList([branch["type"]].flat()).includes("null"));
    return accepted ? schema : { ...schema, anyOf: [...branches, { type: "null" }] };
  }
  const { const: _, enum: _enum, ...rest } = schema;
  const types = stringList([schema["type"]].flat());
  const values = valuesOf(schema);
  return {
    ...rest,
    type: types.includes("null") ? schema["type"] : [...types, "null"],
    ...(values === undefined ? {} : { enum: [...new Set([...values, null])] }),
  };
}

const UNIONS = ["allOf", "anyOf", "oneOf"] as const;

/**
 * The arguments without the nulls that only strict mode allowed: a model sends null for what it leaves out, and tools do
 * not expect that. `schema` is the tool's own, with references inlined.
 */
export function withoutStrictNulls(args: JsonObject, schema: JsonObject): JsonObject {
  return cleanObject(args, [schema]);
}

function cleanValue(value: unknown, schemas: readonly JsonObject[]): unknown {
  if (Array.isArray(value)) {
    const items = schemas.flatMap(alternatives).flatMap(({ items: schema }) => (isJsonObject(schema) ? [schema] : []));
    return value.map((item: unknown) => cleanValue(item, items));
  }
  return isJsonObject(value) ? cleanObject(value, schemas) : value;
}

function cleanObject(value: JsonObject, schemas: readonly JsonObject[]): JsonObject {
  const nodes = schemas.flatMap(alternatives);
  const required = new Set(schemas.flatMap(certain).flatMap((node) => stringList(node["required"])));
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    const declared = nodes.flatMap((node) => {
      const properties = schemaMap(node["properties"]);
      return Object.hasOwn(properties, name) ? [properties[name] ?? {}] : [];
    });
    const added = inner === null && declared.length > 0 && !required.has(name) && !declared.some(acceptsNull);
    return added ? [] : [[name, cleanValue(inner, declared)] as const];
  });
  return Object.fromEntries(entries);
}

/** The schema and its alternatives, in unions and under conditions. */
function alternatives(schema: JsonObject): JsonObject[] {
  const { then, else: otherwise, dependentSchemas } = schema;
  const conditional = [then, otherwise, ...Object.values(schemaMap(dependentSchemas))].filter(isJsonObject);
  const united = UNIONS.flatMap((keyword) => schemaList(schema[keyword]));
  return [schema, ...[...united, ...conditional].flatMap(alternatives)];
}

/** The schema and what always applies with it. */
function certain(schema: JsonObject): JsonObject[] {
  return [schema, ...schemaList(schema["allOf"]).flatMap(certain)];
}

function acceptsNull(schema: JsonObject): boolean {
  if (!schemaList(schema["allOf"]).every(acceptsNull)) return false;
  for (const keyword of ["anyOf", "oneOf"]) {
    if (schema[keyword] !== undefined && !schemaList(schema[keyword]).some(acceptsNull)) return false;
  }
  const values = valuesOf(schema);
  if (values !== undefined) return values.includes(null);
  const types = stringList([schema["type"]].flat());
  return types.length === 0 || types.includes("null");
}

/**
 * The inlined schema with an object as `items` of each array and tuple, at any depth: OpenAI refuses the whole request for
 * an array without `items`. The result allows neither more nor less, as long as there is no `unevaluatedItems`, which
 * `items` would silence.
 */
export function withArrayItems(schema: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (SCHEMA_KEYWORDS.has(keyword) && isJsonObject(value)) copy[keyword] = withArrayItems(value);
    else if (SCHEMA_LIST_KEYWORDS.has(keyword)) copy[keyword] = schemaList(value).map(withArrayItems);
    else if (SCHEMA_MAP_KEYWORDS.has(keyword)) copy[keyword] = mapValues(schemaMap(value), "", withArrayItems);
    else copy[keyword] = value;
  }
  const isArray = stringList([copy["type"]].flat()).includes("array") || "prefixItems" in copy || "items" in copy;
  return isArray && !isJsonObject(copy["items"]) ? { ...copy, ...itemsOf(copy) } : copy;
}

function itemsOf({ prefixItems, items, maxItems }: JsonObject): JsonObject {
  const tuple = schemaList(prefixItems);
  const most = typeof maxItems === "number" ? maxItems : Infinity;
  // Nothing comes after a closed tuple, so `items` can describe its contents for providers that do not know `prefixItems`.
  if (items === false) return { items: unionOf(tuple), maxItems: Math.min(most, tuple.length) };
  return { items: most <= tuple.length ? unionOf(tuple) : {} };
}
