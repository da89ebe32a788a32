/** Messages as the store keeps them: bounded when they are written, looked at when they are read. */
import { describeBlock, truncateMiddle } from "../../model/content.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { AgentMessage, AssistantPart, CallResult } from "../messages.ts";

/** Images stay as they are up to this size of the whole message; a database is no place for films. */
const LARGEST_MESSAGE = 8 * 1024 * 1024;
/** Of one text in a message that is still too large without its images. */
const LONGEST_TEXT = 256 * 1024;
const CUT = "\n[... not kept ...]\n";

export function toStored(message: AgentMessage): JsonObject {
  if (bytesOf(message) <= LARGEST_MESSAGE) return { ...message };
  const described = withBlocks(message, asText);
  if (bytesOf(described) <= LARGEST_MESSAGE) return { ...described };
  return { ...shortened(withBlocks(described, shortBlock)) };
}

/** Undefined for what no version of this program wrote. */
export function fromStored(stored: JsonObject): AgentMessage | undefined {
  switch (stored["role"]) {
    case "user":
      return isBlocks(stored["content"]) ? userMessage(stored["content"], stored["said"]) : undefined;
    case "assistant":
      return isList(stored["parts"], isPart) ? { role: "assistant", parts: stored["parts"] } : undefined;
    case "tool":
      return isList(stored["results"], isResult) ? { role: "tool", results: stored["results"] } : undefined;
    default:
      return undefined;
  }
}

function userMessage(content: readonly ContentBlock[], said: unknown): AgentMessage {
  return { role: "user", content, ...(typeof said === "string" ? { said } : {}) };
}

function bytesOf(message: AgentMessage): number {
  return Buffer.byteLength(JSON.stringify(message));
}

function withBlocks(message: AgentMessage, change: (block: ContentBlock) => ContentBlock): AgentMessage {
  switch (message.role) {
    case "user":
      return { ...message, content: message.content.map(change) };
    case "assistant":
      return message;
    case "tool":
      return {
        ...message,
        results: message.results.map((result) => ({ ...result, content: result.content.map(change) })),
      };
  }
}

function asText(block: ContentBlock): ContentBlock {
  return block.type === "text" ? block : { type: "text", text: describeBlock(block) };
}

function shortBlock(block: ContentBlock): ContentBlock {
  const text = block["text"];
  return typeof text === "string" ? { ...block, text: truncateMiddle(text, LONGEST_TEXT, CUT) } : block;
}

function shortened(message: AgentMessage): AgentMessage {
  if (message.role === "tool") return message;
  if (message.role === "user") {
    return message.said === undefined ? message : { ...message, said: truncateMiddle(message.said, LONGEST_TEXT, CUT) };
  }
  const short = (part: AssistantPart): AssistantPart =>
    part.type === "call"
      ? { ...part, input: bytesOfJson(part.input) > LONGEST_TEXT ? {} : part.input }
      : { ...part, text: truncateMiddle(part.text, LONGEST_TEXT, CUT) };
  return { ...message, parts: message.parts.map(short) };
}

function bytesOfJson(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function isList<Entry>(value: unknown, fits: (entry: unknown) => entry is Entry): value is Entry[] {
  return Array.isArray(value) && value.every(fits);
}

function isBlocks(value: unknown): value is ContentBlock[] {
  return isList(value, (block): block is ContentBlock => isJsonObject(block) && typeof block["type"] === "string");
}

function isPart(value: unknown): value is AssistantPart {
  if (!isJsonObject(value)) return false;
  if (value["type"] !== "call") {
    return (value["type"] === "text" || value["type"] === "thought") && typeof value["text"] === "string";
  }
  return typeof value["id"] === "string" && typeof value["name"] === "string" && isJsonObject(value["input"]);
}

function isResult(value: unknown): value is CallResult {
  return (
    isJsonObject(value) &&
    typeof value["id"] === "string" &&
    typeof value["name"] === "string" &&
    typeof value["isError"] === "boolean" &&
    isBlocks(value["content"])
  );
}
