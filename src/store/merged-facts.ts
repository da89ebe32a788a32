import type { JsonObject } from "../model/json.ts";

/** What everything that keeps conversations makes of further facts: undefined takes one out. */
export function mergedFacts(before: Readonly<JsonObject>, more: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.entries({ ...before, ...more }).filter(([, value]) => value !== undefined));
}
