/** Limits of rate and concurrency. Refuses at once and never queues: a refused caller can decide, a waiting one cannot. */
import type { Clock } from "../base/clock.ts";
import { CallWindow, type SharedWindows, WINDOW_MS } from "./call-windows.ts";

export interface CallLimitsOptions {
  /** For each server and for each session: at most this many in any 60 seconds. */
  readonly callsPerMinute: number;
  /** Calls in progress at once, for each server. */
  readonly concurrency: number;
}

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

interface CountedCall {
  readonly server: string;
  readonly caller: string;
  /** All sessions of a user count together. */
  readonly isPrincipal: boolean;
}

interface SharedCall extends CountedCall {
  readonly isShared: boolean;
}

/** `wait` as the windows say it. */
interface SharedToken {
  readonly wait: number | undefined;
  /** When it was taken. */
  readonly span: number;
}

const CONCURRENCY_RETRY_MS = 1000;
/** Above this many remembered servers and sessions, those quiet for a minute are dropped. */
const SWEEP_ABOVE = 1024;

export class CallLimits {
  readonly #clock: Clock;
  #options: CallLimitsOptions;
  readonly #servers = new Map<string, CallWindow>();
  readonly #sessions = new Map<string, CallWindow>();
  #sharing: LimitSharing | undefined;
  readonly #inFlight = new Map<string, number>();
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
    for (const windows of [this.#servers, this.#sessions]) {
      for (const window of windows.values()) window.resize(options.callsPerMinute);
    }
  }

  /** From now on what is shared is counted together with others. */
  share(sharing: LimitSharing): void {
    this.#sharing = sharing;
  }

  /** Counts a call against its server and its session, or refuses it; a refused call counts against nothing. */
  take(server: string, session: string): LimitOutcome {
    const now = this.#now();
    const call = { server, caller: session, isPrincipal: false };
    return this.#refusal(call, 1, now) ?? this.#admit(server, session, now);
  }

  /**
   * The same together with all hubs that limits are shared with. A promise only if there are any and nothing is in hand.
   * @param principal What the session has in common with sessions at other hubs, whose calls count together.
   */
  takeAcrossNodes(
    server: string,
    session: string,
    principal: string | undefined,
  ): LimitOutcome | Promise<LimitOutcome> {
    const sharing = this.#sharing;
    if (sharing === undefined) return this.take(server, session);
    const isShared = sharing.isShared(server);
    const caller = principal ?? session;
    const now = this.#now();
    const call = { server, caller, isPrincipal: principal !== undefined };
    const refusal = this.#refusal(call, isShared ? sharing.nodes() : 1, now);
    if (refusal !== undefined) return refusal;
    if (!isShared && principal === undefined) return this.#admit(server, caller, now);
    return this.#takeShared(sharing, { ...call, isShared });
  }

