/** Limits of rate and concurrency. Refuses at once and never queues: a refused caller can decide, a waiting one cannot. */
import type { Clock } from "../base/clock.ts";
import { ChurnMap } from "../base/maps.ts";
import { CallWindow, type SharedWindows, WINDOW_MS } from "./call-windows.ts";

export interface CallLimitsOptions {
  /** Of one session, or of one caller whose sessions count together: at most this many in any 60 seconds. */
  readonly callsPerMinute?: number | undefined;
  /** Calls in progress at once, for each server. */
  readonly concurrency: number;
}

/** Where `callsPerMinute` is not set: for everyone but the owner of a hub on one machine, who has no limit. */
export const DEFAULT_CALLS_PER_MINUTE = 100;

/** In a cluster, limits apply to all nodes together. */
export interface LimitSharing {
  readonly windows: SharedWindows;
  /** Whether other hubs reach the same server. */
  readonly isShared: (server: string) => boolean;
  /** How many hubs are alive. */
  readonly nodes: () => number;
}

export type LimitOutcome =
  /** `release` must be called when the call has ended; calling it again does nothing. */
  | { readonly ok: true; release(): void }
  /** `what` says for a person which limit refused whom; `limit` is its key in the config. For concurrency the wait is a guess. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly what: string; readonly limit: string };

interface LimitedCaller {
  /** The session, or the principal. */
  readonly key: string;
  /** Its sessions count together. */
  readonly isPrincipal: boolean;
  readonly limit: number;
}

const CONCURRENCY_RETRY_MS = 1000;
/** Above this many remembered callers, those quiet for a minute are dropped. */
const SWEEP_ABOVE = 1024;

export class CallLimits {
  readonly #clock: Clock;
  #options: CallLimitsOptions;
  readonly #callers = new Map<string, CallWindow>();
  #sharing: LimitSharing | undefined;
  readonly #inFlight = new ChurnMap<string, number>();
  #sweepAbove = SWEEP_ABOVE;
  #lastSeen = Number.NEGATIVE_INFINITY;
  #setBack = 0;

  constructor(clock: Clock, options: CallLimitsOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Other limits from now on; what was counted so far still counts. */
  configure(options: CallLimitsOptions): void {
    const isSame = options.callsPerMinute === this.#options.callsPerMinute;
    this.#options = options;
    if (isSame) return;
    const { callsPerMinute = DEFAULT_CALLS_PER_MINUTE } = options;
    for (const window of this.#callers.values()) window.resize(callsPerMinute);
  }

  /** From now on what is shared is counted together with others. */
  share(sharing: LimitSharing): void {
    this.#sharing = sharing;
  }

  /** Counts a call against its session, or refuses it; a refused call counts against nothing. */
  take(server: string, session: string, options: { readonly owner?: boolean } = {}): LimitOutcome {
    const caller = this.#caller(session, undefined, options.owner);
    const now = this.#now();
    return this.#refusal(server, caller, 1, now) ?? this.#admit(server, caller, now);
  }

  /**
   * The same together with all hubs that limits are shared with. A promise only if there are any and nothing is in hand.
   * @param principal What the session has in common with others, here and at other hubs, whose calls count together.
   */
  takeAcrossNodes(
    server: string,
    session: string,
    principal: string | undefined,
    options: { readonly owner?: boolean } = {},
  ): LimitOutcome | Promise<LimitOutcome> {
    const sharing = this.#sharing;
    const caller = this.#caller(session, principal, options.owner);
    const nodes = sharing?.isShared(server) === true ? sharing.nodes() : 1;
    const now = this.#now();
    const refusal = this.#refusal(server, caller, nodes, now);
    if (refusal !== undefined) return refusal;
    if (sharing === undefined || !caller.isPrincipal) return this.#admit(server, caller, now);
    return this.#takeShared(sharing, server, caller);
  }

  #caller(session: string, principal: string | undefined, owner = false): LimitedCaller {
    // In a cluster the owner is not alone with the machine.
    const none = owner && this.#sharing === undefined ? Infinity : DEFAULT_CALLS_PER_MINUTE;
    const limit = this.#options.callsPerMinute ?? none;
    return { key: principal ?? session, isPrincipal: principal !== undefined, limit };
  }

  /** Decides with what this hub knows by itself. */
  #refusal(server: string, caller: LimitedCaller, nodes: number, now: number): LimitOutcome | undefined {
    const inFlight = this.#inFlight.get(server) ?? 0;
    const { concurrency } = this.#options;
    if (inFlight >= shareOf(concurrency, nodes)) {
      const among = nodes > 1 ? ` for ${nodes} nodes` : "";
      const what = `server ${server} already has ${inFlight} calls in progress (limits.concurrency is ${concurrency}${among})`;
      return { ok: false, retryAfterMs: CONCURRENCY_RETRY_MS, what, limit: "limits.concurrency" };
    }
    const wait = caller.limit === Infinity ? 0 : (this.#callers.get(caller.key)?.wait(now) ?? 0);
    return wait > 0 ? usedUp(caller, wait) : undefined;
  }

  #takeShared(sharing: LimitSharing, server: string, caller: LimitedCaller): LimitOutcome | Promise<LimitOutcome> {
    // Counted from here on, so that calls that wait for their portion do not all find room.
    const slot = this.#enter(server);
    const { windows } = sharing;
    const key = `session ${caller.key}`;
    const finish = (answer: number | undefined): LimitOutcome => {
      // Where the others cannot be heard of, each keeps to its part.
      const part = shareOf(caller.limit, sharing.nodes());
      const wait = answer ?? this.#callers.get(caller.key)?.waitWithin(part, this.#now()) ?? 0;
      if (wait > 0) {
        slot.release();
        return usedUp(caller, wait, answer === undefined ? part : undefined);
      }
      if (answer === undefined) windows.owe(key);
      this.#count(caller, this.#now());
      return slot;
    };
    const answer = windows.take(key, caller.limit);
    return answer instanceof Promise ? answer.then(finish) : finish(answer);
  }

