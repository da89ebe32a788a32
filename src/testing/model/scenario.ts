/** The scenario of a scripted model: one turn per request. */
import { createHash } from "node:crypto";
import type { JsonObject } from "../../model/json.ts";
import type { ModelRequest } from "./model-request.ts";

export interface ScriptedCall {
  readonly name: string;
  readonly arguments?: JsonObject;
  /** Instead of `arguments`: sent unchanged, so that it can be broken JSON. */
  readonly rawArguments?: string;
  /** Generated if absent. */
  readonly id?: string;
}

/** `input` counts what was `cached` too. */
export interface ScriptedUsage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
}

interface Expectation {
  /** Checks the request first. An error or a returned string becomes a response with status 400 and is added to `problems`. */
  readonly expect?: (request: ModelRequest) => void | string;
}

/**
 * An answer. Pieces, as the numbers below count them, are the thought, each text of a list, the refusal, and the two halves
 * of each call's arguments.
 */
export interface AnswerTurn extends Expectation {
  readonly thought?: string;
  /** A list is sent piece by piece. */
  readonly text?: string | readonly string[];
  readonly refusal?: string;
  readonly calls?: readonly ScriptedCall[];
  /** `length`: the model's limit was reached. Follows from the rest if absent. */
  readonly finish?: "stop" | "length";
  /** About a token per four characters if absent. */
  readonly usage?: ScriptedUsage;
  /** Before each piece, in milliseconds. */
  readonly delayMs?: number;
  /** Breaks the connection after this many pieces; `request`: before any response. */
  readonly dropAfter?: number | "request";
  /** Sends nothing after this many pieces and waits until the client disconnects. */
  readonly stallAfter?: number;
  /** Reports an error of the provider inside the stream, after this many pieces. */
  readonly failAfter?: number;
  readonly status?: undefined;
}

/** An error instead of an answer. */
export interface ErrorTurn extends Expectation {
  readonly status: number;
  /** In seconds; sent as `retry-after`. */
  readonly retryAfter?: number;
  /** The provider's usual message if absent. */
  readonly message?: string;
  readonly code?: "context_length_exceeded";
}

export type Turn = AnswerTurn | ErrorTurn;

/** A list of turns in order, or what decides for each request. `index` counts the conversation's requests from 0. */
export type Scenario = readonly Turn[] | ((request: ModelRequest, index: number) => Turn | Promise<Turn>);

/** Several texts are sent piece by piece. */
export function text(...pieces: string[]): AnswerTurn {
  return { text: pieces };
}

export function call(name: string, args: JsonObject = {}): AnswerTurn {
  return { calls: [{ name, arguments: args }] };
}

/** Several calls in one answer. */
export function calls(...list: ScriptedCall[]): AnswerTurn {
  return { calls: list };
}

export function rateLimited(retryAfter?: number): ErrorTurn {
  return { status: 429, retryAfter };
}

/** The provider has no capacity. Anthropic has its own status for it. */
export function overloaded(): ErrorTurn {
  return { status: 529 };
}

export function contextTooLong(): ErrorTurn {
  return { status: 400, code: "context_length_exceeded" };
}

export interface ScenarioOptions {
  /** Requests with the same key share one position in the scenario; all of them if absent. */
  readonly by?: (request: ModelRequest) => string;
  /** Plays the last turn again and again; else further requests are errors. */
  readonly repeatLast?: boolean;
}

/** The position of each conversation in the scenario. */
export class ScenarioPlayer {
  readonly #scenario: Scenario;
  readonly #options: ScenarioOptions;
  readonly #positions = new Map<string, number>();

  constructor(scenario: Scenario, options: ScenarioOptions) {
    this.#scenario = scenario;
    this.#options = options;
  }

  /** Undefined when the scenario is over. */
  async next(request: ModelRequest): Promise<Turn | undefined> {
    const key = this.#options.by?.(request) ?? "";
    const index = this.#positions.get(key) ?? 0;
    this.#positions.set(key, index + 1);
    if (typeof this.#scenario === "function") return this.#scenario(request, index);
    return this.#scenario[index] ?? (this.#options.repeatLast === true ? this.#scenario.at(-1) : undefined);
  }
}

interface ScriptedAnswerCall {
  readonly id: string;
  readonly name: string;
  /** The arguments as text, whole and in the two pieces that are sent. */
  readonly json: string;
  readonly halves: readonly string[];
}

/** An answer of the scripted model, with everything filled in that a turn may leave open. */
export interface ScriptedAnswer {
  /** Counts all answers of the server. */
  readonly number: number;
  readonly model: string;
  readonly thought: string;
  readonly texts: readonly string[];
  readonly refusal: string;
  readonly calls: readonly ScriptedAnswerCall[];
  readonly finish: "stop" | "calls" | "length" | "refusal";
  readonly usage: Required<ScriptedUsage>;
  /** Whether a stream ends with the usage although the protocol leaves it out by default. */
  readonly includeUsage: boolean;
}

const CHARACTERS_PER_TOKEN = 4;

export function completeAnswer(
  turn: AnswerTurn,
  request: ModelRequest,
  number: number,
  callPrefix: string,
): ScriptedAnswer {
  const texts = typeof turn.text === "string" ? [turn.text] : (turn.text ?? []);
  const calls = (turn.calls ?? []).map((call, index): ScriptedAnswerCall => {
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

/** The signature that proves a thought when it comes back. */
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
