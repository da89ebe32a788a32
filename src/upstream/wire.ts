/** Wire: one open channel to an MCP server that carries JSON-RPC messages, on any transport. */
import type { CancelSignal } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import type { Listeners } from "../base/emitter.ts";
import { keepSource, LARGE_JSON } from "../base/json-bytes.ts";
import { type ErrorCode, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import { type Era, INTERNAL_ERROR, type RequestId, type RpcMessage } from "../model/protocol.ts";
import type { TransportKind } from "../model/server-state.ts";

export interface WireEvents {
  /** `related` is the id of our request on whose response stream the message came, where the transport knows it. */
  message: { readonly message: RpcMessage; readonly related?: RequestId };
  /**
   * A request of ours, already handed over, that will get no answer although the channel lives: its response stream
   * ended early, was unreadable or too large. Not sent after that request's signal aborted or after `close()`.
   */
  failed: { readonly id: RequestId; readonly error: ToolcribError };
  /** Once, when the channel is gone without `close()` having been called. The reason is for a person. */
  lost: ToolcribError;
  /** Something odd that the channel survived: junk on stdout, an oversized line, a bad event. */
  warning: string;
  /** Whether a package runner is fetching the program: that is not part of the time that connecting may take. */
  installing: boolean;
  /** The reason why the start takes longer, for a person; null when that is over. */
  progress: string | null;
}

export interface Wire {
  readonly transport: TransportKind;
  listen(listeners: Listeners<WireEvents>): () => void;
  /**
   * For work that takes long and is needed once, such as making an image; called before `open()` and not part of the time that
   * connecting may take. It has a bound of its own.
   */
  makeReady?(signal: AbortSignal): Promise<void>;
  /** Opens the channel. Rejects with a ToolcribError that says what a person can do. */
  open(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the message has been handed over. Rejects with ToolcribError; `details.sent: false` says that the
   * server cannot have acted on it, `details.sessionLost: true` that an HTTP session is gone (404), `details.status` is an
   * HTTP status, `details.rpc` a JSON-RPC error body of an HTTP error answer.
   */
  send(message: RpcMessage, options?: SendOptions): Promise<void>;
  /** Called once the handshake is over; HTTP needs it for its headers and opens the GET stream of a legacy session. */
  agreed(protocol: AgreedProtocol): void;
  /** Ends the channel gracefully and for good; a child and its whole process group are gone afterwards. Never rejects. */
  close(): Promise<void>;
}

export interface SendOptions {
  /** Aborting it on a request closes that request's response stream: how modern HTTP cancels. */
  readonly signal?: CancelSignal | undefined;
  /** Extra HTTP headers, such as `Mcp-Param-*`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface AgreedProtocol {
  readonly era: Era;
  readonly version: string;
}

/** A failure before anything reached the server, so that the call may be tried again. */
export function notSent(code: ErrorCode, message: string, hint?: string, details?: object): ToolcribError {
  return new ToolcribError(code, message, { hint, details: { ...details, sent: false } });
}

/**
 * The messages in one line, body or event; null if it holds anything else. An array is a batch, which 2025-03-26 had.
 * Only what routing needs is checked, so that sloppy servers work and unknown fields stay.
 */
export function decodeMessages(text: string): RpcMessage[] | null {
  let value: unknown;
  try {
    // What .NET writes first on a console that is set to UTF-8.
    value = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) {
    const message = withErrorObject(value);
    if (!isMessage(message)) return null;
    if (text.length > LARGE_JSON && "result" in message && isJsonObject(message.result))
      keepResultSource(message.result, text);
    return [message];
  }
  const messages = value.map(withErrorObject);
  return messages.length > 0 && messages.every(isMessage) ? messages : null;
}

/** Servers without a library write `"error": null` beside a result, and text or `false` where an error object belongs. */
function withErrorObject(value: unknown): unknown {
  if (!isJsonObject(value) || !("error" in value) || isJsonObject(value["error"]) || "method" in value) return value;
  const { error, ...rest } = value;
  if (error === null || error === false) return rest;
  // Without the version it may be the body of an HTTP error, which does not answer a request of ours.
  if (value["jsonrpc"] !== "2.0") return value;
  return { ...rest, error: { code: INTERNAL_ERROR, message: typeof error === "string" ? error : "" } };
}

/** As libraries write an answer; the JSON of any other is made again. */
const BEFORE_RESULT = /^\{(?:"jsonrpc":"2\.0",|"id":"?\d{1,16}"?,){0,2}"result":/;
const AFTER_RESULT = /(?:,"jsonrpc":"2\.0"|,"id":"?\d{1,16}"?){0,2}\}$/;
const MAX_AFTER = 64;

/** Between the two there may be more than the result: whoever uses it checks its length. */
function keepResultSource(result: object, text: string): void {
  const before = BEFORE_RESULT.exec(text.slice(0, MAX_AFTER))?.[0];
  const after = AFTER_RESULT.exec(text.slice(-MAX_AFTER))?.[0];
  const isKnown = before !== undefined && after !== undefined;
  keepSource(result, isKnown ? text.slice(before.length, -after.length) : undefined);
}

function isMessage(value: unknown): value is RpcMessage {
  if (!isJsonObject(value)) return false;
  if (typeof value["method"] === "string") return true;
  if (!("id" in value)) return false;
  // Some servers leave an empty result out.
  return "result" in value || ("error" in value ? isJsonObject(value["error"]) : value["jsonrpc"] === "2.0");
}

export function isRequest(message: RpcMessage): message is Extract<RpcMessage, { id: RequestId; method: string }> {
  return "method" in message && "id" in message;
}

export function isResponse(message: RpcMessage): message is Extract<RpcMessage, { id: RequestId | null }> {
  return !("method" in message);
}

const MAX_PER_WINDOW = 5;
const WINDOW_MS = 60_000;
const MAX_SAMPLE_LENGTH = 120;

/** Warnings about unusable output, few enough to read: a server may write a million lines of it. */
export class ThrottledWarnings {
  readonly #clock: Clock;
  readonly #warn: (text: string) => void;
  #windowStart = Number.NEGATIVE_INFINITY;
  #shown = 0;
  #left = 0;

  constructor(clock: Clock, warn: (text: string) => void) {
    this.#clock = clock;
    this.#warn = warn;
  }

  /** At most five a minute; the next one after a pause says how many were left out. */
  add(what: string, sample?: string): void {
    const now = this.#clock.now();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#shown = 0;
    }
    if (this.#shown === MAX_PER_WINDOW) {
      this.#left++;
      return;
    }
    this.#shown++;
    const left = this.#left === 0 ? "" : ` (and ${this.#left} before it that were not shown)`;
    this.#left = 0;
    this.#warn(`${what}${left}${sample === undefined ? "" : `: ${shorten(sample)}`}`);
  }
}

function shorten(sample: string): string {
  const text = JSON.stringify(sample.slice(0, MAX_SAMPLE_LENGTH));
  return sample.length > MAX_SAMPLE_LENGTH ? `${text}…` : text;
}
