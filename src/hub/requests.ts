/** What callers ask of a hub. */
import type { AskCallback } from "../model/ask.ts";
import type { ToolCapability } from "../model/capability.ts";
import type { JsonObject } from "../model/json.ts";
import type { Use } from "../model/source.ts";
import type { Provider } from "../schemas/normalize.ts";
import type { Session } from "../sessions/session.ts";
import type { CallOptions } from "./call-path.ts";

export interface CallRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: JsonObject;
}

export interface ReadRequest extends CallOptions {
  readonly uri: string;
}

export interface PromptRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

type Completion = Extract<Use, { kind: "completion" }>;

export interface CompleteRequest extends CallOptions {
  readonly ref: Completion["ref"];
  readonly argument: Completion["argument"];
  readonly context?: JsonObject;
}

/** Which tools of those that a session sees are offered. */
export interface OfferOptions {
  /** What the agent is about to do, such as its prompt: above `max` the tools that fit it best are offered. */
  readonly query?: string | undefined;
  /** How many at most, search tools included; the config's `tools.max` if absent. */
  readonly max?: number | undefined;
  /** Those that come before others where there are too many. */
  readonly first?: ((tool: ToolCapability) => boolean) | undefined;
  /** Those that are not offered, and can still be called by name. */
  readonly without?: ((tool: ToolCapability) => boolean) | undefined;
}

export interface ToolsOptions extends OfferOptions {
  /** The model provider whose schema rules apply; `raw` (the default) leaves schemas and content untouched. */
  readonly for?: Provider;
  /** Whose view it is and who calls; the hub's own session if absent. */
  readonly session?: Session;
  /** A longer text is cut in its middle and kept whole for the session; the config's `limits.inlineBytes` if absent. */
  readonly inlineBytes?: number | undefined;
  /** Who answers if a call needs a yes, by the id given to `execute`; the session's own callback if absent or undefined. */
  readonly onAsk?: ((toolCallId: string) => AskCallback | undefined) | undefined;
}
