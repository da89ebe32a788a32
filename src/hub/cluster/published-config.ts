/** What the store has of the config of all nodes: the document that holds, and what of the files led to it. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { completed, merged } from "./shared-document.ts";

/** A file that is older than that many others may count as new again. */
const MOST_SEEN = 200;

export interface PublishedConfig {
  readonly revision: number;
  readonly document: JsonObject;
  /** The last file that was put in place for the nodes, as opposed to what they wrote into it since. */
  readonly base: JsonObject;
  /** Digests of all that files said so far, the newest last. */
  readonly seen: readonly string[];
}

export function parsePublished(text: string | undefined): PublishedConfig | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) return undefined;
  const { revision, document, base = document, seen = [] } = value;
  if (typeof revision !== "number" || !isJsonObject(document) || !isJsonObject(base)) return undefined;
  return { revision, document, base, seen: Array.isArray(seen) ? seen.map(String) : [] };
}

/**
 * What becomes of the document where a node has no memory of it. Homes of containers begin empty, so the node cannot know by
 * itself whether its file is the one that all have, an older one, or a change; the store does.
 *
 * - A file that the cluster has seen changes nothing: all have it, or this node lags behind.
 * - Any other is a change against `base`: what it says otherwise counts for all, what the document got since stays.
 * - What it lacks of `base` is taken out only if the file cannot be written, because then somebody put it in place for the
 *   nodes and it is all that they say. A file that can be written gets what it lacks, so that no node that joins with a
 *   short file takes servers or rules from the others. The same holds for a file that says nothing at all.
 *
 * @param file What it says without plain credentials.
 * @param mine The same with what `base` has in their places.
 */
export function joined(
  published: PublishedConfig,
  file: JsonObject,
  mine: JsonObject,
  isDeployed: boolean,
): JsonObject {
  const { base, document } = published;
  if (hasSeen(published, file)) return document;
  const isWhole = isDeployed && Object.keys(mine).length > 0;
  return merged(base, isWhole ? mine : completed(mine, base), document);
}

export function hasSeen({ seen, base }: PublishedConfig, file: JsonObject): boolean {
  return isDeepStrictEqual(file, base) || seen.includes(digestOf(file));
}

/** @param file Of the node that changed something; `asBase` if it was put in place for the nodes. */
export function nextPublished(
  before: PublishedConfig | undefined,
  document: JsonObject,
  file: JsonObject,
  asBase: boolean,
): PublishedConfig {
  const { revision = 0, base = file, seen = [] } = before ?? {};
  const fresh = [digestOf(file), digestOf(document)];
  const all = [...new Set([...seen.filter((each) => !fresh.includes(each)), ...fresh])];
  return { revision: revision + 1, document, base: asBase ? file : base, seen: all.slice(-MOST_SEEN) };
}

function digestOf(document: JsonObject): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(document)))
    .digest("hex")
    .slice(0, 32);
}

/** The order of keys says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}
