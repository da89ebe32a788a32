/**
 * An event stream by GET that is opened again after every cut, from the last event that was seen: the stream for a
 * server's own messages, and the rest of an answer whose stream was cut.
 */
import type { Clock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { HttpAnswer } from "./http-client.ts";
import { readErrorText, readEvents } from "./read-body.ts";
import { connectionError, notMcp, statusError } from "./reasons.ts";
import type { SseEvent } from "./sse-parser.ts";

export interface ResumableStreamOptions {
  readonly clock: Clock;
  readonly maxEventBytes: number;
  readonly connect: (lastEventId: string | undefined, signal: AbortSignal) => Promise<HttpAnswer>;
  readonly onEvent: (event: SseEvent) => void;
  readonly onOversize: (error: ToolcribError) => void;
  /** The stream is over for good: refused by the server, or out of attempts. `wasOpen` if it had been open before. */
  readonly onRefused: (error: ToolcribError, wasOpen: boolean) => void;
  /** Once per outage. */
  readonly onOutage?: (error: ToolcribError) => void;
  /** Failed attempts in a row; without it, there is no end to them. */
  readonly maxAttempts?: number;
  readonly lastEventId?: string | undefined;
  readonly retryMs?: number | undefined;
}

const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
/** A server may ask for a longer wait than ours, but not for ever. */
const MAX_RETRY_MS = 300_000;
/** A stream that lasted this long was a good one, even if nothing came. */
const HEALTHY_MS = 5000;

/** The server may do better later: it restarts, is busy, or still holds the stream that was cut. */
const PASSING = new Set([408, 409, 425, 429]);

export class ResumableStream {
  readonly #options: ResumableStreamOptions;
  readonly #abort = new AbortController();
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #failures = 0;
  #wasOpen = false;
  #isOut = false;
  #cancelTimer: () => void = () => {};

  constructor(options: ResumableStreamOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId;
    this.#retryMs = options.retryMs;
  }

  start(): void {
    void this.#connect();
  }

  /** As after a cut: when the server's or our own delay is over. */
  startLater(): void {
    this.#cancelTimer = this.#options.clock.after(this.#delay(), () => void this.#connect());
  }

  stop(): void {
    this.#cancelTimer();
    this.#abort.abort();
  }

  get #stopped(): boolean {
    return this.#abort.signal.aborted;
  }

  async #connect(): Promise<void> {
    let answer: HttpAnswer;
    try {
      answer = await this.#options.connect(this.#lastEventId, this.#abort.signal);
    } catch (error) {
      this.#failed(asToolcribError(error));
      return;
    }
    const { status, headers, body, url } = answer;
    if (status < 200 || status >= 300) {
      const error = statusError({ status, headers, url, body: await readErrorText(body, url) });
      if (status >= 500 || PASSING.has(status)) this.#failed(error);
      else this.#refuse(error);
      return;
    }
    if (headers["content-type"]?.startsWith("text/event-stream") !== true) {
      body.destroy();
      this.#refuse(notMcp(headers["content-type"], url));
      return;
    }
    this.#read(answer);
  }

  #read({ body, url }: HttpAnswer): void {
    const openedAt = this.#options.clock.now();
    this.#wasOpen = true;
    this.#isOut = false;
    let useful = false;
    readEvents(body, {
      maxEventBytes: this.#options.maxEventBytes,
      onEvent: (event) => {
        useful = true;
        if (!this.#stopped) this.#options.onEvent(event);
      },
      onOversize: (error) => this.#options.onOversize(error),
      onEnd: (parser, cause) => {
        this.#lastEventId = parser.lastEventId ?? this.#lastEventId;
        this.#retryMs = parser.retryMs ?? this.#retryMs;
        if (useful || this.#options.clock.now() - openedAt >= HEALTHY_MS) this.#failures = 0;
        const error = cause ?? Object.assign(new Error("ended"), { code: "ECONNRESET" });
        this.#failed(connectionError(error, url, true), cause !== undefined);
      },
    });
  }

  /** An end that the server chose is no outage, but the stream is opened again all the same. */
  #failed(error: ToolcribError, isOutage = true): void {
    if (this.#stopped) return;
    const delay = this.#delay();
    this.#failures++;
    if (this.#options.maxAttempts !== undefined && this.#failures > this.#options.maxAttempts) {
      this.#refuse(error);
      return;
    }
    if (isOutage && !this.#isOut) {
      this.#isOut = true;
      this.#options.onOutage?.(error);
    }
    this.#cancelTimer = this.#options.clock.after(delay, () => void this.#connect());
  }

  #refuse(error: ToolcribError): void {
    if (this.#stopped) return;
    this.stop();
    this.#options.onRefused(error, this.#wasOpen);
  }

  #delay(): number {
    const asked = Math.min(this.#retryMs ?? 0, MAX_RETRY_MS);
    const base = this.#retryMs ?? FIRST_DELAY_MS;
    return Math.max(asked, Math.min(base * 2 ** this.#failures, MAX_DELAY_MS));
  }
}
