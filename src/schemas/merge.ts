/** Several schemas that all hold (`allOf`) as one. What cannot be said in one schema is dropped, so the result never allows less. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { canonical, distinct } from "./copy.ts";
import type { Notes } from "./notes.ts";
import { ANNOTATIONS, schemaMap, stringList } from "./positions.ts";

/** Keywords that mean something only together: of two such groups the first stands. */
const GROUPS: readonly (readonly [head: string, ...rest: string[]])[] = [
  ["if", "then", "else"],
  ["contains", "minContains", "maxContains"],
  ["prefixItems", "items"],
];

/** Annotations of earlier members win. */
export function mergeSchemas(members: readonly JsonObject[], notes: Notes, path: string): JsonObject {
  return members.reduce((merged, member) => mergeTwo(merged, member, notes, path), {});
}

function mergeTwo(first: JsonObject, second: JsonObject, notes: Notes, path: string): JsonObject {
  const merged: JsonObject = { ...first };
  const dropped = new Set<string>();
  for (const group of GROUPS) {
    const [head] = group;
    if (!(head in first) || !(head in second)) continue;
    if (canonical(first[head]) === canonical(second[head])) continue;
    for (const keyword of group) dropped.add(keyword);
    notes.add(`two different ${head} cannot be merged; the second is dropped`, path);
  }
  for (const [keyword, value] of Object.entries(second)) {
    if (dropped.has(keyword)) continue;
    merged[keyword] = Object.hasOwn(merged, keyword)
      ? mergeKeyword(keyword, merged[keyword], value, notes, path)
      : value;
  }
  return merged;
}

function mergeKeyword(keyword: string, first: unknown, second: unknown, notes: Notes, path: string): unknown {
  switch (keyword) {
    case "type":
      return commonTypes(first, second, notes, path);
    case "properties":
    case "patternProperties":
    case "dependentSchemas":
      return mergeMaps(first, second, notes, `${path}/${keyword}`);
    case "required":
      return [...new Set([...stringList(first), ...stringList(second)])];
    case "allOf":
      return [first, second].flat();
    case "not":
      return { anyOf: distinct([first, second]) };
    case "uniqueItems":
      return first === true || second === true;
    case "additionalProperties":
    case "unevaluatedProperties":
    case "items":
    case "unevaluatedItems":
    case "propertyNames":
      return mergeSchemaOrBoolean(first, second, notes, `${path}/${keyword}`);
    case "enum":
      return commonValues(first, second, notes, path);
    default:
      return mergeValue(keyword, first, second, notes, path);
  }
}

function mergeValue(keyword: string, first: unknown, second: unknown, notes: Notes, path: string): unknown {
  if (typeof first === "number" && typeof second === "number") {
    if (/^(min|exclusiveMin)/.test(keyword)) return Math.max(first, second);
    if (/^(max|exclusiveMax)/.test(keyword)) return Math.min(first, second);
  }
  if (!ANNOTATIONS.has(keyword) && canonical(first) !== canonical(second)) {
    notes.add(`two different ${keyword} cannot be merged; the second is dropped`, path);
  }
  return first;
}

function mergeMaps(first: unknown, second: unknown, notes: Notes, path: string): JsonObject {
  const map = new Map(Object.entries(schemaMap(first)));
  for (const [name, schema] of Object.entries(schemaMap(second))) {
    const known = map.get(name);
    map.set(name, known === undefined ? schema : mergeSchemas([known, schema], notes, `${path}/${name}`));
  }
  return Object.fromEntries(map);
}

function mergeSchemaOrBoolean(first: unknown, second: unknown, notes: Notes, path: string): unknown {
  if (first === false || second === false) return false;
  if (!isJsonObject(first)) return second;
  return isJsonObject(second) ? mergeSchemas([first, second], notes, path) : first;
}

function commonTypes(first: unknown, second: unknown, notes: Notes, path: string): unknown {
  const others = stringList([second].flat());
  const common = stringList([first].flat()).flatMap((type) => {
    if (others.includes(type)) return [type];
    if (type === "number" && others.includes("integer")) return ["integer"];
    return type === "integer" && others.includes("number") ? [type] : [];
  });
  if (common.length === 0) {
    notes.add(`the types ${canonical(first)} and ${canonical(second)} have nothing in common; the first stands`, path);
    return first;
  }
  return common.length === 1 ? common[0] : common;
}

function commonValues(first: unknown, second: unknown, notes: Notes, path: string): unknown {
  if (!Array.isArray(first) || !Array.isArray(second)) return first;
  const others = new Set(second.map(canonical));
  const common = first.filter((value) => others.has(canonical(value)));
  if (common.length > 0) return common;
  notes.add("two enums have no value in common; the first stands", path);
  return first;
}
