/** The open sessions of all HTTP clients: found by an unguessable id, bounded in number, ended when idle. */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../../model/clock.ts";

export interface OpenSession {
  readonly id: string;
  /** The caller's identity. */
  readonly key: string;
  usedAt: number;
  /** A stream is open or a request runs: that counts as use. */
  readonly isBusy: boolean;
  /** It was ended from elsewhere, and is as unknown as one that never was. */
  readonly isOver?: boolean;
  /** Lets go of what is not needed any more. */
  sweep(now: number): void;
  close(): void;
}

export interface SessionLimits {
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
}

const SWEEP_MS = 60_000;
/** A session that rested for so long may go early when others need its place. */
const SPARE_AFTER_MS = 60_000;
const ID_BYTES = 24;

export class SessionTable {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, OpenSession>();
  #limits: SessionLimits;
  #stopSweep: (() => void) | undefined;

  constructor(clock: Clock, limits: SessionLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#sessions.size;
  }

  setLimits(limits: SessionLimits): void {
    this.#limits = limits;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    if (this.#sessions.size > 0) this.#arm();
  }

  /** Undefined if there is no room and none can be made. */
  open<S extends OpenSession>(
    make: (id: string) => S,
    id = randomBytes(ID_BYTES).toString("base64url"),
  ): S | undefined {
    if (this.#sessions.size >= this.#limits.maxSessions && !this.#makeRoom()) return undefined;
    const session = make(id);
    this.#sessions.set(session.id, session);
    this.#arm();
    return session;
  }

  /** Somebody else's session is as unknown as one that never was. */
  find(id: string, key: string): OpenSession | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || session.key !== key) return undefined;
    const now = this.#clock.now();
    if (session.isOver === true || (!session.isBusy && now - session.usedAt >= this.#limits.sessionIdleMs)) {
      this.end(session);
      return undefined;
    }
    session.usedAt = now;
    return session;
  }

  end(session: OpenSession): void {
    this.#sessions.delete(session.id);
    session.close();
  }

  endAll(): void {
    for (const session of [...this.#sessions.values()]) this.end(session);
    this.#stopSweep?.();
    this.#stopSweep = undefined;
  }

  /** Ends the session that has rested longest, if it has rested long enough. */
  #makeRoom(): boolean {
    let oldest: OpenSession | undefined;
    for (const session of this.#sessions.values()) {
      if (!session.isBusy && (oldest === undefined || session.usedAt < oldest.usedAt)) oldest = session;
    }
    if (oldest === undefined || this.#clock.now() - oldest.usedAt < SPARE_AFTER_MS) return false;
    this.end(oldest);
    return true;
  }

  #arm(): void {
    this.#stopSweep ??= this.#clock.after(Math.min(SWEEP_MS, this.#limits.sessionIdleMs), () => this.#sweep());
  }

  #sweep(): void {
    this.#stopSweep = undefined;
    const now = this.#clock.now();
    for (const session of [...this.#sessions.values()]) {
      if (session.isBusy) session.usedAt = now;
      if (now - session.usedAt >= this.#limits.sessionIdleMs) this.end(session);
      else session.sweep(now);
    }
    if (this.#sessions.size > 0) this.#arm();
  }
}
