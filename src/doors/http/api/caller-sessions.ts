/** One hub session for each caller of REST and WebSocket: limits, grants, taint and kept results belong to it. */
import { type Caller, identityOf } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Session } from "../../../sessions/session.ts";
import { openCallerSession, type SessionExtras, type SessionOpener } from "../caller-session.ts";

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Above it the longest unused ends. */
const MOST = 5000;

interface Held {
  readonly session: Session;
  usedAt: number;
}

export class CallerSessions {
  readonly #hub: SessionOpener;
  readonly #clock: Clock;
  readonly #options: SessionExtras;
  /** In the order of their last use. */
  readonly #held = new Map<string, Held>();
  #stopSweep: (() => void) | undefined;

  constructor(hub: SessionOpener, clock: Clock, options: SessionExtras = {}) {
    this.#hub = hub;
    this.#clock = clock;
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /** The same for as long as the caller is the same and comes again within half an hour. */
  of(caller: Caller): Session {
    const key = identityOf(caller);
    const known = this.#held.get(key);
    this.#held.delete(key);
    const session = known === undefined || known.session.closed ? this.#open(caller) : known.session;
    this.#held.set(key, { session, usedAt: this.#clock.now() });
    this.#stopSweep ??= this.#clock.after(SWEEP_MS, () => this.#sweep());
    return session;
  }

  close(): void {
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    for (const { session } of this.#held.values()) session.close();
    this.#held.clear();
  }

  #open(caller: Caller): Session {
    if (this.#held.size >= MOST) this.#endOne();
    return openCallerSession(this.#hub, caller, "rest", this.#options, { sharedKey: `rest ${identityOf(caller)}` });
  }

  #endOne(): void {
    for (const [key, { session }] of this.#held) {
      if (session.running.size > 0) continue;
      this.#end(key, session);
      return;
    }
  }

  #sweep(): void {
    const before = this.#clock.now() - IDLE_MS;
    for (const [key, { session, usedAt }] of this.#held) {
      if (usedAt > before) break;
      if (session.running.size === 0) this.#end(key, session);
    }
    this.#stopSweep = this.#held.size === 0 ? undefined : this.#clock.after(SWEEP_MS, () => this.#sweep());
  }

  #end(key: string, session: Session): void {
    this.#held.delete(key);
    session.close();
  }
}
