/** An answer of the scripted model with everything that a turn may leave open. */
import { createHash } from "node:crypto";
import type { ModelRequest } from "./model-request.ts";
import type { AnswerTurn, ScriptedUsage } from "./turn.ts";

export interface AnswerCall {
  readonly id: string;
  readonly name: string;
  /** The arguments as text, whole and in the two pieces that are sent. */
  readonly json: string;
  readonly halves: readonly string[];
}

export interface Answer {
  /** Counts all answers of the server. */
  readonly number: number;
  readonly model: string;
  readonly thought: string;
  readonly texts: readonly string[];
  readonly refusal: string;
  readonly calls: readonly AnswerCall[];
  readonly finish: "stop" | "calls" | "length" | "refusal";
  readonly usage: Required<ScriptedUsage>;
  /** Whether a stream ends with the usage although the protocol leaves it out by default. */
  readonly includeUsage: boolean;
}

const CHARACTERS_PER_TOKEN = 4;

export function answerOf(turn: AnswerTurn, request: ModelRequest, number: number, callPrefix: string): Answer {
  const texts = typeof turn.text === "string" ? [turn.text] : (turn.text ?? []);
  const calls = (turn.calls ?? []).map((call, index): AnswerCall => {
    const json = call.rawArguments ?? JSON.stringify(call.arguments ?? {});
    const middle = Math.ceil(json.length / 2);
    const halves = [json.slice(0, middle), json.slice(middle)].filter((half) => half !== "");
    return { id: call.id ?? `${callPrefix}${number}_${index + 1}`, name: call.name, json, halves };
  });
  const finish = turn.refusal !== undefined ? "refusal" : calls.length > 0 ? "calls" : "stop";
  const written = [turn.thought ?? "", ...texts, turn.refusal ?? "", ...calls.map((call) => call.json)].join("");
  const estimate = { input: tokens(JSON.stringify(request.body)), output: tokens(written), cached: 0 };
  return {
    number,
    model: request.model,
    thought: turn.thought ?? "",
    texts,
    refusal: turn.refusal ?? "",
    calls,
    finish: turn.finish ?? finish,
    usage: { ...estimate, ...turn.usage },
    includeUsage: includesUsage(request),
  };
}

/** What a thought is proved by when it comes back. */
export function signature(thought: string): string {
  return createHash("sha256").update(thought).digest("base64");
}

function tokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function includesUsage(request: ModelRequest): boolean {
  const options = request.body["stream_options"];
  return (
    typeof options === "object" && options !== null && "include_usage" in options && options.include_usage === true
  );
}
