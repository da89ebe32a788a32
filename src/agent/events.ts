/** What a run of the agent tells, in order. */
import type { ErrorObject } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { ContentBlock, Progress } from "../model/protocol.ts";

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