  /** Decides with what this hub knows by itself. */
  #refusal({ server, caller, isPrincipal }: CountedCall, nodes: number, now: number): LimitOutcome | undefined {
    const inFlight = this.#inFlight.get(server) ?? 0;
    const { concurrency } = this.#options;
    if (inFlight >= shareOf(concurrency, nodes)) {
      const among = nodes > 1 ? ` for ${nodes} nodes` : "";
      const what = `server ${server} already has ${inFlight} calls in progress (limits.concurrency is ${concurrency}${among})`;
      return { ok: false, retryAfterMs: CONCURRENCY_RETRY_MS, what, limit: "limits.concurrency" };
    }
    const serverWait = this.#servers.get(server)?.wait(now) ?? 0;
    const callerWait = this.#sessions.get(caller)?.wait(now) ?? 0;
    if (serverWait === 0 && callerWait === 0) return undefined;
    return usedUp({ server, serverWait, callerWait, isPrincipal, callsPerMinute: this.#options.callsPerMinute });
  }

  #takeShared(sharing: LimitSharing, call: SharedCall): LimitOutcome | Promise<LimitOutcome> {
    const { server, caller, isShared, isPrincipal } = call;
    const { callsPerMinute } = this.#options;
    // Counted from here on, so that calls that wait for their portion do not all find room.
    const slot = this.#enter(server);
    const { windows } = sharing;
    const takeOf = (key: string | undefined): SharedToken | Promise<SharedToken> => {
      const token = (wait: number | undefined): SharedToken => ({ wait, span: windows.span });
      const answer = key === undefined ? 0 : windows.take(key, callsPerMinute);
      return answer instanceof Promise ? answer.then(token) : token(answer);
    };
    const serverKey = isShared ? `server ${server}` : undefined;
    const callerKey = isPrincipal ? `session ${caller}` : undefined;
    const finish = (ofServer: SharedToken, ofCaller: SharedToken): LimitOutcome => {
      const nodes = sharing.nodes();
      const waits = [
        ofServer.wait ?? this.#waitAlone(this.#servers.get(server), nodes),
        ofCaller.wait ?? this.#waitAlone(this.#sessions.get(caller), nodes),
      ] as const;
      if (waits[0] > 0 || waits[1] > 0) {
        slot.release();
        if (ofServer.wait === 0 && serverKey !== undefined) windows.putBack(serverKey, ofServer.span);
        if (ofCaller.wait === 0 && callerKey !== undefined) windows.putBack(callerKey, ofCaller.span);
        const isAlone = (waits[1] > waits[0] ? ofCaller : ofServer).wait === undefined;
        return usedUp({
          ...{ server, serverWait: waits[0], callerWait: waits[1], callsPerMinute, isPrincipal },
          share: isAlone && nodes > 1 ? shareOf(callsPerMinute, nodes) : undefined,
        });
      }
      if (ofServer.wait === undefined && serverKey !== undefined) windows.owe(serverKey);
      if (ofCaller.wait === undefined && callerKey !== undefined) windows.owe(callerKey);
      this.#count(server, caller, this.#now());
      return slot;
    };
    const [ofServer, ofCaller] = [takeOf(serverKey), takeOf(callerKey)];
    if (!(ofServer instanceof Promise) && !(ofCaller instanceof Promise)) return finish(ofServer, ofCaller);
    return Promise.all([ofServer, ofCaller]).then((answers) => finish(...answers));
  }

  /** Where the others cannot be heard of, each keeps to its part. */
  #waitAlone(window: CallWindow | undefined, nodes: number): number {
    return window?.waitWithin(shareOf(this.#options.callsPerMinute, nodes), this.#now()) ?? 0;
  }

  #admit(server: string, session: string, now: number): LimitOutcome {
    this.#count(server, session, now);
    return this.#enter(server);
  }

  #count(server: string, session: string, now: number): void {
    this.#record(this.#servers, server, now);
    this.#record(this.#sessions, session, now);
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
    this.#sessions.delete(session);
  }

  /** Calls in progress, by server. */
  inFlight(): Iterable<readonly [server: string, calls: number]> {
    return this.#inFlight;
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

interface UsedUp {
  readonly server: string;
  readonly serverWait: number;
  readonly callerWait: number;
  /** The limit that refused, which may have been changed in the meantime. */
  readonly callsPerMinute: number;
  readonly isPrincipal: boolean;
  /** This node's part, where it could not ask the others. */
  readonly share?: number | undefined;
}

function usedUp({ server, serverWait, callerWait, callsPerMinute, isPrincipal, share }: UsedUp): LimitOutcome {
  const caller = isPrincipal ? "this user" : "this session";
  const who = callerWait > serverWait ? caller : `server ${server}`;
  const part = share === undefined ? "" : `, of which this node has ${share} while the store does not answer`;
  const what = `${who} has used up its calls (limits.callsPerMinute is ${callsPerMinute}${part})`;
  return { ok: false, retryAfterMs: Math.max(serverWait, callerWait), what, limit: "limits.callsPerMinute" };
}

/** Rounded up, so that every node gets something. */
function shareOf(limit: number, nodes: number): number {
  return nodes <= 1 ? limit : Math.ceil(limit / nodes);
}
