/** Strong tags that change with a server's entry, as HTTP writes them. */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../model/canonical-json.ts";
import type { JsonObject } from "../../model/json.ts";

export function etagOf(entry: JsonObject, revision = 0): string {
  const digest = createHash("sha256").update(canonicalJson(entry)).digest("hex").slice(0, 16);
  return `"${revision}-${digest}"`;
}

/** `*`, one tag or several, with or without quotes. A weak tag never matches: an entry is the same or it is not. */
export function matchesEtag(given: string, etag: string): boolean {
  const bare = (tag: string): string => tag.replace(/^"(.*)"$/, "$1");
  return given.split(",").some((tag) => tag.trim() === "*" || bare(tag.trim()) === bare(etag));
}
