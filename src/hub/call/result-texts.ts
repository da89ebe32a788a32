/** The texts of a result, wherever its kind keeps them, and the result with texts replaced. */
import { isUtf8 } from "node:buffer";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import { characterSet, runEnd } from "../../base/character-runs.ts";
import { isOwnMetaKey, withoutOwnMeta } from "../../model/own-meta.ts";

/** Given a text, its replacement; the same text leaves it as it is. */
type TextChange = (text: string) => string;

export interface ResultTexts {
  /** Every string and key that could carry a message, each once. */
  readonly texts: ReadonlySet<string>;
  /** A server has written keys of `_meta` that are ours. */
  readonly hasForgedMeta: boolean;
}

/** Too short for a phrase, and no character that could hide or forge anything: most keys, types and ids. */
const HARMLESS = /^[\w.:-]{0,20}$/;
const BASE64 = characterSet("A-Za-z0-9+/=\\r\\n");
/** Lines of base64 are long; words on lines of their own are not. */
const SHORT_LINE = /(?:^|\n)[^\n]{0,59}\n/;
const BASE64_LETTERS = characterSet("A-Za-z0-9");
const BASE64_SIGNS = characterSet("+/=\\r\\n");
const WORD = /(?:[A-Z]?[a-z]{1,19}|[A-Z]{1,20})(?![A-Za-z0-9])/y;
/** So many in a row are not to be expected in a thousand random characters, nor with so many letters in a million. */
const [MIN_WORDS, MIN_LETTERS_OF_LONG] = [3, 18];
const MAX_SHORT_LENGTH = 1_000;

/** All texts of a result at any depth, because a program may show any field to a model. */
export function textsOf(result: Result): ResultTexts {
  const texts = new Set<string>();
  let hasForgedMeta = false;
  const add = (text: string): void => {
    if (!HARMLESS.test(text)) texts.add(text);
  };
  // An explicit stack: nesting that JSON.parse survives would overflow a recursive walk.
  const pending: unknown[] = [result];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") {
      add(value);
    } else if (Array.isArray(value)) {
      for (const element of value) pending.push(element);
    } else if (typeof value === "object" && value !== null) {
      // Neither null nor an array: any key of it may be read.
      const holder = value as JsonObject;
      for (const [, text] of textBlobs(holder)) add(text);
      for (const key of Object.keys(holder)) {
        const member = holder[key];
        add(key);
        if (isBinary(key, member)) continue;
        if (key === "_meta" && isJsonObject(member) && Object.keys(member).some(isOwnMetaKey)) hasForgedMeta = true;
        pending.push(member);
      }
    }
  }
  return { texts, hasForgedMeta };
}

/** Images, audio and files: they are not read as text, and they can be large. */
function isBinary(key: string, value: unknown): boolean {
  if ((key !== "data" && key !== "blob") || typeof value !== "string") return false;
  if (runEnd(value, BASE64, 0) !== value.length) return false;
  return !(value.includes("\n") && SHORT_LINE.test(value)) && !hasWords(value);
}

/** Whether words follow each other, with signs of base64 for blanks. */
function hasWords(text: string): boolean {
  const needed = text.length <= MAX_SHORT_LENGTH ? 0 : MIN_LETTERS_OF_LONG;
  let [words, letters] = [0, 0];
  for (let at = 0; at < text.length; at = runEnd(text, BASE64_SIGNS, at)) {
    WORD.lastIndex = at;
    if (WORD.test(text)) {
      words += 1;
      letters += WORD.lastIndex - at;
      if (words >= MIN_WORDS && letters >= needed) return true;
      at = WORD.lastIndex;
    } else {
      words = letters = 0;
      at = runEnd(text, BASE64_LETTERS, at);
    }
  }
  return false;
}

/** The result with every string and key changed, and without the keys of `_meta` that only we write. */
export function rewriteTexts(value: Result, change: TextChange): Result {
  // An object becomes an object.
  return rewriteValue(value, change) as Result;
}

