/** A request to the model in the same words for every protocol, so that a test can look at it without knowing them. */
import type { JsonObject } from "../../model/json.ts";

export type ProtocolName = "openai-chat" | "openai-responses" | "anthropic" | "gemini";

export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
}

export interface RequestedCall {
  readonly id: string;
  readonly name: string;
  /** An object where the protocol has one or the text is one; else the text itself. */
  readonly arguments: unknown;
}

export interface GivenResult {
  /** Of the call. Gemini names the tool where there is none. */
  readonly id: string;
  readonly text: string;
  readonly images: readonly RequestImage[];
  /** Only Anthropic's protocol says so. */
  readonly isError: boolean;
}

export interface RequestImage {
  readonly mimeType: string;
  /** Base64, or the address. */
  readonly data: string;
}

/** Every field is always there, so that a test can look without narrowing. */
export interface ModelMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly thought: string;
  readonly images: readonly RequestImage[];
  readonly calls: readonly RequestedCall[];
  readonly results: readonly GivenResult[];
}

export interface ModelRequest {
  readonly protocol: ProtocolName;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
  readonly maxTokens: number | undefined;
  /** Lower-case names; without the key. */
  readonly headers: Readonly<Record<string, string>>;
  /** As it came. */
  readonly body: JsonObject;
}

/** The part of a request that a protocol reads from the body. */
export type ReadRequest = Omit<ModelRequest, "protocol" | "headers" | "body">;

const EMPTY = { text: "", thought: "", images: [], calls: [], results: [] };

export function message(role: ModelMessage["role"], parts: Partial<ModelMessage>): ModelMessage {
  return { ...EMPTY, ...parts, role };
}

/** Neighbours of one role as one message, where a protocol has a message per result or an item per part. */
export function mergeMessages(
  messages: readonly ModelMessage[],
  roles: readonly ModelMessage["role"][],
): ModelMessage[] {
  const result: ModelMessage[] = [];
  for (const next of messages) {
    const last = result.at(-1);
    if (last === undefined || last.role !== next.role || !roles.includes(next.role)) {
      result.push(next);
      continue;
    }
    result[result.length - 1] = {
      role: next.role,
      text: last.text + next.text,
      thought: last.thought + next.thought,
      images: [...last.images, ...next.images],
      calls: [...last.calls, ...next.calls],
      results: [...last.results, ...next.results],
    };
  }
  return result;
}

/** The arguments of a call in a history: parsed JSON, or the text itself. */
export function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `data:<type>;base64,<data>` taken apart; another address as it is. */
export function imageAt(url: string): RequestImage {
  const inline = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  return { mimeType: inline?.[1] ?? "", data: inline?.[2] ?? url };
}
