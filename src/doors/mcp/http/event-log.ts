/** The last events of one session, so that a client that lost its connection can go on where it was. */
import type { Encoded } from "../encoded.ts";
import { bytesOf } from "./exchange.ts";

export interface LoggedEvent {
  readonly stream: number;
  readonly seq: number;
  readonly message: Encoded;
  readonly at: number;
  /** It was put on an open connection; whether it arrived only the client knows. */
  delivered: boolean;
}

const MAX_EVENTS = 256;
const MAX_BYTES = 1024 * 1024;

export class EventLog {
  #events: LoggedEvent[] = [];
  #bytes = 0;

  /** The newest event is kept whatever its size: it may be the answer that somebody waits for. */
  add(event: LoggedEvent): void {
    this.#events.push(event);
    this.#bytes += bytesOf(event.message);
    while (this.#events.length > MAX_EVENTS || (this.#bytes > MAX_BYTES && this.#events.length > 1)) this.#dropOne();
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

  /** What was delivered before that moment is taken as arrived. */
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
