/**
 * OpenAI refuses the whole request for an array without `items`. What is added here is said by the schema anyway, so
 * that it allows neither more nor less; that holds only without `unevaluatedItems`, which `items` would silence.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  mapValues,
  SCHEMA_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  schemaList,
  schemaMap,
  stringList,
} from "./positions.ts";
import { eitherOf } from "./union.ts";

/** The inlined schema with an object as `items` of each array and tuple, at any depth. */
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
  // Nothing comes after a closed tuple, so `items` is free to tell those who do not know `prefixItems` what is in it.
  if (items === false) return { items: eitherOf(tuple), maxItems: Math.min(most, tuple.length) };
  return { items: most <= tuple.length ? eitherOf(tuple) : {} };
}
