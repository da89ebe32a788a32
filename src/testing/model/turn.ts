/** What a scripted model answers, one turn per request. */
import type { JsonObject } from "../../model/json.ts";
import type { ModelRequest } from "./model-request.ts";

export interface ScriptedCall {
  readonly name: string;
  readonly arguments?: JsonObject;
  /** Instead of `arguments`: sent as it stands, so that it may be broken JSON. */
  readonly rawArguments?: string;
  /** One of the server's own making if absent. */
  readonly id?: string;
}

/** `input` counts what was `cached` too. */
export interface ScriptedUsage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
}

interface Expectation {
  /** Looks at the request first; what it throws or returns is answered as an error 400 and stands in `problems`. */
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
  /** Breaks the connection after so many pieces; `request`: before any answer at all. */
  readonly dropAfter?: number | "request";
  /** Sends no more after so many pieces and waits until the client goes away. */
  readonly stallAfter?: number;
  /** Reports an error of the provider in the middle of the stream, after so many pieces. */
  readonly failAfter?: number;
  readonly status?: undefined;
}

/** An error instead of an answer. */
export interface ErrorTurn extends Expectation {
  readonly status: number;
  /** In seconds; sent as `retry-after`. */
  readonly retryAfter?: number;
  /** What the provider says in such a case if absent. */
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

/** The provider has no capacity. Anthropic has a status of its own for it. */
export function overloaded(): ErrorTurn {
  return { status: 529 };
}

export function contextTooLong(): ErrorTurn {
  return { status: 400, code: "context_length_exceeded" };
}
