/** A legacy client's session over Streamable HTTP: who may use it, and its streams. */
import type { Clock } from "../../../base/clock.ts";
import { type Caller, identityOf } from "../../../model/caller.ts";
import type { Encoded, MessageSink } from "../rpc-messages.ts";
import type { ViewScope } from "../view-scope.ts";
import { bytesOf, textOf } from "./http-messages.ts";
import type { SseConnection } from "./open-streams.ts";
import type { EngineSession, OpenSession } from "./session-table.ts";

interface StreamableSessionOptions {
  readonly id: string;
  /** No one else finds the session. */
  readonly caller: Caller;
  readonly scope: ViewScope;
  readonly clock: Clock;
  readonly graceMs: number;
  /** Opens the engine's session; the stream takes what belongs to no request. */
  readonly open: (stream: SessionStream) => EngineSession;
}

/** How long a delivered event can be resumed from. */
const MAX_RESUME_MS = 5 * 60_000;
/** Above this many, streams that cannot be resumed are dropped at once, not at the next sweep. */
const MAX_FINISHED_STREAMS = 64;
/** Since this version an event without data is part of the protocol. */
const PRIMING_SINCE = "2025-11-25";

const EVENT_ID = /^(\d{1,15})-(\d{1,15})$/;

export class StreamableSession implements OpenSession {
  readonly id: string;
  readonly caller: Caller;
  readonly key: string;
  readonly scope: ViewScope;
  readonly legacy: EngineSession;
  usedAt: number;
  /** Requests that are not answered yet. */
  running = 0;
  readonly #options: StreamableSessionOptions;
  readonly #log = new EventLog();
  /** The stream by GET has the number 0; the streams of POSTs count from 1. */
  readonly #own: SessionStream;
  readonly #streams = new Map<number, SessionStream>();
  #lastStream = 0;
  #closed = false;

