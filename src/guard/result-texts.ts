/** The texts of a result, wherever its kind keeps them, and the result with texts replaced. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import { characterSet, runEnd } from "./detect/runs.ts";
import { textBlobs, withTextBlob } from "./text-blobs.ts";
import { hasOwnKeys, withoutOwnKeys } from "./untrusted-mark.ts";

/** Given a text, its replacement; the same text leaves it as it is. */
export type TextChange = (text: string) => string;

export interface ResultTexts {
  /** Every string and every key that could say anything, each once. */
  readonly texts: ReadonlySet<string>;
  /** A server has written keys of `_meta` that are ours. */
  readonly hasForgedMeta: boolean;
}

/** Too short for a phrase, and no character that could hide or forge anything: most keys, types and ids. */
const SAYS_NOTHING = /^[\w.:-]{0,20}$/;
const BASE64 = characterSet("A-Za-z0-9+/=\\r\\n");
/** Lines of base64 are long; words on lines of their own are not. */
const SHORT_LINE = /(?:^|\n)[^\n]{0,59}\n/;

/** All texts of a result, at whatever depth: whatever a program shows to a model was looked at, whichever field it takes. */
export function textsOf(result: Result): ResultTexts {
  const texts = new Set<string>();
  let hasForgedMeta = false;
  const add = (text: string): void => {
    if (!SAYS_NOTHING.test(text)) texts.add(text);
  };
  // A stack of its own: nesting that JSON.parse survives would overflow a recursive walk.
  const pending: unknown[] = [result];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") {
      add(value);
    } else if (Array.isArray(value)) {
      for (const element of value) pending.push(element);
    } else if (isJsonObject(value)) {
      for (const [, text] of textBlobs(value)) add(text);
      for (const [key, member] of Object.entries(value)) {
        add(key);
        if (isBinary(key, member)) continue;
        if (key === "_meta" && isJsonObject(member) && hasOwnKeys(member)) hasForgedMeta = true;
        pending.push(member);
      }
    }
  }
  return { texts, hasForgedMeta };
}

/** Images, audio and files: nobody reads them as they are, and they can be large. */
function isBinary(key: string, value: unknown): boolean {
  if ((key !== "data" && key !== "blob") || typeof value !== "string") return false;
  return runEnd(value, BASE64, 0) === value.length && !(value.includes("\n") && SHORT_LINE.test(value));
}

/** The result with every string and key changed, and without the keys of `_meta` that only we write. */
export function rewritten(value: Result, change: TextChange): Result {
  // An object becomes an object.
  return rewrittenValue(value, change) as Result;
}

function rewrittenValue(value: unknown, change: TextChange): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((element) => rewrittenValue(element, change));
  if (!isJsonObject(value)) return value;
  const members = new Map<string, unknown>();
  for (const [key, member] of Object.entries(withTextsChanged(value, change))) {
    const own = key === "_meta" && isJsonObject(member) ? withoutOwnKeys(member) : member;
    members.set(freeKey(members, change(key)), isBinary(key, own) ? own : rewrittenValue(own, change));
  }
  return Object.fromEntries(members);
}

function withTextsChanged(holder: JsonObject, change: TextChange): JsonObject {
  let changed = holder;
  for (const [key, text] of textBlobs(holder)) {
    const next = change(text);
    if (next !== text) changed = withTextBlob(changed, key, next);
  }
  return changed;
}

/** Two keys can become the same text; neither value may be lost. */
function freeKey(taken: ReadonlyMap<string, unknown>, key: string): string {
  if (!taken.has(key)) return key;
  // From the count on, so that many such keys stay cheap; at most as many steps as there are members.
  let number = taken.size + 1;
  while (taken.has(`${key} (${number})`)) number += 1;
  return `${key} (${number})`;
}

/**
 * Applies `change` to every text that a model would read: content blocks and embedded resources of a tool, contents of a
 * resource, messages and description of a prompt. Shares what did not change with the original.
 */
export function mapTexts(result: Result, change: TextChange): Result {
  let mapped = result;
  for (const [key, mapItem] of [
    ["content", mapBlock],
    ["contents", mapText],
    ["messages", mapMessage],
  ] as const) {
    const list = result[key];
    if (Array.isArray(list)) mapped = withMember(mapped, key, mapList(list, mapItem, change));
  }
  const { description, messages } = result;
  if (typeof description !== "string" || !Array.isArray(messages)) return mapped;
  return withMember(mapped, "description", change(description));
}

type MapItem = (item: JsonObject, change: TextChange) => JsonObject;

function mapList(items: unknown[], mapItem: MapItem, change: TextChange): unknown[] {
  const next = items.map((item) => (isJsonObject(item) ? mapItem(item, change) : item));
  return next.some((item, index) => item !== items[index]) ? next : items;
}

function mapBlock(block: JsonObject, change: TextChange): JsonObject {
  const own = mapText(block, change);
  const resource = own["resource"];
  return isJsonObject(resource) ? withMember(own, "resource", mapText(resource, change)) : own;
}

/** The protocol has one block for a message; servers also send a list, or bare text. */
function mapMessage(message: JsonObject, change: TextChange): JsonObject {
  const { content } = message;
  if (typeof content === "string") return withMember(message, "content", change(content));
  if (Array.isArray(content)) return withMember(message, "content", mapList(content, mapBlock, change));
  return isJsonObject(content) ? withMember(message, "content", mapBlock(content, change)) : message;
}

function mapText(holder: JsonObject, change: TextChange): JsonObject {
  const text = holder["text"];
  return typeof text === "string" ? withMember(holder, "text", change(text)) : holder;
}

function withMember(holder: JsonObject, key: string, value: unknown): JsonObject {
  return holder[key] === value ? holder : { ...holder, [key]: value };
}
