/** The texts of a result, wherever its kind keeps them, and the result with those texts replaced. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";

/** Given a text, its replacement; the same text leaves it as it is. */
export type TextChange = (text: string) => string;

/**
 * Applies `change` to every text that a model would read: content blocks and embedded resources of a tool, contents of a
 * resource, messages of a prompt. Shares what did not change with the original.
 */
export function mapTexts(result: Result, change: TextChange): Result {
  let mapped = result;
  for (const [key, mapItem] of [
    ["content", mapBlock],
    ["contents", mapText],
    ["messages", mapMessage],
  ] as const) {
    const list = result[key];
    if (!Array.isArray(list)) continue;
    const items: unknown[] = list;
    const next = items.map((item) => (isJsonObject(item) ? mapItem(item, change) : item));
    if (next.some((item, index) => item !== items[index])) mapped = { ...mapped, [key]: next };
  }
  return mapped;
}

/** Every text in a value of any shape, such as `structuredContent`, replaced in place of the old one. */
export function mapStrings(value: unknown, change: TextChange): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) {
    const next = value.map((item) => mapStrings(item, change));
    return next.some((item, index) => item !== value[index]) ? next : value;
  }
  if (!isJsonObject(value)) return value;
  let mapped = value;
  for (const [key, item] of Object.entries(value)) {
    const next = mapStrings(item, change);
    if (next !== item) mapped = { ...mapped, [key]: next };
  }
  return mapped;
}

function mapBlock(block: JsonObject, change: TextChange): JsonObject {
  const own = mapText(block, change);
  const resource = own["resource"];
  if (!isJsonObject(resource)) return own;
  const mapped = mapText(resource, change);
  return mapped === resource ? own : { ...own, resource: mapped };
}

function mapMessage(message: JsonObject, change: TextChange): JsonObject {
  const content = message["content"];
  if (!isJsonObject(content)) return message;
  const mapped = mapBlock(content, change);
  return mapped === content ? message : { ...message, content: mapped };
}

function mapText(holder: JsonObject, change: TextChange): JsonObject {
  const text = holder["text"];
  if (typeof text !== "string") return holder;
  const next = change(text);
  return next === text ? holder : { ...holder, text: next };
}
