/**
 * Keys of our own in `_meta`, in reverse DNS notation as the specification advises. The spelling of 0.1 is written beside it until
 * the version after 0.2.
 */
import { isJsonObject, type JsonObject } from "./json.ts";

const PREFIX = "dev.toolcrib/";
const OLD_PREFIX = "toolcrib/";

type OwnName = "untrusted" | "notes" | "skill" | "inputSchema";

/** The entry of `_meta`, in both spellings. */
export function ownMeta(name: OwnName, value: unknown): JsonObject {
  return { [PREFIX + name]: value, [OLD_PREFIX + name]: value };
}

export function ownMetaOf(meta: unknown, name: OwnName): unknown {
  return isJsonObject(meta) ? (meta[PREFIX + name] ?? meta[OLD_PREFIX + name]) : undefined;
}

/** Ours alone: what a server sends under such a key is dropped. */
export function isOwnMetaKey(key: string): boolean {
  return key.startsWith(PREFIX) || key.startsWith(OLD_PREFIX);
}

export function withoutOwnMeta(meta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !isOwnMetaKey(key)));
}
