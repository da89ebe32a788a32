/** The state that all parts of MCP over HTTP share: the door, open sessions and open streams. */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Clock } from "../../../base/clock.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import type { Caller } from "../../../model/caller.ts";
import type { RequestId } from "../../../model/protocol.ts";
import { type CallerQuota, makesRoom, Quota, type QuotaReached } from "../../../policy/quota.ts";
import type { HttpExchange } from "../../http/http-exchange.ts";
import type { LegacySession } from "../legacy-session.ts";
import type { McpDoor } from "../mcp-door.ts";
import type { MessageSink } from "../rpc-messages.ts";
import type { ViewScope } from "../view-scope.ts";
import type { RequestOrigin } from "../view-scope.ts";
import type { Accepts } from "./http-messages.ts";
import type { OpenStreams } from "./open-streams.ts";

export type EngineSession = Pick<LegacySession, "version" | "request" | "notify" | "answer" | "abandon" | "close"> &
  Partial<Pick<LegacySession, "isOver">>;

/** The parts of the door that a transport uses. */
export interface Engine extends Pick<McpDoor, "modern" | "toolDefinition" | "close"> {
  openSession(origin: RequestOrigin, sink: MessageSink): EngineSession;
}

export interface Transport {
  readonly door: Engine;
  readonly clock: Clock;
  readonly sessions: SessionTable;
  readonly streams: OpenStreams;
  /** How long a call waits for a client whose resumable stream was cut. */
  readonly resumeGraceMs: number;
  readonly isClosing: boolean;
  /** In a cluster: ids that name the node that has the session. */
  readonly ids?: RoutableIds | undefined;
  refuseFull(response: ServerResponse, id: RequestId | null, what: "sessions" | "streams", reached: QuotaReached): void;
  refuseClosing(response: ServerResponse, id: RequestId | null): void;
}

/** One POST to `/mcp`. */
export interface McpPost {
  readonly transport: Transport;
  readonly exchange: HttpExchange;
  readonly accepts: Accepts;
  readonly scope: ViewScope;
}

export interface OpenSession {
  readonly id: string;
  readonly caller: Caller;
  /** The caller's identity. */
  readonly key: string;
  usedAt: number;
  /** A stream is open or a request runs: that counts as use. */
  readonly isBusy: boolean;
  /** It was ended elsewhere, and is not found any more. */
  readonly isOver?: boolean;
  /** Drops what is not needed any more. */
  sweep(now: number): void;
  close(): void;
}

interface SessionLimits {
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  /** Of these sessions, how many one caller may have; all if absent. */
  readonly perCaller?: Omit<CallerQuota, "total"> | undefined;
}

const SWEEP_MS = 60_000;
/** A session idle for this long may end early to make room. */
const EVICTABLE_AFTER_MS = 60_000;
const ID_BYTES = 24;

/** The open sessions of all HTTP clients: found by an unguessable id, bounded in number, ended when idle. */
export class SessionTable {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, OpenSession>();
  readonly #places = new Map<OpenSession, () => void>();
  readonly #quota: Quota;
  #limits: SessionLimits;
  #stopSweep: (() => void) | undefined;

  constructor(clock: Clock, limits: SessionLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#quota = new Quota(quotaLimits(limits));
  }

  get size(): number {
    return this.#sessions.size;
  }

  setLimits(limits: SessionLimits): void {
    this.#limits = limits;
    this.#quota.setLimits(quotaLimits(limits));
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    if (this.#sessions.size > 0) this.#arm();
  }

  /** Opens a session, or returns the limit that is reached. */
  open<S extends OpenSession>(
    caller: Caller,
    make: (id: string) => S,
    id = randomBytes(ID_BYTES).toString("base64url"),
  ): { readonly session: S } | { readonly reached: QuotaReached } {
    let reached = this.#quota.reachedFor(caller);
    if (reached !== undefined && this.#makeRoom(caller, reached)) reached = this.#quota.reachedFor(caller);
    if (reached !== undefined) return { reached };
    const session = make(id);
    this.#sessions.set(session.id, session);
    this.#places.set(session, this.#quota.take(caller));
    this.#arm();
    return { session };
  }

  /** The session of another caller is not found. */
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
    this.#places.get(session)?.();
    this.#places.delete(session);
    session.close();
  }

  endAll(): void {
    for (const session of [...this.#sessions.values()]) this.end(session);
    this.#stopSweep?.();
    this.#stopSweep = undefined;
  }

  /** Ends the longest idle session among those that would make room, if it has been idle long enough. */
  #makeRoom(caller: Caller, reached: QuotaReached): boolean {
    let oldest: OpenSession | undefined;
    for (const session of this.#sessions.values()) {
      if (!makesRoom(reached, session.caller, caller)) continue;
      if (!session.isBusy && (oldest === undefined || session.usedAt < oldest.usedAt)) oldest = session;
    }
    if (oldest === undefined || this.#clock.now() - oldest.usedAt < EVICTABLE_AFTER_MS) return false;
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

function quotaLimits({ maxSessions, perCaller }: SessionLimits): CallerQuota {
  return { ...perCaller, total: maxSessions };
}
