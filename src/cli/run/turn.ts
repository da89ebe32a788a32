/** One turn: shown as it happens, and turned into an exit code. */
import type { Agent } from "../../agent/agent-options.ts";
import type { AgentEvent, EndReason } from "../../agent/events.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Output } from "../output.ts";
import { withDenialHint } from "./denial-hint.ts";
import type { TurnView } from "./turn-view.ts";

type End = Extract<AgentEvent, { type: "end" }>;

interface Turn {
  readonly view: TurnView;
  readonly out: Output;
  readonly signal: AbortSignal;
}

const STOPPED: Readonly<Record<Exclude<EndReason, "done" | "error">, string>> = {
  cancelled: "The turn was cancelled.",
  steps: "The model wanted more steps than it may take; --max-steps and agent.maxSteps set how many.",
  tokens: "The tokens of the run are used up; --max-tokens and agent.maxTokens set how many.",
  length: "The answer reached the model's own limit and is cut off.",
  refusal: "The model refused to answer.",
};

const DENIED_EXIT = exitCodeOf("denied");

/** Resolves with the exit code. */
export async function runTurn(
  agent: Agent,
  prompt: string | readonly ContentBlock[],
  { view, out, signal }: Turn,
): Promise<number> {
  const ended = new Set<string>();
  let end: End | undefined;
  for await (const event of agent.run(prompt, { signal })) {
    view.show(withDenialHint(event));
    if (event.type === "tool-call") ended.add(event.state);
    if (event.type === "end") end = event;
  }
  if (end === undefined) return exitCodeOf("internal");
  tellWhy(end, out);
  if (end.reason === "error") return exitCodeOf(end.error?.code ?? "internal");
  if (end.reason !== "done") return 1;
  // The model may well have found words for it; what was wanted did not happen.
  return ended.has("denied") && !ended.has("done") ? DENIED_EXIT : 0;
}

function tellWhy({ reason, error }: End, out: Output): void {
  // Programs have it in the last event.
  if (out.json || reason === "done") return;
  if (error !== undefined && reason !== "cancelled") out.error(error);
  else if (reason !== "error") out.labelled("yellow", "stopped:", STOPPED[reason]);
}
