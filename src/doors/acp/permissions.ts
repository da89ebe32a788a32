/** Calls that need a yes, asked of the client's user. */
import {
  type AgentContext,
  methods,
  type PermissionOption,
  type ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { AskAnswer, AskRequest } from "../../model/ask.ts";
import type { ToolCalls } from "./tool-calls.ts";

export interface Asking {
  readonly toolCallId: string;
  readonly calls: ToolCalls;
  readonly signal: AbortSignal;
  /** Whether the session brought it, so that a yes cannot outlive the session. */
  readonly isBrought: boolean;
  /** The user ended the turn in place of an answer. */
  cancelTurn(): void;
}

export class Permissions {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  /** Names that were refused for the rest of the session. */
  readonly #refused = new Set<string>();

  constructor(client: AgentContext, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  /** Whatever is no yes is a no, and so is a client that cannot be asked. */
  async ask(request: AskRequest, { toolCallId, calls, ...asking }: Asking): Promise<AskAnswer> {
    if (this.#refused.has(request.name)) return "no";
    const toolCall = await calls.asked(toolCallId, request, asking.signal);
    const answer = await this.#answer(request, toolCall, asking);
    await calls.answered(toolCallId, answer !== "no");
    return answer;
  }

  async #answer(
    request: AskRequest,
    toolCall: ToolCallUpdate,
    { signal, isBrought, cancelTurn }: Omit<Asking, "toolCallId" | "calls">,
  ): Promise<AskAnswer> {
    const lasting = isBrought || isOfSession(request) ? "session" : "always";
    const { outcome } = await this.#client.request(
      methods.client.session.requestPermission,
      { sessionId: this.#sessionId, toolCall, options: optionsFor(lasting) },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    if (outcome.outcome === "cancelled") {
      cancelTurn();
      return "no";
    }
    switch (outcome.optionId) {
      case "allow_once":
        return "once";
      case "allow_always":
        return lasting;
      case "reject_always":
        this.#refused.add(request.name);
        return "no";
      default:
        return "no";
    }
  }
}

/** A rule of the session, such as its mode's, ends with it; one of the config alone is answered where it stands. */
function isOfSession({ rule, rules }: AskRequest): boolean {
  return rule.list !== "ask" || [rule, ...rules].some(({ level }) => level === "session");
}

function optionsFor(lasting: "session" | "always"): PermissionOption[] {
  const always = lasting === "session" ? "Allow for this session" : "Always allow";
  return [
    { optionId: "allow_once", kind: "allow_once", name: "Allow once" },
    { optionId: "allow_always", kind: "allow_always", name: always },
    { optionId: "reject_once", kind: "reject_once", name: "Reject" },
    { optionId: "reject_always", kind: "reject_always", name: "Reject for this session" },
  ];
}
