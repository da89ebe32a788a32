/**
 * Where schemas stand inside a schema. Everything that walks a schema goes by these lists, so that a property
 * called `format` or `$ref` is never taken for a keyword.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";

/** Keywords whose value is one schema. */
export const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
  "items",
  "additionalProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "propertyNames",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "contentSchema",
]);

/** Keywords whose value is a list of schemas. */
export const SCHEMA_LIST_KEYWORDS: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);

/** Keywords whose value maps names to schemas. */
export const SCHEMA_MAP_KEYWORDS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
]);

/** Of `SCHEMA_KEYWORDS`, those where `true` and `false` are the usual spelling and stay. */
export const BOOLEAN_KEYWORDS: ReadonlySet<string> = new Set([
  "items",
  "additionalProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
]);

/** Keywords that describe and never decide validity. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

export type SchemaMap = { [name: string]: JsonObject };

/** The schemas of a map or list keyword of an inlined schema, where every schema is an object. */
export function schemaMap(value: unknown): SchemaMap {
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1])),
  );
}

export function schemaList(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

export function stringList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

export function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

export function mapValues(
  map: SchemaMap,
  path: string,
  replace: (inner: JsonObject, path: string) => JsonObject,
): SchemaMap {
  return Object.fromEntries(
    Object.entries(map).map(([name, inner]) => [name, replace(inner, `${path}/${escapePointer(name)}`)]),
  );
}
