/** Rate and concurrency. Refuses at once and never queues: a caller that is told can decide, one that hangs cannot. */
import type { Clock } from "../model/clock.ts";
import { TurnoverMap } from "../model/turnover.ts";
import { CallWindow, WINDOW_MS } from "./call-window.ts";

export interface LimitsOptions {
  /** For each server and for each session: at most this many in any 60 seconds. */
  readonly callsPerMinute: number;
  /** Calls under way at once, for each server. */
  readonly concurrency: number;
}

export type Taken =
  /** `release` must be called when the call has ended; calling it again does nothing. */
  | { readonly ok: true; release(): void }
  /** `what` names the limit for a person. For concurrency the wait is a guess: nobody knows when a call ends. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly what: string };

const CONCURRENCY_RETRY_MS = 1000;
/** Above this many remembered servers and sessions, those quiet for a minute are dropped. */
const SWEEP_ABOVE = 1024;

export class Limits {
  readonly #clock: Clock;
  #options: LimitsOptions;
  readonly #servers = new Map<string, CallWindow>();
  readonly #sessions = new Map<string, CallWindow>();
  readonly #underWay = new TurnoverMap<string, number>();
  #sweepAbove = SWEEP_ABOVE;
  #lastSeen = Number.NEGATIVE_INFINITY;
  #setBack = 0;

  constructor(clock: Clock, options: LimitsOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Other limits from now on; what was counted so far still counts. */
  configure(options: LimitsOptions): void {
    const isSame = options.callsPerMinute === this.#options.callsPerMinute;
    this.#options = options;
    if (isSame) return;
    for (const windows of [this.#servers, this.#sessions]) {
      for (const window of windows.values()) window.resize(options.callsPerMinute);
    }
  }

  /** Counts a call against its server and its session, or refuses it; a refused call counts against nothing. */
  take(server: string, session: string): Taken {
    const now = this.#now();
    const underWay = this.#underWay.get(server) ?? 0;
    const { concurrency, callsPerMinute } = this.#options;
    if (underWay >= concurrency) {
      const what = `server ${server} already has ${underWay} calls under way (limits.concurrency is ${concurrency})`;
      return { ok: false, retryAfterMs: CONCURRENCY_RETRY_MS, what };
    }
    const serverWait = this.#servers.get(server)?.wait(now) ?? 0;
    const sessionWait = this.#sessions.get(session)?.wait(now) ?? 0;
    if (serverWait > 0 || sessionWait > 0) {
      const who = sessionWait > serverWait ? "this session" : `server ${server}`;
      const what = `${who} has used up its calls (limits.callsPerMinute is ${callsPerMinute})`;
      return { ok: false, retryAfterMs: Math.max(serverWait, sessionWait), what };
    }
    this.#record(this.#servers, server, now);
    this.#record(this.#sessions, session, now);
    this.#underWay.set(server, underWay + 1);
    let released = false;
    return {
      ok: true,
      release: () => {
        if (released) return;
        released = true;
        const left = (this.#underWay.get(server) ?? 1) - 1;
        if (left > 0) this.#underWay.set(server, left);
        else this.#underWay.delete(server);
      },
    };
  }

  /** Drops what is remembered of a session that has ended. */
  forget(session: string): void {
    this.#sessions.delete(session);
  }

  /** Calls under way, by server. */
  underWay(): Iterable<readonly [server: string, calls: number]> {
    return this.#underWay;
  }

  /** How many servers and sessions are remembered. */
  get remembered(): number {
    return this.#servers.size + this.#sessions.size;
  }

  #record(windows: Map<string, CallWindow>, key: string, now: number): void {
    let window = windows.get(key);
    if (window === undefined) {
      if (this.remembered >= this.#sweepAbove) this.#sweep(now);
      window = new CallWindow(this.#options.callsPerMinute);
      windows.set(key, window);
    }
    window.record(now);
  }

  #sweep(now: number): void {
    for (const windows of [this.#servers, this.#sessions]) {
      for (const [key, window] of windows) if (window.quietSince <= now - WINDOW_MS) windows.delete(key);
    }
    // Doubling keeps the sweep's cost per call constant when all that is left is busy.
    this.#sweepAbove = Math.max(SWEEP_ABOVE, this.remembered * 2);
  }

  /** The clock of the wall may be set back; a window must not stay shut for that long. */
  #now(): number {
    const raw = this.#clock.now();
    if (raw < this.#lastSeen) this.#setBack += this.#lastSeen - raw;
    this.#lastSeen = raw;
    return raw + this.#setBack;
  }
}
