/**
 * One logical event stream of a legacy session: the answer to one POST, or the stream by GET. It lives on when its
 * connection is cut, and a GET with `Last-Event-ID` takes it up again.
 */
import type { Clock } from "../../../model/clock.ts";
import type { Encoded, Outlet } from "../encoded.ts";
import type { EventLog } from "./event-log.ts";
import { textOf } from "./exchange.ts";
import type { SseConnection } from "./sse-connection.ts";

export interface SessionStreamOptions {
  readonly number: number;
  readonly log: EventLog;
  readonly clock: Clock;
  /** Events without data break clients of versions that did not have them. */
  readonly canPrime: () => boolean;
  /** How long a cut stream waits for its client. */
  readonly graceMs: number;
  /** Nobody came back for the rest. Without it the stream waits as long as its session. */
  readonly onAbandoned?: () => void;
}

/** How long a client shall wait before it opens a cut stream again. */
const RETRY_MS = 1000;
/** Telling the same twice is of no use to a client that was away. */
const SUPERSEDED = /^\{"jsonrpc":"2\.0","method":"notifications\/(?:[a-z]+\/list_changed|resources\/updated)"/;

export class SessionStream implements Outlet {
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

  /** @param after The last event that the client has; without it, it gets what nobody got. */
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
