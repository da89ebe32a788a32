/** A conversation in words of its own: independent of any model provider, so that it can be kept and taken up by another. */
import type { JsonObject } from "../model/json.ts";
import type { ContentBlock } from "../model/protocol.ts";

/** What a user says: blocks of MCP (`text`, `image`, `resource`, `resource_link`). */
export interface UserMessage {
  readonly role: "user";
  readonly content: readonly ContentBlock[];
  /** What the user typed, where a command such as `/name …` stands for the content. Not for the model. */
  readonly said?: string;
}

export type AssistantPart =
  | { readonly type: "text"; readonly text: string }
  /** `meta`: what the provider wants back with it, such as a signature. */
  | { readonly type: "thought"; readonly text: string; readonly meta?: JsonObject }
  | CallPart;

/** The model wants a tool. */
export interface CallPart {
  readonly type: "call";
  /** The model's own id of the call. */
  readonly id: string;
  /** Public name. */
  readonly name: string;
  readonly input: JsonObject;
  readonly meta?: JsonObject;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly parts: readonly AssistantPart[];
}

/** What came of one call, as the model reads it. */
export interface CallResult {
  readonly id: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
}

/** The results of all calls of the message before it. */
export interface ToolMessage {
  readonly role: "tool";
  readonly results: readonly CallResult[];
}

export type AgentMessage = UserMessage | AssistantMessage | ToolMessage;
