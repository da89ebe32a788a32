/** Shared by all parts of MCP over HTTP: the door, open sessions and streams, and the checks before a request is answered. */
import { randomBytes } from "node:crypto";
import { InFlight } from "../../../base/async.ts";
import type { Clock } from "../../../base/clock.ts";
import { ChurnSet } from "../../../base/maps.ts";
import type { IdKind, RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { type Caller, identityOf, type Scope } from "../../../model/caller.ts";
import { asToolcribError, CHECK_BEFORE_RETRY, type ErrorObject, OUTCOME_UNKNOWN } from "../../../model/errors.ts";
import { MODERN_VERSION, type RequestId, type RpcNotification, type RpcRequest } from "../../../model/protocol.ts";
import { type CallerQuota, makesRoom, Quota, type QuotaReached } from "../../../policy/quota.ts";
import type { HttpExchange, HttpResponse } from "../../http/http-exchange.ts";
import { type OpenStreams, textOf } from "../../http/open-streams.ts";
import type { LegacySession } from "../legacy-session.ts";
import type { McpDoor } from "../mcp-door.ts";
import { claimsModern, type Encoded, encodeToolcribError, type MessageSink } from "../rpc-messages.ts";
import type { RequestOrigin, ViewScope } from "../view-scope.ts";
import { type Accepts, refuseWithError } from "./http-messages.ts";

export type EngineSession = Pick<LegacySession, "version" | "request" | "notify" | "answer" | "abandon" | "close"> &
  Partial<Pick<LegacySession, "isOver">>;

/** The parts of the door that a transport uses. */
export interface Engine extends Pick<McpDoor, "modern" | "toolDefinition" | "scopeNames" | "close"> {
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
  /** POSTs whose messages are still arriving. A door that closes accepts those that began before. */
  readonly arriving: PendingRequests;
  /** In a cluster: ids that name the node that has the session. */
  readonly ids?: RoutableIds | undefined;
  refuseFull(response: HttpResponse, id: RequestId | null, what: "sessions" | "streams", reached: QuotaReached): void;
  refuseClosing(response: HttpResponse, id: RequestId | null): void;
}

export class PendingRequests {
  readonly #begun = new ChurnSet<HttpExchange>();
  readonly #inFlight = new InFlight();

  has(exchange: HttpExchange): boolean {
    return this.#begun.has(exchange);
  }

  begin(exchange: HttpExchange): void {
    this.#begun.add(exchange);
    this.#inFlight.start();
  }

  /** Its messages are with the door, or refused. */
  end(exchange: HttpExchange): void {
    if (this.#begun.delete(exchange)) this.#inFlight.end();
  }

  whenIdle(): Promise<void> {
    return this.#inFlight.whenIdle();
  }
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
  find(id: string, caller: Caller): OpenSession | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    // Callers of known tokens are the same objects from request to request.
    if (session.caller !== caller && session.key !== identityOf(caller)) return undefined;
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

export const SESSION_HEADER = "mcp-session-id";
export const VERSION_HEADER = "mcp-protocol-version";

export function refuseUnknownSession({ response }: HttpExchange, id: RequestId | null): void {
  const hint = "It may have ended: start a new one with initialize.";
  refuseWithError(response, id, { code: "not_found", message: "No such session.", hint });
}

/**
 * Whether new requests are accepted, and these from this caller. If not, that is answered. A session of a node that shuts down
 * counts as ended: the client opens a new one at another node.
 */
export function admitOrRefuseRequests(
  { transport, exchange }: Pick<McpPost, "transport" | "exchange">,
  requests: readonly RpcRequest[],
  { ofSession = false }: { readonly ofSession?: boolean } = {},
): boolean {
  const isLate = transport.isClosing && !transport.arriving.has(exchange);
  transport.arriving.end(exchange);
  if (requests.length > 0 && isLate) {
    const id = requests[0]?.id ?? null;
    if (ofSession && transport.ids !== undefined) refuseUnknownSession(exchange, id);
    else transport.refuseClosing(exchange.response, id);
    return false;
  }
  for (const { method } of requests) {
    const scope = requiredScope(method);
    if (exchange.caller.scopes.has(scope)) continue;
    exchange.refuseScope(scope);
    return false;
  }
  return true;
}

/** The scope that a request of this method needs. */
function requiredScope(method: string): Scope {
  return method === "tools/call" || method.startsWith("tasks/") ? "call" : "read";
}

/**
 * True if it was answered: by the node that has it, or because that node cannot be reached. False if no live node has it: it is
 * then looked up here, and not found.
 */
export async function forwardToOwner(
  ids: RoutableIds | undefined,
  exchange: HttpExchange,
  kind: IdKind,
  id: string | null | undefined,
  request: RequestId | null,
): Promise<boolean> {
  if (ids === undefined || id === null || id === undefined || exchange.forwardTo === undefined) return false;
  const place = await ids.find(kind, id);
  if (place === undefined || !("node" in place)) return false;
  switch (await exchange.forwardTo(place.node, request === null ? undefined : lostEvent(request))) {
    case "answered":
      return true;
    case "gone":
      return false;
    case "away":
      // Not 404, after which clients drop a session that may be alive.
      refuseWithError(exchange.response, request, {
        code: "server_unavailable",
        message: "The node that has this session cannot be reached at the moment.",
        hint: "Try again soon.",
      });
      return true;
    case "lost":
      // An answer to the request and not a failure of HTTP: of those, some clients and proxies repeat the request.
      refuseWithError(exchange.response, request, LOST, request === null ? undefined : 200);
      return true;
  }
}

const LOST: ErrorObject = {
  code: "server_unavailable",
  message: `The node that has this session stopped before it had answered. ${OUTCOME_UNKNOWN}`,
  hint: CHECK_BEFORE_RETRY,
  details: { outcome: "unknown" },
};

/** The answer as the last event of a stream. */
function lostEvent(request: RequestId): string {
  const answer = textOf(encodeToolcribError(request, LOST)) ?? "";
  return `event: message\ndata: ${answer}\n\n`;
}

/** The door answers every request; an error that it throws is a bug and is answered as one. */
export async function answerOrError(id: RequestId, ask: () => Promise<Encoded | null>): Promise<Encoded | null> {
  try {
    return await ask();
  } catch (error) {
    return encodeToolcribError(id, asToolcribError(error).toObject());
  }
}

/** `initialize` opens a legacy session whatever the header says, unless the message itself claims the modern era. */
export function isModern(message: RpcRequest | RpcNotification, versionHeader: string | undefined): boolean {
  return claimsModern(message) || (versionHeader === MODERN_VERSION && message.method !== "initialize");
}
