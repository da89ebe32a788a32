/** The model as the loop sees it, and a conversation in a form that does not depend on any provider. */
import type { JsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Provider } from "../../schemas/normalize.ts";

/** A message of the user, in blocks of MCP (`text`, `image`, `resource`, `resource_link`). */
export interface UserMessage {
  readonly role: "user";
  readonly content: readonly ContentBlock[];
  /** The text that the user typed, if it was a command such as `/name …` that the content replaces. Not for the model. */
  readonly said?: string;
}

export type AssistantPart =
  | { readonly type: "text"; readonly text: string }
  /** `meta`: metadata that the provider wants back with it, such as a signature. */
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

/** The result of one call, as the model reads it. */
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

/** A tool as the model sees it. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** Already as the provider takes it. */
  readonly inputSchema: JsonObject;
}

export interface ModelStep {
  readonly system: string;
  readonly messages: readonly AgentMessage[];
  readonly tools: readonly ModelTool[];
  readonly signal: AbortSignal;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
}

export type StepPart =
  /** A piece of text, in order. */
  | { readonly type: "text"; readonly text: string }
  /** A piece of a thought. One with `meta` ends it (its text may be empty); the pieces before belong to the same thought. */
  | { readonly type: "thought"; readonly text: string; readonly meta?: JsonObject }
  /** A whole call. `input` is missing where the arguments were no JSON object; `problem` then says why, for the model. */
  | {
      readonly type: "call";
      readonly id: string;
      readonly name: string;
      readonly input?: JsonObject;
      readonly problem?: string;
      readonly meta?: JsonObject;
    }
  /**
   * Everything of this step so far is discarded: the answer was interrupted, or refused for now, and is requested again.
   * `attempt` is 1 for the first time. It comes before the wait. No call counts before `finish` for that reason.
   */
  | { readonly type: "again"; readonly attempt: number; readonly delayMs: number; readonly reason: string }
  | { readonly type: "usage"; readonly input: number; readonly output: number; readonly cached?: number }
  /** The last part. `calls`: the model waits for results. */
  | { readonly type: "finish"; readonly reason: "stop" | "calls" | "length" | "refusal" | "other" };

export interface ChatModel {
  /** `<provider>/<model>`, for people and for `agent.model`. */
  readonly id: string;
  /** Whose rules tool schemas must follow. */
  readonly provider: Exclude<Provider, "raw">;
  /** Whether it can look at images. */
  readonly images: boolean;
  /**
   * One answer of the model. Throws ToolcribError: `unauthorized` for a key that is not accepted, `rate_limited` and
   * `server_unavailable` after the retries, `cancelled` with the signal, `too_large` for a context that does not fit.
   */
  step(step: ModelStep): AsyncIterable<StepPart>;
}
