/** One schema node without `allOf`, `oneOf` and tuples, for providers that know only plain shapes and `anyOf`. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { mergeSchemas } from "./merge.ts";
import type { Notes } from "./notes.ts";
import { schemaList, stringList } from "./positions.ts";
import { eitherOf, flattenObject } from "./union.ts";

/** In the result `anyOf` stands alone but for title and description. Schemas inside are untouched. */
export function simplify(schema: JsonObject, notes: Notes, path: string): JsonObject {
  let node = schema;
  while (node["allOf"] !== undefined) {
    const { allOf, ...rest } = node;
    node = mergeSchemas([rest, ...schemaList(allOf)], notes, path);
  }
  return withoutTuple(withoutOuterUnion(node, notes, path), notes, path);
}

function withoutOuterUnion(node: JsonObject, notes: Notes, path: string): JsonObject {
  const { anyOf, oneOf, ...own } = node;
  if (anyOf === undefined && oneOf === undefined) return node;
  if (own["properties"] !== undefined || own["additionalProperties"] !== undefined) {
    // Flattening speaks of objects only; null or another type beside them stays allowed.
    return {
      ...(flattenObject(node, notes, path) ?? own),
      ...(own["type"] === undefined ? {} : { type: own["type"] }),
    };
  }
  if (anyOf !== undefined && oneOf !== undefined) notes.add("oneOf beside anyOf is dropped", path);
  if (own["items"] !== undefined || own["prefixItems"] !== undefined) {
    notes.add("a union beside items is dropped", path);
    return own;
  }
  // What is left beside the union is small (types, bounds), so it can stand in each branch.
  const { title, description, ...shared } = own;
  const branches = schemaList(anyOf ?? oneOf).map((branch) => mergeSchemas([branch, shared], notes, path));
  const about = { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) };
  const either: JsonObject = { ...eitherOf(branches), ...about };
  return branches.length === 1 || either["anyOf"] === undefined ? simplify(either, notes, path) : either;
}

function withoutTuple(node: JsonObject, notes: Notes, path: string): JsonObject {
  const { prefixItems, items, ...rest } = node;
  if (prefixItems === undefined) return node;
  notes.add("a tuple becomes a list of any of its items", path);
  const schemas = [...schemaList(prefixItems), ...(isJsonObject(items) ? [items] : [])];
  const closed = items === false && rest["maxItems"] === undefined ? { maxItems: schemaList(prefixItems).length } : {};
  return { ...rest, ...closed, items: eitherOf(schemas) };
}

/** The types that a node allows, told by its values or keywords where it does not say; empty for any. */
export function typesOf(node: JsonObject): string[] {
  const said = stringList([node["type"]].flat());
  if (said.length > 0) return said;
  const values = valuesOf(node);
  if (values !== undefined) return [...new Set(values.map(typeOfValue))];
  if (node["properties"] !== undefined || isJsonObject(node["additionalProperties"])) return ["object"];
  if (node["items"] !== undefined) return ["array"];
  if (["pattern", "minLength", "maxLength", "format"].some((keyword) => node[keyword] !== undefined)) return ["string"];
  if (["minimum", "maximum", "multipleOf"].some((keyword) => node[keyword] !== undefined)) return ["number"];
  return [];
}

/** The values of `const` or `enum`. */
export function valuesOf(node: JsonObject): unknown[] | undefined {
  if (node["const"] !== undefined) return [node["const"]];
  return Array.isArray(node["enum"]) ? node["enum"] : undefined;
}

export function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
