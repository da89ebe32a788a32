/** Sessions that callers opened beside the one that they have anyway, mostly to bring servers along. */
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { Session, SessionOptions } from "../../../sessions/session.ts";
import { isOwnSession, openCallerSession, type SessionExtras, type SessionOpener } from "../caller-session.ts";

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const MOST_OF_ONE = 20;

interface Held {
  readonly caller: Caller;
  /** Ends with its socket, and not for want of use. */
  readonly ofSocket: boolean;
  usedAt: number;
}

export class OpenedSessions {
  readonly #hub: SessionOpener;
  readonly #clock: Clock;
  readonly #extras: SessionExtras;
  readonly #held = new Map<Session, Held>();
  #stopSweep: (() => void) | undefined;

  constructor(hub: SessionOpener, clock: Clock, extras: SessionExtras = {}) {
    this.#hub = hub;
    this.#clock = clock;
    this.#extras = extras;
  }

  get size(): number {
    return this.#held.size;
  }

  /** @param by The session of the door that it came through: what a socket opened ends with the socket. */
  open(caller: Caller, by: Session, options: Pick<SessionOptions, "role" | "workspaceDir">): Session {
    this.#assertRoom(caller);
    const ofSocket = by.door === "websocket";
    const session = openCallerSession(this.#hub, caller, ofSocket ? "websocket" : "rest", this.#extras, options);
    this.#held.set(session, { caller, ofSocket, usedAt: this.#clock.now() });
    const end = (): void => session.close();
    if (ofSocket) by.closing.addEventListener("abort", end, { once: true });
    const forget = (): void => {
      by.closing.removeEventListener("abort", end);
      this.#held.delete(session);
    };
    session.closing.addEventListener("abort", forget, { once: true });
    this.#stopSweep ??= this.#clock.after(SWEEP_MS, () => this.#sweep());
    return session;
  }

  /** It is not idle: somebody named it. */
  used(session: Session): void {
    const held = this.#held.get(session);
    if (held !== undefined) held.usedAt = this.#clock.now();
  }

  close(): void {
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    for (const session of this.#held.keys()) session.close();
  }

  #assertRoom(caller: Caller): void {
    const own = [...this.#held.keys()].filter((session) => isOwnSession(session, caller));
    if (own.length < MOST_OF_ONE) return;
    throw new ToolcribError("rate_limited", `${MOST_OF_ONE} sessions of this caller are open.`, {
      hint: "Close one first.",
      details: { sessions: own.map(({ id }) => id) },
    });
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const [session, { caller, ofSocket, usedAt }] of this.#held) {
      const isIdle = !ofSocket && usedAt <= now - IDLE_MS && session.running.size === 0;
      const hasExpired = caller.expiresAt !== undefined && caller.expiresAt <= now;
      if (isIdle || hasExpired) session.close();
    }
    this.#stopSweep = this.#held.size === 0 ? undefined : this.#clock.after(SWEEP_MS, () => this.#sweep());
  }
}
