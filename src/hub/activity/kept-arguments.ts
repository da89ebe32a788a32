/** What may be shown of the arguments of a call that waits for a yes, and what is kept of them. */
import type { JsonObject } from "../../model/json.ts";
import { looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { MASK } from "../../secrets/mask.ts";

/** Stands for a value; `audit.arguments` keeps values. */
const NOT_KEPT = "(not kept)";

export function withoutCredentials(args: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, withoutCredential(key, value)]));
}

/** A secret of the caller's own is known to no redactor; the name of its key is all there is to go by. */
export function withoutCredential(key: string, value: unknown): unknown {
  if (isCredential(key, value)) return MASK;
  if (typeof value !== "object" || value === null) return value;
  const text = JSON.stringify(value, (inner, each: unknown) => (isCredential(inner, each) ? MASK : each));
  return JSON.parse(text) as unknown;
}

/** Their names, without what they say. */
export function withoutValues(args: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.keys(args).map((key) => [key, NOT_KEPT]));
}

/** Many tools call the name of an entry or an issue its `key`, and who answers has to see which one it is. */
function isCredential(key: string, value: unknown): boolean {
  return value !== null && typeof value !== "boolean" && key.toLowerCase() !== "key" && looksLikeCredential(key);
}
