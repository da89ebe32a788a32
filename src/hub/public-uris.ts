/**
 * A server speaks of its resources by its own URIs. Where the public one is another, because other servers claim it,
 * results get the public one: what a client finds in a result it can read, from the server that said it.
 */
import type { CatalogReader } from "../catalog/catalog-reader.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import type { Source } from "../model/source.ts";
import type { Session } from "../sessions/session.ts";

/**
 * The same result unless something of it is mapped; of most servers nothing ever is. Links to what nobody lists are
 * remembered for the session.
 */
export function withPublicUris(catalog: CatalogReader, session: Session, source: Source, result: Result): Result {
  // Sources in this process have no resources; what they pass on from servers has its public URIs already.
  if (source.kind !== "server") return result;
  const publicUri = (uri: string): string => {
    const given = catalog.publicUri(source.id, uri);
    if (given === uri && catalog.findResource(uri) === undefined) session.links.add(uri, source.id);
    return given;
  };
  let changed = result;
  for (const [key, mapItem] of PLACES) {
    const items = result[key];
    if (!Array.isArray(items)) continue;
    const mapped = mapItems(items, mapItem, publicUri);
    if (mapped !== items) changed = { ...changed, [key]: mapped };
  }
  return changed;
}

type PublicUri = (uri: string) => string;
type MapItem = (item: JsonObject, publicUri: PublicUri) => JsonObject;

/** Where results name resources: blocks of content, what a resource holds, messages of a prompt. */
const PLACES: readonly (readonly [key: string, mapItem: MapItem])[] = [
  ["content", block],
  ["contents", located],
  ["messages", message],
];

function message(item: JsonObject, publicUri: PublicUri): JsonObject {
  const { content } = item;
  if (Array.isArray(content)) {
    const mapped = mapItems(content, block, publicUri);
    return mapped === content ? item : { ...item, content: mapped };
  }
  if (!isJsonObject(content)) return item;
  const mapped = block(content, publicUri);
  return mapped === content ? item : { ...item, content: mapped };
}

function block(item: JsonObject, publicUri: PublicUri): JsonObject {
  if (item["type"] === "resource_link") return located(item, publicUri);
  const { resource } = item;
  if (item["type"] !== "resource" || !isJsonObject(resource)) return item;
  const mapped = located(resource, publicUri);
  return mapped === resource ? item : { ...item, resource: mapped };
}

function located(item: JsonObject, publicUri: PublicUri): JsonObject {
  const { uri } = item;
  if (typeof uri !== "string") return item;
  const mapped = publicUri(uri);
  return mapped === uri ? item : { ...item, uri: mapped };
}

/** The same list if no item is another. */
function mapItems(items: unknown[], map: MapItem, publicUri: PublicUri): unknown[] {
  let changed: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    if (!isJsonObject(item)) continue;
    const mapped = map(item, publicUri);
    if (mapped !== item) (changed ??= [...items])[index] = mapped;
  }
  return changed ?? items;
}
