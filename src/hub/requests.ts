/** What callers ask of a hub. */
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

export interface ToolsOptions {
  /** The model provider whose schema rules apply; `raw` (the default) leaves schemas and content untouched. */
  readonly for?: Provider;
  /** Whose view it is and who calls; the hub's own session if absent. */
  readonly session?: Session;
  /** What the agent is about to do, such as its prompt: above `tools.max` the tools that fit it best are offered. */
  readonly query?: string;
}