function rewriteValue(value: unknown, change: TextChange): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((element) => rewriteValue(element, change));
  if (!isJsonObject(value)) return value;
  const members = new Map<string, unknown>();
  for (const [key, member] of Object.entries(withTextsChanged(value, change))) {
    const own = key === "_meta" && isJsonObject(member) ? withoutOwnMeta(member) : member;
    members.set(freeKey(members, change(key)), isBinary(key, own) ? own : rewriteValue(own, change));
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
 * resource, messages and description of a prompt, and the result that the state of a task holds. Shares what did not change with the
 * original.
 */
export function mapTexts(result: Result, change: TextChange): Result {
  const { result: ofTask } = result;
  const whole = isJsonObject(ofTask) ? withMember(result, "result", mapOwnTexts(ofTask, change)) : result;
  return mapOwnTexts(whole, change);
}

function mapOwnTexts(result: JsonObject, change: TextChange): JsonObject {
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

const TEXT_TYPE =
  /^\s*(?:text\/|(?:application|image|model)\/(?:[\w.-]+\+)?(?:json|xml|yaml)\b|application\/(?:x-)?(?:javascript|ecmascript|typescript|ndjson|jsonl|yaml|toml|sh|sql|httpd-php)\b|application\/(?:xhtml|graphql|rtf|ld|x-www-form-urlencoded))/i;
const MEDIA_TYPE = /^\s*(?:image|audio|video|font)\//i;
const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]+)"?/i;
/** Enough to see that an image is one. */
const SNIFF_LENGTH = 4096;

/** Keys of base64 values. */
const BASE64_KEYS = ["blob", "data"] as const;

/**
 * The texts in the base64 of one object, by key. Clients read such a resource as text, so it is inspected as text. Broken
 * base64 and binary data are left out.
 */
function textBlobs(holder: JsonObject): readonly [key: string, text: string][] {
  if (holder["blob"] === undefined && holder["data"] === undefined) return [];
  return BASE64_KEYS.flatMap((key) => {
    const base64 = holder[key];
    const text = typeof base64 === "string" ? decoded(base64, holder["mimeType"], key) : undefined;
    return text === undefined || text === "" ? [] : [[key, text] as [string, string]];
  });
}

/** The object with this text in place of the one that it held. */
function withTextBlob(holder: JsonObject, key: string, text: string): JsonObject {
  const { mimeType } = holder;
  const type = typeof mimeType === "string" ? { mimeType: mimeType.replace(CHARSET, ";charset=utf-8") } : {};
  return { ...holder, ...type, [key]: Buffer.from(text).toString("base64") };
}

function decoded(base64: string, mimeType: unknown, key: (typeof BASE64_KEYS)[number]): string | undefined {
  if (typeof mimeType === "string" && TEXT_TYPE.test(mimeType)) {
    return decodedAs(CHARSET.exec(mimeType)?.[1], Buffer.from(base64, "base64"));
  }
  // `data` is also what programs call anything, and media are shown as what they are said to be.
  if (typeof mimeType === "string" ? MEDIA_TYPE.test(mimeType) : key === "data") return undefined;
  // Whatever else it is said to be: bytes that are text can be read as text.
  const bytes = isText(Buffer.from(base64.slice(0, SNIFF_LENGTH), "base64"), true)
    ? Buffer.from(base64, "base64")
    : undefined;
  return bytes !== undefined && isText(bytes, false) ? bytes.toString("utf8") : undefined;
}

function isText(bytes: Buffer, isCut: boolean): boolean {
  if (bytes.includes(0)) return false;
  // A character may have been cut in its middle.
  return isUtf8(bytes) || (isCut && [1, 2, 3].some((cut) => isUtf8(bytes.subarray(0, -cut))));
}

function decodedAs(charset: string | undefined, bytes: Buffer): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return bytes.toString("utf8");
  }
}
