/** A connection that belongs to one user or to one session, and when it is no longer worth keeping. */
import type { Clock } from "../model/clock.ts";
import type { Result } from "../model/protocol.ts";
import type { SessionContext } from "../model/session.ts";
import type { Use, UseContext } from "../model/source.ts";
import type { Connection } from "./connection.ts";

export interface SeatTerms {
  /** It ends when nothing was called for so long; undefined: it is kept, because it holds what its session has done. */
  readonly idleMs: number | undefined;
  /** How long it waits for another session after the last one; 0: it ends with it, whatever is under way. */
  readonly graceMs: number;
}

export class Seat {
  readonly connection: Connection;
  readonly #clock: Clock;
  readonly #terms: SeatTerms;
  readonly #onUnused: () => void;
  readonly #sessions = new Set<string>();
  /** Session and URI of each subscription: who waits for news is not idle. */
  readonly #subscribed = new Set<string>();
  #running = 0;
  #closed = false;
  #stopTimer: () => void = () => {};

  /** @param onUnused Called once nobody needs the connection; it is then to be closed. */
  constructor(connection: Connection, terms: SeatTerms, clock: Clock, onUnused: () => void) {
    this.connection = connection;
    this.#terms = terms;
    this.#clock = clock;
    this.#onUnused = onUnused;
    this.#wait();
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { id } = context.session;
    this.join(id);
    this.#running++;
    this.#stopTimer();
    try {
      const result = await this.connection.run(use, context);
      if (use.kind === "subscribe") this.#subscribed.add(subscription(id, use.uri));
      if (use.kind === "unsubscribe") this.#subscribed.delete(subscription(id, use.uri));
      return result;
    } finally {
      this.#running--;
      this.#wait();
    }
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    for (const uri of uris) this.#subscribed.add(subscription(session.id, uri));
    this.join(session.id);
    this.connection.resume(session, uris);
    // Whoever waits for news hears none without it.
    if (this.connection.state.kind === "idle") void this.connection.connect();
  }

  join(sessionId: string): void {
    this.#sessions.add(sessionId);
    this.#wait();
  }

  leave(sessionId: string): void {
    if (!this.#sessions.delete(sessionId)) return;
    for (const each of this.#subscribed) if (each.startsWith(`${sessionId} `)) this.#subscribed.delete(each);
    this.connection.endSession(sessionId);
    if (this.#sessions.size === 0 && this.#terms.graceMs === 0) this.#onUnused();
    else this.#wait();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTimer();
    await this.connection.close();
  }

  #wait(): void {
    this.#stopTimer();
    if (this.#closed || this.#running > 0 || this.#subscribed.size > 0) return;
    const { idleMs, graceMs } = this.#terms;
    const wait = this.#sessions.size === 0 ? graceMs : idleMs;
    if (wait !== undefined && wait > 0) this.#stopTimer = this.#clock.after(wait, this.#onUnused);
  }
}

function subscription(sessionId: string, uri: string): string {
  return `${sessionId} ${uri}`;
}