  #admit(server: string, caller: LimitedCaller, now: number): LimitOutcome {
    this.#count(caller, now);
    return this.#enter(server);
  }

  #enter(server: string): Extract<LimitOutcome, { ok: true }> {
    this.#inFlight.set(server, (this.#inFlight.get(server) ?? 0) + 1);
    let released = false;
    return {
      ok: true,
      release: () => {
        if (released) return;
        released = true;
        const left = (this.#inFlight.get(server) ?? 1) - 1;
        if (left > 0) this.#inFlight.set(server, left);
        else this.#inFlight.delete(server);
      },
    };
  }

  /** Drops what is remembered of a session that has ended. */
  forget(session: string): void {
    this.#callers.delete(session);
  }

  /** Calls in progress, by server. */
  inFlight(): Iterable<readonly [server: string, calls: number]> {
    return this.#inFlight;
  }

  /** How many callers are remembered. */
  get remembered(): number {
    return this.#callers.size;
  }

  #count({ key, limit }: LimitedCaller, now: number): void {
    if (limit === Infinity) return;
    let window = this.#callers.get(key);
    if (window === undefined) {
      if (this.remembered >= this.#sweepAbove) this.#sweep(now);
      window = new CallWindow(limit);
      this.#callers.set(key, window);
    }
    window.record(now);
  }

  #sweep(now: number): void {
    for (const [key, window] of this.#callers) if (window.quietSince <= now - WINDOW_MS) this.#callers.delete(key);
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

/** @param part Of this node, where it could not ask the others. */
function usedUp({ isPrincipal, limit }: LimitedCaller, retryAfterMs: number, part?: number): LimitOutcome {
  const who = isPrincipal ? "this user" : "this session";
  const share =
    part === undefined || part === limit ? "" : `, of which this node has ${part} while the store does not answer`;
  const what = `${who} has used up its calls (limits.callsPerMinute is ${limit}${share})`;
  return { ok: false, retryAfterMs, what, limit: "limits.callsPerMinute" };
}

/** Rounded up, so that every node gets something. */
function shareOf(limit: number, nodes: number): number {
  return nodes <= 1 ? limit : Math.ceil(limit / nodes);
}
