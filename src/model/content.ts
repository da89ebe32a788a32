/** Content for readers that cannot show every block: people, terminals, models. Inside Toolcrib it is passed on unchanged. */
import { isJsonObject } from "./json.ts";
import type { CallToolResult, ContentBlock } from "./protocol.ts";

/**
 * One block as text: `[image: image/png, 24 KB]`, `[resource: file:///a]`, `[content: <type>]`.
 * An embedded resource with text is that text.
 */
export function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? block.text : "[content: text]";
    case "image":
    case "audio":
      return describeMedia(block);
    case "resource":
      if (isJsonObject(block.resource)) {
        if (typeof block.resource.text === "string") return block.resource.text;
        if (typeof block.resource.uri === "string")
          return `[resource: ${plainWord(block.resource.uri, MAX_ADDRESS_LENGTH)}]`;
      }
      return "[content: resource]";
    case "resource_link":
      return typeof block.uri === "string"
        ? `[resource: ${plainWord(block.uri, MAX_ADDRESS_LENGTH)}]`
        : "[content: resource_link]";
    default:
      return `[content: ${typeof block.type === "string" ? plainWord(block.type) : "unknown"}]`;
  }
}

/** The whole result as text for people. Structured content is only used if there is no other. */
export function resultText(result: CallToolResult): string {
  const text = blocksOf(result).map(describeBlock).join("\n");
  if (text !== "") return text;
  return structuredText(result, 2) ?? emptyResultText(result);
}

/**
 * The content for a model: text and images unchanged, everything else as text. Never empty, and without empty text blocks,
 * because a provider refuses the whole request for one.
 */
export function modelContent(result: CallToolResult): ContentBlock[] {
  const blocks = blocksOf(result)
    .map((block) => (isWholeImage(block) || isText(block) ? block : textBlock(describeBlock(block))))
    .filter((block) => block.type !== "text" || block.text !== "");
  if (blocks.length > 0) return blocks;
  return [textBlock(structuredText(result) ?? emptyResultText(result))];
}

/**
 * Beginning and end of a text that is longer than `maxBytes` in UTF-8, with `note` in between; never cuts a character.
 * The note counts too; where it alone is longer, only the note is left.
 */
export function truncateMiddle(text: string, maxBytes: number, note: string): string {
  // A UTF-16 unit is at most three bytes in UTF-8: short texts need no encoding to be known as short.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const room = Math.max(0, maxBytes - Buffer.byteLength(note));
  const bytes = Buffer.from(text);
  let headEnd = Math.ceil(room / 2);
  while (headEnd > 0 && isContinuation(bytes[headEnd])) headEnd -= 1;
  let tailStart = bytes.length - Math.floor(room / 2);
  while (tailStart < bytes.length && isContinuation(bytes[tailStart])) tailStart += 1;
  return bytes.toString("utf8", 0, headEnd) + note + bytes.toString("utf8", tailStart);
}

/** `512 B` below 1 KB, `24 KB` below 1 MB, then `1.5 MB`; 1 KB is 1024 bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const kilobytes = Math.round(bytes / 1024);
  if (kilobytes < 1024) return `${kilobytes} KB`;
  return `${Math.round((bytes / (1024 * 1024)) * 10) / 10} MB`;
}

function describeMedia(block: ContentBlock): string {
  const mimeType = typeof block.mimeType === "string" ? plainWord(block.mimeType) : "unknown";
  const size = typeof block.data === "string" ? `, ${formatBytes(decodedBytes(block.data))}` : "";
  return `[${block.type}: ${mimeType}${size}]`;
}

/** Bytes behind a base64 text, without decoding it. */
function decodedBytes(base64: string): number {
  const compact = /\s/.test(base64) ? base64.replace(/\s+/g, "") : base64;
  let length = compact.length;
  while (length > 0 && compact[length - 1] === "=") length -= 1;
  return Math.floor((length * 3) / 4);
}

const MAX_WORD_LENGTH = 200;
/** An address that is cut cannot be read any more, and honest ones can be long. */
const MAX_ADDRESS_LENGTH = 1024;

/** A server's word inside our brackets: no line breaks, terminal codes or hidden characters, and not endless. */
function plainWord(word: string, longest: number = MAX_WORD_LENGTH): string {
  const clean = word.slice(0, longest * 2).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, "");
  return clean.length > longest || word.length > longest * 2 ? `${clean.slice(0, longest).toWellFormed()}…` : clean;
}

/** Blocks that are blocks: a result may come from a server that keeps to no schema. */
function blocksOf(result: CallToolResult): ContentBlock[] {
  const content: unknown = result.content;
  return Array.isArray(content) ? content.filter((block): block is ContentBlock => isJsonObject(block)) : [];
}

function isText(block: ContentBlock): boolean {
  return block.type === "text" && typeof block.text === "string";
}

const MIME_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/;

/** A type that is none would carry a server's words to the model as they are. */
function isWholeImage({ type, data, mimeType }: ContentBlock): boolean {
  return type === "image" && typeof data === "string" && typeof mimeType === "string" && MIME_TYPE.test(mimeType);
}

/** Programs without types, and stored data, may contain anything. */
export function isContentBlock(value: unknown): value is ContentBlock {
  return isJsonObject(value) && typeof value["type"] === "string";
}

export function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

function structuredText(result: CallToolResult, indent?: number): string | undefined {
  if (result.structuredContent === undefined || result.structuredContent === null) return undefined;
  try {
    return JSON.stringify(result.structuredContent, null, indent);
  } catch {
    // Nested more deeply than it can be written.
    return "[content: structured]";
  }
}

const EMPTY_RESULT = "(empty result)";
const EMPTY_ERROR = "(error without details)";

function emptyResultText(result: CallToolResult): string {
  return result.isError === true ? EMPTY_ERROR : EMPTY_RESULT;
}

/** Whether a text is our own placeholder for an empty result. */
export function isEmptyResultText(text: string): boolean {
  return text === EMPTY_RESULT || text === EMPTY_ERROR;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
