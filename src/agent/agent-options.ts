/** The options of an agent, what can be done with it, and the events of a run. */
import type { Clock } from "../base/clock.ts";
import type { Hub } from "../hub/hub.ts";
import type { ModelSetting } from "../model/config.ts";
import type { AskAnswer, AskRequest } from "../model/decision.ts";
import type { ErrorObject } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { ContentBlock, Progress } from "../model/protocol.ts";
import type { Session, SessionOptions } from "../sessions/session.ts";
import type { Conversation } from "./conversation.ts";
import type { ChatModel } from "./model/chat-model.ts";

/** `ask`: asks before anything that is not read-only. `auto`: asks only where rules say so. `read-only`: nothing else runs. */
export type AgentMode = "ask" | "auto" | "read-only";

export interface AgentOptions {
  readonly hub: Hub;
  /** As in the config's `agent.model`, which holds if absent; or a model of your own. */
  readonly model?: ModelSetting | ChatModel | undefined;
  /**
   * Whose tools it uses, and of one agent at a time: another one is refused with `conflict` until the first is closed. Not
   * closed with the agent. One of its own, opened with `sessionOptions`, if absent.
   */
  readonly session?: Session | undefined;
  readonly sessionOptions?: SessionOptions | undefined;
  /** `auto` if absent. */
  readonly mode?: AgentMode | undefined;
  /** Stands before everything else in the system prompt; the config's `agent.instructions` if absent. */
  readonly instructions?: string | undefined;
  /** Patterns of tools, as in rules; the config's if absent. */
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  readonly maxTools?: number | undefined;
  readonly maxSteps?: number | undefined;
  /** Input and output of one run together. */
  readonly maxTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly sampling?: "deny" | "ask" | "allow" | undefined;
  /** Goes on with this one; a new one if absent. */
  readonly conversation?: Conversation | undefined;
  /** Answers for calls that need a yes; the session's own callback if absent. */
  readonly onAsk?: ((request: AskRequest, context: AskContext) => Promise<AskAnswer> | AskAnswer) | undefined;
  /** With `sampling: "ask"`: may this server use the model? No if absent. */
  readonly onSampling?: ((request: SamplingQuestion, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** Where keys of models are looked up; the environment of the process if absent. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly clock?: Clock | undefined;
}

export interface AskContext {
  /** The model's id of the call that waits. */
  readonly toolCallId: string;
  readonly signal: AbortSignal;
}

export interface SamplingQuestion {
  readonly server: string;
  /** MCP's `sampling/createMessage`. */
  readonly params: JsonObject;
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A skill that a user can call by name, as `/name arguments`. */
export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  /** What to write after it, if the skill says so. */
  readonly hint?: string;
}

export interface Agent extends AsyncDisposable {
  readonly session: Session;
  readonly conversation: Conversation;
  readonly mode: AgentMode;
  /** Rejects with `unauthorized`, and says what to set, if the model's key is missing. */
  model(): Promise<ChatModel>;
  setModel(model: ModelSetting | ChatModel): void;
  setMode(mode: AgentMode): void;
  commands(): readonly SlashCommand[];
  /**
   * One turn: until the model is done, the budget is spent or the signal aborts. Never throws; the last event is `end`.
   * `/name …` of a user-invocable skill runs the skill. Only one run at a time: another one ends at once with `conflict`.
   * Breaking out of the loop cancels the run.
   */
  run(prompt: string | readonly ContentBlock[], options?: RunOptions): AsyncIterable<AgentEvent>;
  /** Ends the run under way, and the session if it is the agent's own; another one is left as it was. */
  close(): Promise<void>;
}

/**
 * `pending`: the model asked for it. `waiting`: a person is asked. `running`. Then exactly one of `done`, `failed` (also for
 * an error result of the tool), `denied`, `cancelled`.
 */
export type ToolCallState = "pending" | "waiting" | "running" | "done" | "failed" | "denied" | "cancelled";

/** The kinds of ACP: what an editor chooses an icon by. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";

export interface ToolCallEvent {
  readonly type: "tool-call";
  /** The model's id of the call; the same in all events of one call. */
  readonly id: string;
  /** Public name. */
  readonly name: string;
  /** For people: what the tool is called and what it is used on. */
  readonly title: string;
  readonly kind: ToolKind;
  /** Id of the server, or the client's name of one that the session brought; null for tools of the hub and of the session itself. */
  readonly server: string | null;
  readonly state: ToolCallState;
  readonly input: JsonObject;
  /** Files that it works on, as far as its arguments say. */
  readonly locations: readonly { readonly path: string; readonly line?: number }[];
  readonly progress?: Progress;
  /** What the model reads; there once it has ended. */
  readonly content?: readonly ContentBlock[];
  /** What the tool gave for programs; there once it has ended, if it gave anything. */
  readonly details?: unknown;
  readonly error?: ErrorObject;
}

export interface PlanEntry {
  readonly content: string;
  readonly priority: "high" | "medium" | "low";
  readonly status: "pending" | "in_progress" | "completed";
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  /** The model told nothing, at least once: counted by characters. */
  readonly estimated?: true;
}

/** `cancelled`: by the signal. `steps`, `tokens`: the budget. `length`: the model's own limit. */
export type EndReason = "done" | "cancelled" | "steps" | "tokens" | "length" | "refusal" | "error";

export type AgentEvent =
  /** A piece of the answer. */
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thought"; readonly text: string }
  | ToolCallEvent
  /** The whole plan; it replaces the one before. */
  | { readonly type: "plan"; readonly entries: readonly PlanEntry[] }
  /** `step`: of the last answer of the model. `total`: of the run. */
  | { readonly type: "usage"; readonly step: Tokens; readonly total: Tokens }
  | { readonly type: "notice"; readonly level: "info" | "warning"; readonly message: string; readonly server?: string }
  /** Always the last one. `text`: the answer after the last tool call. */
  | {
      readonly type: "end";
      readonly reason: EndReason;
      readonly text: string;
      readonly usage: Tokens;
      readonly error?: ErrorObject;
    };
