/** The hub sessions of callers of REST and the WebSocket: limits, grants, taint and kept results belong to a session. */
import type { HttpRequest } from "../http-exchange.ts";
import type { Clock } from "../../../base/clock.ts";
import { AGENT_TOOLS } from "../../../catalog/naming.ts";
import { type Caller, identityOf } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { SessionRules } from "../../../model/tool-rules.ts";
import type { Session, SessionOptions } from "../../../sessions/session.ts";
import { httpClientInfo, localPeer } from "../http-client-info.ts";

export interface SessionExtras {
  /** Whether calls that need approval wait for it; without it they are denied. */
  readonly holdsCalls?: boolean | undefined;
}

/** The part of a session that its caller chooses. */
type RequestedSession = Pick<SessionOptions, "role" | "workspaceDir" | "parent" | "conversation">;

export interface SessionOpener {
  openSession(options: SessionOptions): Session;
}

type CallerSessionOptions = RequestedSession & Pick<SessionOptions, "sharedKey" | "clientInfo" | "within" | "rules">;

/** Opens a hub session for a caller of REST or of the WebSocket. */
export function openCallerSession(
  hub: SessionOpener,
  caller: Caller,
  door: "rest" | "websocket",
  { holdsCalls }: SessionExtras,
  { role, ...given }: CallerSessionOptions = {},
): Session {
  const { key, owner, user, scopes } = caller;
  const isOperator = scopes.has("admin");
  const session = hub.openSession({
    door,
    owner,
    // A caller without a token may be a program that was tricked into calling: it cannot change rules or start programs.
    decidesForAll: isOperator,
    mayRunCommands: isOperator,
    // A role that is left out is the caller's own, never none.
    role: role ?? caller.role,
    user,
    holdsCalls,
    ...given,
    caller: key,
    // Those of others who may open the page are listed: an operator can end them.
    unlisted: isOperator ? caller.page : undefined,
  });
  identities.set(session, identityOf(caller));
  return session;
}

/** Adds the process of a client on this machine, when it is found. */
export function addPeer(session: Session, { socket }: HttpRequest): void {
  void localPeer(socket).then((found) => {
    if (session.clientInfo !== undefined) session.clientInfo = { ...session.clientInfo, ...found };
  });
}

const identities = new WeakMap<Session, string>();

function isOwnSession(session: Session, caller: Caller): boolean {
  return identities.get(session) === identityOf(caller);
}

interface OpenSessionList {
  sessions(): readonly Session[];
}

/** The open session with this id. That of an editor can be named by the id that the editor has for it as well. */
export function findSession(hub: OpenSessionList, id: string): Session | undefined {
  const isMeant = (each: Session): boolean => each.id === id || each.editorId === id;
  return hub.sessions().find((each) => !each.closed && isMeant(each));
}

interface Joining {
  readonly within: Session;
  readonly rules: SessionRules;
}

/**
 * How another program of an editor's user joins the editor's session: it has the servers, tools, rules and taint of that session.
 * Undefined if no such session is open, or the caller is not an operator.
 */
export function joinEditorSession(hub: OpenSessionList, { scopes }: Caller, id: string): Joining | undefined {
  const session = scopes.has("admin") ? findSession(hub, id) : undefined;
  return session?.editorId !== undefined ? { within: session, rules: { deny: [...AGENT_TOOLS] } } : undefined;
}

export function noEditorSession(id: string): ToolcribError {
  return new ToolcribError("not_found", `No session ${id} of an editor is open here for this caller.`, {
    hint: "toolcrib hub lists those that are open. With http.auth a token with the scope admin is needed.",
  });
}

/** An open session that the caller may use. */
export function namedSession(
  hub: OpenSessionList,
  caller: Caller,
  id: string,
  { anyWithAdmin = false }: { readonly anyWithAdmin?: boolean } = {},
): Session | undefined {
  const session = findSession(hub, id);
  if (session === undefined) return undefined;
  return isOwnSession(session, caller) || (anyWithAdmin && caller.scopes.has("admin")) ? session : undefined;
}

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Above this, the one unused for longest ends. */
const MAX_CALLER_SESSIONS = 5000;

interface CallerSession {
  readonly session: Session;
  usedAt: number;
}

/** One default session for each caller. */
export class CallerSessions {
  readonly #hub: SessionOpener;
  readonly #clock: Clock;
  readonly #options: SessionExtras;
  /** In the order of their last use. */
  readonly #held = new Map<string, CallerSession>();
  #stopSweep: (() => void) | undefined;

  constructor(hub: SessionOpener, clock: Clock, options: SessionExtras = {}) {
    this.#hub = hub;
    this.#clock = clock;
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /**
   * The same session while the caller returns within half an hour. It has the name of the program that came first; each call has
   * that of its own. A name chooses no session: it is only what the program says.
   */
  of(caller: Caller, request?: HttpRequest): Session {
    // A visit of the page with a token has a session apart from that token's programs.
    const key = `${caller.page === true ? "page " : ""}${identityOf(caller)}`;
    const known = this.#held.get(key);
    this.#held.delete(key);
    const session = known === undefined || known.session.closed ? this.#open(caller, request) : known.session;
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

  #open(caller: Caller, request: HttpRequest | undefined): Session {
    if (this.#held.size >= MAX_CALLER_SESSIONS) this.#endOne();
    const clientInfo = request && httpClientInfo(request, caller);
    const sharedKey = `rest ${identityOf(caller)}`;
    const session = openCallerSession(this.#hub, caller, "rest", this.#options, { sharedKey, clientInfo });
    if (request !== undefined) addPeer(session, request);
    return session;
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

const MAX_OPENED_PER_CALLER = 20;

interface OpenedSession {
  readonly caller: Caller;
  /** Ends with its socket, and not when it is idle. */
  readonly ofSocket: boolean;
  usedAt: number;
}

/** Sessions that callers opened besides their default one, mostly to have servers of their own. */
export class OpenedSessions {
  readonly #hub: SessionOpener;
  readonly #clock: Clock;
  readonly #extras: SessionExtras;
  readonly #held = new Map<Session, OpenedSession>();
  /** Those that joined an editor's session, by that session and the one of the door that asked. */
  readonly #joined = new Map<string, Session>();
  #stopSweep: (() => void) | undefined;

  constructor(hub: SessionOpener, clock: Clock, extras: SessionExtras = {}) {
    this.#hub = hub;
    this.#clock = clock;
    this.#extras = extras;
  }

  get size(): number {
    return this.#held.size;
  }

  /** @param by The session of the door that asks: a session that a socket opened ends with the socket. */
  open(caller: Caller, by: Session, options: CallerSessionOptions): Session {
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

  /** The caller's session within that of an editor. */
  join(caller: Caller, by: Session, joining: Joining): Session {
    const key = `${joining.within.id} ${by.id}`;
    const known = this.#joined.get(key);
    if (known !== undefined) return known;
    const session = this.open(caller, by, { ...joining, clientInfo: by.clientInfo });
    this.#joined.set(key, session);
    const end = (): void => session.close();
    by.closing.addEventListener("abort", end, { once: true });
    session.closing.addEventListener("abort", () => {
      by.closing.removeEventListener("abort", end);
      this.#joined.delete(key);
    });
    return session;
  }

  /** A request named it, so it is not idle. */
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
    if (own.length < MAX_OPENED_PER_CALLER) return;
    throw new ToolcribError("rate_limited", `${MAX_OPENED_PER_CALLER} sessions of this caller are open.`, {
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
