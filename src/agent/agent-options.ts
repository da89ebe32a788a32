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
  /** As in the config's `agent.model`, which is the default; or your own model. */
  readonly model?: ModelSetting | ChatModel;
  /**
   * The session whose tools it uses. A session has one agent at a time: a second is refused with `conflict`. It is not
   * closed with the agent. The agent opens its own, with `sessionOptions`, if absent.
   */
  readonly session?: Session;
  readonly sessionOptions?: SessionOptions;
  /** `auto` if absent. */
  readonly mode?: AgentMode;
  /** Text at the start of the system prompt; the config's `agent.instructions` if absent. */
  readonly instructions?: string;
  /** Patterns of tools, as in rules; the config's if absent. */
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly maxTools?: number;
  readonly maxSteps?: number;
  /** Input and output of one run together. */
  readonly maxTokens?: number;
  readonly maxOutputTokens?: number;
  readonly sampling?: "deny" | "ask" | "allow";
  /** Continues this conversation; a new one if absent. */
  readonly conversation?: Conversation;
  /** Answers approval requests; the session's own callback if absent. */
  readonly onAsk?: (request: AskRequest, context: AskContext) => Promise<AskAnswer> | AskAnswer;
  /** With `sampling: "ask"`: whether this server may use the model; it may not if absent. */
  readonly onSampling?: (request: SamplingQuestion, signal: AbortSignal) => Promise<boolean>;
  /** Where keys of models are looked up; the environment of the process if absent. */
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
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
  readonly signal?: AbortSignal;
}

/** A skill that a user can call by name, as `/name arguments`. */
export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  /** The text to write after the name, if the skill describes it. */
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
   * `/name …` of a user-invocable skill runs the skill. Only one run at a time: another one ends immediately with `conflict`.
   * Breaking out of the loop cancels the run.
   */
  run(prompt: string | readonly ContentBlock[], options?: RunOptions): AsyncIterable<AgentEvent>;
  /** Ends the run in progress, and the session if it is the agent's own; another session is restored. */
  close(): Promise<void>;
}

/**
 * `pending`: the model requested it; with `progress`, a limit was reached, and its message says which and how long the call waits. `waiting`: it needs approval. `running`. Then exactly one of `done`, `failed` (also for
 * an error result of the tool), `denied`, `cancelled`.
 */
export type ToolCallState = "pending" | "waiting" | "running" | "done" | "failed" | "denied" | "cancelled";

/** The kinds of ACP, by which an editor chooses an icon. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";

export interface ToolCallEvent {
  readonly type: "tool-call";
  /** The model's id of the call; the same in all events of one call. */
  readonly id: string;
  /** Public name. */
  readonly name: string;
  /** For people: the tool and what it is used on. */
  readonly title: string;
  readonly kind: ToolKind;
  /** Id of the server, or the client's name of one that the session brought; null for tools of the hub and of the session itself. */
  readonly server: string | null;
  readonly state: ToolCallState;
  readonly input: JsonObject;
  /** Files that it works on, as far as its arguments say. */
  readonly locations: readonly { readonly path: string; readonly line?: number }[];
  readonly progress?: Progress;
  /** The content for the model; set once the call has ended. */
  readonly content?: readonly ContentBlock[];
  /** The tool's details for programs, if any; set once the call has ended. */
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
  /** At least one answer had no usage, and its tokens were estimated. */
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
