/** A legacy client's session over Streamable HTTP: who may use it, and its streams. */
import { type Caller, identityOf } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Encoded } from "../encoded.ts";
import type { ViewScope } from "../origin.ts";
import type { OpenSession } from "./session-table.ts";
import { EventLog } from "./event-log.ts";
import type { SseConnection } from "./sse-connection.ts";
import { SessionStream } from "./session-stream.ts";
import type { EngineSession } from "./transport.ts";

export interface HttpSessionOptions {
  readonly id: string;
  /** No one else finds the session. */
  readonly caller: Caller;
  readonly scope: ViewScope;
  readonly clock: Clock;
  readonly graceMs: number;
  /** Opens the engine's session; the stream takes what belongs to no request. */
  readonly open: (stream: SessionStream) => EngineSession;
}

/** How long a delivered event can be asked for again. */
const RESUMABLE_MS = 5 * 60_000;
/** From so many streams on, those that nobody can resume are forgotten at once, not at the next sweep. */
const MANY_STREAMS = 64;
/** Since this version an event without data is part of the protocol. */
const PRIMING_SINCE = "2025-11-25";

const EVENT_ID = /^(\d{1,15})-(\d{1,15})$/;

export class HttpSession implements OpenSession {
  readonly id: string;
  readonly caller: Caller;
  readonly key: string;
  readonly scope: ViewScope;
  readonly legacy: EngineSession;
  usedAt: number;
  /** Requests that are not answered yet. */
  running = 0;
  readonly #options: HttpSessionOptions;
  readonly #log = new EventLog();
  /** The stream by GET has the number 0; the streams of POSTs count from 1. */
  readonly #own: SessionStream;
  readonly #streams = new Map<number, SessionStream>();
  #lastStream = 0;
  #closed = false;

  constructor(options: HttpSessionOptions) {
    this.id = options.id;
    this.caller = options.caller;
    this.key = identityOf(options.caller);
    this.scope = options.scope;
    this.usedAt = options.clock.now();
    this.#options = options;
    this.#own = this.#stream(0);
    this.legacy = options.open(this.#own);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get isBusy(): boolean {
    return this.running > 0 || this.#own.isConnected;
  }

  get isOver(): boolean {
    return this.legacy.isOver === true;
  }

  /** Whether the client knows events without data, which it can resume from. */
  get canPrime(): boolean {
    return (this.legacy.version ?? "") >= PRIMING_SINCE;
  }

  /** A message of a request whose client cannot take it with the answer. */
  tell(message: Encoded): void {
    this.#own.send(message);
  }

  /** One request less is under way. */
  release(): void {
    this.running -= 1;
    this.usedAt = this.#options.clock.now();
  }

  /** For a request whose answer becomes a stream. */
  openStream(onAbandoned: () => void): SessionStream {
    if (this.#streams.size >= MANY_STREAMS) this.#forgetStreams();
    const number = ++this.#lastStream;
    const stream = this.#stream(number, onAbandoned);
    this.#streams.set(number, stream);
    return stream;
  }

  /** Opens the session's own stream, or takes up one that was cut. False if that stream is not known any more. */
  listen(lastEventId: string | undefined, connect: () => SseConnection): boolean {
    if (lastEventId === undefined) {
      this.#own.attach(connect());
      return true;
    }
    const [, number, seq] = EVENT_ID.exec(lastEventId) ?? [];
    if (number === undefined || seq === undefined) return false;
    const stream = Number(number) === 0 ? this.#own : this.#streams.get(Number(number));
    if (stream === undefined) return false;
    stream.attach(connect(), Number(seq));
    return true;
  }

  sweep(now: number): void {
    this.#log.expire(now - RESUMABLE_MS);
    this.#forgetStreams();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.legacy.close();
    for (const stream of this.#streams.values()) stream.finish();
    this.#own.finish();
  }

  #stream(number: number, onAbandoned?: () => void): SessionStream {
    const { clock, graceMs } = this.#options;
    return new SessionStream({
      number,
      log: this.#log,
      clock,
      graceMs,
      canPrime: () => this.canPrime,
      onAbandoned,
    });
  }

  #forgetStreams(): void {
    for (const [number, stream] of this.#streams) {
      if (stream.isFinished && !this.#log.holds(number)) this.#streams.delete(number);
    }
  }
}
