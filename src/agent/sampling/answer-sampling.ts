/** Servers that want an answer of a model get one from the agent's, if the operator allows it. */
import { type Clock, systemClock } from "../../model/clock.ts";
import type { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { SamplingCallback } from "../../model/session.ts";
import { refusal } from "../../upstream/rpc-error.ts";
import type { AgentOptions, SamplingQuestion } from "../agent-options.ts";
import { untilAborted } from "../loop/until-aborted.ts";
import type { ChatModel, StepPart } from "../model/chat-model.ts";
import { SamplingBudget } from "./sampling-budget.ts";
import { samplingTokens } from "./sampling-size.ts";
import { samplingStep } from "./sampling-step.ts";

export interface AnswerSamplingOptions {
  /** Only asked for once a request is allowed. */
  readonly model: () => Promise<ChatModel>;
  readonly mode: "deny" | "ask" | "allow";
  /** Of one answer; a server may ask for less. */
  readonly maxTokens: number;
  readonly ask?: AgentOptions["onSampling"];
  readonly clock?: Clock;
}

/** One for each session: what all its servers use counts together. */
export function answerSampling(options: AnswerSamplingOptions): SamplingCallback {
  const budget = new SamplingBudget(options.clock ?? systemClock, options.maxTokens);
  return async (params, { server, signal }) => {
    if (options.mode === "deny")
      throw denied("The operator does not let servers use the model.", 'Set agent.sampling to "ask" or "allow".');
    // Nobody is asked about what cannot be answered anyway.
    const step = samplingStep(params, { maxTokens: options.maxTokens, signal });
    const tokens = samplingTokens(step);
    if (options.mode === "allow") budget.take(tokens);
    if (options.mode === "ask") await askFor(options.ask, { server, params }, signal);
    const model = await options.model();
    let text = "";
    let reason: Extract<StepPart, { type: "finish" }>["reason"] = "other";
    for await (const part of model.step(step)) {
      if (part.type === "text") text += part.text;
      if (part.type === "again") text = "";
      if (part.type === "finish") reason = part.reason;
    }
    if (reason === "refusal" && text === "") throw denied("The model refused to answer.");
    return answer(text, model.id, reason === "length" ? "maxTokens" : "endTurn");
  };
}

function answer(text: string, model: string, stopReason: string): JsonObject {
  return { role: "assistant", content: { type: "text", text }, model, stopReason };
}

async function askFor(ask: AgentOptions["onSampling"], question: SamplingQuestion, signal: AbortSignal): Promise<void> {
  if (ask === undefined) {
    throw denied(
      "There is nobody to ask whether this server may use the model.",
      'Use a client that can be asked, or set agent.sampling to "allow".',
    );
  }
  const allowed = await untilAborted(ask(question, signal), signal);
  if (!allowed) throw denied("The user did not let this server use the model.");
}

/** MCP's own code for a sampling request that is turned down. */
const TURNED_DOWN = -1;

function denied(message: string, hint?: string): ToolcribError {
  return refusal(TURNED_DOWN, message, hint);
}
