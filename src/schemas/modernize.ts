/** Older spellings (draft-04 to draft-07, OpenAPI) of one schema node as JSON Schema 2020-12. Schemas inside are untouched. */
import { isJsonObject, type JsonObject } from "../model/json.ts";

export function modernize(schema: JsonObject, legacy: boolean): JsonObject {
  const node = { ...schema };
  tuple(node);
  exclusiveBound(node, "exclusiveMinimum", "minimum");
  exclusiveBound(node, "exclusiveMaximum", "maximum");
  nullable(node);
  example(node);
  if (legacy) dependencies(node);
  // Means nothing in 2020-12.
  delete node["dependencies"];
  return node;
}

function tuple(node: JsonObject): void {
  if (Array.isArray(node["items"])) {
    node["prefixItems"] = node["items"];
    delete node["items"];
    if (node["additionalItems"] !== undefined) node["items"] = node["additionalItems"];
  }
  delete node["additionalItems"];
}

function exclusiveBound(node: JsonObject, exclusive: string, inclusive: string): void {
  if (typeof node[exclusive] !== "boolean") return;
  const strict = node[exclusive] && typeof node[inclusive] === "number";
  delete node[exclusive];
  if (!strict) return;
  node[exclusive] = node[inclusive];
  delete node[inclusive];
}

function nullable(node: JsonObject): void {
  const { type } = node;
  if (node["nullable"] === true && type !== undefined) {
    node["type"] = [...new Set([type, "null"].flat())];
    if (Array.isArray(node["enum"]) && !node["enum"].includes(null)) node["enum"] = [...node["enum"], null];
  }
  delete node["nullable"];
}

function example(node: JsonObject): void {
  if (node["example"] !== undefined) node["examples"] ??= [node["example"]];
  delete node["example"];
}

function dependencies(node: JsonObject): void {
  const { dependencies: all } = node;
  if (!isJsonObject(all)) return;
  const entries = Object.entries(all);
  const names = entries.filter(([, value]) => Array.isArray(value));
  const schemas = entries.filter(([, value]) => !Array.isArray(value));
  if (names.length > 0) node["dependentRequired"] = Object.fromEntries(names);
  if (schemas.length > 0) node["dependentSchemas"] = Object.fromEntries(schemas);
}
