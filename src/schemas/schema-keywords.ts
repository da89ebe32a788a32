/**
 * The positions of schemas inside a schema. Everything that walks a schema uses these lists, so that a property
 * called `format` or `$ref` is never taken for a keyword.
 */
import { ToolcribError } from "../model/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";

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

/** No real schema is nested more deeply, and providers stop long before. */
export const MAX_DEPTH = 100;

export function tooDeep(path: string): ToolcribError {
  const where = path.length > 80 ? `${path.slice(0, 80)}…` : path;
  return new ToolcribError(
    "invalid_arguments",
    `The schema is nested more than ${MAX_DEPTH} levels deep, at ${where}.`,
  );
}

/** A deep copy of plain JSON; values that JSON cannot express are left out. */
export function copyJson(value: unknown, path: string, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw tooDeep(path);
  if (Array.isArray(value)) return value.map((item) => copyJson(item, path, depth + 1) ?? null);
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, inner]) => [key, copyJson(inner, path, depth + 1)] as const);
    return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
  }
  if (typeof value === "number" && !Number.isFinite(value)) return undefined;
  return typeof value === "function" || typeof value === "symbol" || typeof value === "bigint" ? undefined : value;
}

/** Without equal values. */
export function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [canonicalJson(value), value])).values()];
}

const MAX_PATH = 100;

/** Changes and losses of normalizing: each kind once, with the first place where it happened. */
export class SchemaNotes {
  readonly #places = new Map<string, Set<string>>();

  add(text: string, path: string): void {
    const places = this.#places.get(text);
    if (places === undefined) this.#places.set(text, new Set([path]));
    else places.add(path);
  }

  list(): string[] {
    return [...this.#places].map(([text, places]) => {
      const [first = ""] = places;
      const more = places.size > 1 ? ` and ${places.size - 1} more` : "";
      const where = first.length > MAX_PATH ? `${first.slice(0, MAX_PATH)}…` : first;
      return `${where === "" ? "/" : where}${more}: ${text}`;
    });
  }
}