  constructor(options: StreamableSessionOptions) {
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

  /** A message that the client cannot get with the response. */
  tell(message: Encoded): void {
    this.#own.send(message);
  }

  /** One request has ended. */
  release(): void {
    this.running -= 1;
    this.usedAt = this.#options.clock.now();
  }

  /** For a request whose answer becomes a stream. */
  openStream(onAbandoned: () => void): SessionStream {
    if (this.#streams.size >= MAX_FINISHED_STREAMS) this.#forgetStreams();
    const number = ++this.#lastStream;
    const stream = this.#stream(number, onAbandoned);
    this.#streams.set(number, stream);
    return stream;
  }

  /** Opens the session's own stream, or resumes one that was cut. False if that stream is no longer known. */
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
    this.#log.expire(now - MAX_RESUME_MS);
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

interface SessionStreamOptions {
  readonly number: number;
  readonly log: EventLog;
  readonly clock: Clock;
  /** Events without data break clients of versions that did not have them. */
  readonly canPrime: () => boolean;
  /** How long a cut stream waits for its client. */
  readonly graceMs: number;
  /** The client did not resume in time. Without it, the stream waits as long as its session. */
  readonly onAbandoned?: () => void;
}

/** How long a client waits before it reopens a cut stream. */
const RETRY_MS = 1000;
/** A client that was away needs each of these only once. */
const SUPERSEDED = /^\{"jsonrpc":"2\.0","method":"notifications\/(?:[a-z]+\/list_changed|resources\/updated)"/;

/**
 * One logical event stream of a legacy session: the response to one POST, or the GET stream. It survives a cut connection, and a
 * GET with `Last-Event-ID` resumes it.
 */
export class SessionStream implements MessageSink {
  readonly #options: SessionStreamOptions;
  #seq = 0;
  #connection: SseConnection | undefined;
  #cancelGrace: (() => void) | undefined;
  #finished = false;

  constructor(options: SessionStreamOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  get isFinished(): boolean {
    return this.#finished;
  }

  send(message: Encoded): void {
    if (this.#finished) return;
    const { number, log, clock } = this.#options;
    if (this.#connection === undefined) this.#dropSuperseded(message);
    const seq = ++this.#seq;
    const delivered = this.#connection?.send(message, `${number}-${seq}`) ?? false;
    log.add({ stream: number, seq, message, at: clock.now(), delivered });
  }

  /** @param after The last event that the client has; without it, it gets the undelivered events. */
  attach(connection: SseConnection, after?: number): void {
    const { number, log, canPrime } = this.#options;
    this.#cancelGrace?.();
    this.#connection?.end();
    this.#connection = connection;
    connection.onClose(() => this.#lost(connection));
    const events = after === undefined ? log.undelivered(number) : log.after(number, after);
    const first = events[0]?.seq ?? this.#seq + 1;
    if (canPrime()) connection.prime(`${number}-${after ?? first - 1}`, RETRY_MS);
    else connection.open();
    for (const event of events) event.delivered = connection.send(event.message, `${number}-${event.seq}`);
    if (this.#finished) connection.end();
  }

  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelGrace?.();
    this.#connection?.end();
  }

  #lost(connection: SseConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    const { onAbandoned, clock, graceMs } = this.#options;
    if (this.#finished || onAbandoned === undefined) return;
    this.#cancelGrace = clock.after(graceMs, onAbandoned);
  }

  #dropSuperseded(message: Encoded): void {
    const { number, log } = this.#options;
    const text = textOf(message);
    if (text === undefined || !SUPERSEDED.test(text)) return;
    log.drop(new Set(log.undelivered(number).filter((event) => textOf(event.message) === text)));
  }
}

export interface LoggedEvent {
  readonly stream: number;
  readonly seq: number;
  readonly message: Encoded;
  readonly at: number;
  /** It was written to an open connection; only the client knows whether it arrived. */
  delivered: boolean;
}

const MAX_LOGGED_EVENTS = 256;
const MAX_LOGGED_BYTES = 1024 * 1024;

/** The last events of one session, for a client that resumes a stream. */
export class EventLog {
  #events: LoggedEvent[] = [];
  #bytes = 0;

  /** The newest event is kept whatever its size: it may be the awaited answer. */
  add(event: LoggedEvent): void {
    this.#events.push(event);
    this.#bytes += bytesOf(event.message);
    while (this.#events.length > MAX_LOGGED_EVENTS || (this.#bytes > MAX_LOGGED_BYTES && this.#events.length > 1))
      this.#dropOne();
  }

  /** The events of one stream after `seq`, oldest first. */
  after(stream: number, seq: number): LoggedEvent[] {
    return this.#events.filter((event) => event.stream === stream && event.seq > seq);
  }

  undelivered(stream: number): LoggedEvent[] {
    return this.#events.filter((event) => event.stream === stream && !event.delivered);
  }

  holds(stream: number): boolean {
    return this.#events.some((event) => event.stream === stream);
  }

  drop(events: ReadonlySet<LoggedEvent>): void {
    if (events.size > 0) this.#keep((event) => !events.has(event));
  }

  /** Events delivered before that moment are considered received. */
  expire(before: number): void {
    if (this.#events.some(({ delivered, at }) => delivered && at < before)) {
      this.#keep(({ delivered, at }) => !delivered || at >= before);
    }
  }

  #keep(isKept: (event: LoggedEvent) => boolean): void {
    this.#events = this.#events.filter(isKept);
    this.#bytes = this.#events.reduce((sum, { message }) => sum + bytesOf(message), 0);
  }

  /** Delivered ones first, but never the newest. */
  #dropOne(): void {
    const delivered = this.#events.findIndex((event) => event.delivered);
    const index = delivered === -1 || delivered === this.#events.length - 1 ? 0 : delivered;
    const [dropped] = this.#events.splice(index, 1);
    if (dropped !== undefined) this.#bytes -= bytesOf(dropped.message);
  }
}
