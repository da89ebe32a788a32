/**
 * SeatedConnections: a server with `isolation: "user"` or `"session"`. Every user, or every session, has a Connection of its
 * own, and a call runs on that of its session or not at all.
 */
import type { Clock } from "../base/clock.ts";
import { Emitter } from "../base/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Result } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import {
  type Definitions,
  NO_DEFINITIONS,
  type SessionContext,
  type Source,
  type Use,
  type UseContext,
} from "../model/source.ts";
import type { ConnectionDeps, ConnectionEvents } from "./connection-deps.ts";
import { removedError } from "./connection-failures.ts";
import { isSameLink } from "./connection-state.ts";
import { Connection } from "./connection.ts";

export class IsolatedConnections implements Source {
  readonly kind = "server";
  readonly id: string;
  #spec: ServerSpec;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #seating: Isolation;
  /** Of the user who runs the hub; only the hub's own session uses it. */
  readonly #own: Connection;
  readonly #seats = new Map<string, IsolatedConnection>();
  /** Only where each user has a seat. */
  readonly connectUser?: (user: string) => Promise<ServerInfo>;
  readonly #closing = new Set<Promise<void>>();
  #shown: Connection | undefined;
  #definitions: Definitions = NO_DEFINITIONS;
  #state: ServerState;
  /** For connections that are made later. */
  #logLevel: string | undefined;
  #retiring: Promise<void> | undefined;

  constructor(spec: ServerSpec, deps: ConnectionDeps) {
    this.id = spec.id;
    this.#spec = spec;
    this.#deps = deps;
    this.#seating = spec.isolation === "session" ? SESSION_ISOLATION : USER_ISOLATION;
    this.#own = this.#listened(new Connection(spec, deps), this.#seating.ownMark(deps.hubSession));
    this.#state = this.#own.state;
    if (this.#seating === USER_ISOLATION) this.connectUser = (user) => this.#connectUser(user);
  }

  get spec(): ServerSpec {
    return this.#spec;
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("changed", listener);
  }

  /**
   * One list for all: that of the hub owner's own connection if it is up, else of the first seat's that is. The last one
   * stays while nobody is connected, because one connects by calling something that is listed.
   */
  definitions(): Definitions {
    return this.#definitions;
  }

  info(): ServerInfo {
    const seats = [...this.#seats.values()];
    const taken = { connections: seats.length, connected: seats.filter(({ connection }) => isUp(connection)).length };
    // A user's login is not shown to everybody who may see the server.
    const { auth: _auth, ...info } = (this.#up() ?? this.#own).info();
    const ownAuth = this.#own.info().auth;
    return {
      ...info,
      toolCount: this.#definitions.tools.length,
      ...(ownAuth === undefined ? {} : { auth: ownAuth }),
      ...(this.#seating.by === "user" ? { users: taken } : { sessions: taken }),
    };
  }

  /** Connects the hub owner's own; the others are connected when they are first used. */
  async connect(): Promise<void> {
    await this.#own.connect();
  }

  async disconnect(): Promise<void> {
    this.#empty();
    await Promise.all([this.#own.disconnect(), ...this.#closing]);
    this.#forget();
  }

  async close(): Promise<void> {
    this.#empty();
    await Promise.all([this.#own.close(), ...this.#closing]);
    this.#forget();
  }

  retire(): Promise<void> {
    this.#retiring ??= Promise.all(this.#all().map((each) => each.retire())).then(() => this.close());
    return this.#retiring;
  }

  respec(spec: ServerSpec): boolean {
    if (!isSameLink(this.#spec, spec)) return false;
    this.#spec = spec;
    for (const connection of this.#all()) connection.respec(spec);
    return true;
  }

  async refresh(): Promise<void> {
    await Promise.all(this.#all().map((each) => each.refresh()));
  }

  async setLogLevel(level: string): Promise<void> {
    this.#logLevel = level;
    await Promise.all(this.#all().map((each) => each.setLogLevel(level)));
  }

  async rootsChanged(): Promise<void> {
    await Promise.all(this.#all().map((each) => each.rootsChanged()));
  }

  listedInstructions(): string | null {
    return (this.#up() ?? this.#own).instructions();
  }

  /** What the server tells whoever has the seat; while there is none, what it tells the hub's owner. */
  instructions(user?: string, session?: string): string | null {
    const key = this.#seating.by === "user" ? user : session;
    const seat = key === undefined ? undefined : this.#seats.get(key);
    return seat?.connection.instructions() ?? this.#own.instructions();
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { session, signal } = context;
    if (this.#retiring !== undefined) throw removedError(this.id);
    if (this.#isOwn(session)) return this.#own.run(use, context);
    const holder = this.#seating.holderOf(session);
    if (holder === undefined) throw this.#seating.refusal(this.id);
    // The session may have ended in the meantime: nobody would end a seat that is taken for it now.
    if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled.", { details: { sent: false } });
    return this.#seat(holder).run(use, context);
  }

  /** Where nothing is listed yet there is nothing to call: the first connection then brings the list. */
  startSession(session: SessionContext): void {
    const holder = this.#seating.holderOf(session);
    if (holder === undefined || this.#isOwn(session)) return;
    const isNeeded = this.#definitions === NO_DEFINITIONS && this.#spec.enabled && this.#spec.autoConnect;
    const isFree = this.#seats.has(holder.key) || this.#hasRoom();
    const seat = isNeeded && isFree ? this.#seat(holder) : this.#seats.get(holder.key);
    seat?.join(session.id);
    if (isNeeded) void seat?.connection.connect();
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    if (this.#isOwn(session)) return this.#own.resume(session, uris);
    const holder = this.#seating.holderOf(session);
    if (holder === undefined || this.#state.kind === "closed") return;
    if (this.#seats.has(holder.key) || this.#hasRoom()) this.#seat(holder).resume(session, uris);
  }

  endSession(sessionId: string): void {
    this.#own.endSession(sessionId);
    for (const seat of this.#seats.values()) seat.leave(sessionId);
  }

  #all(): Connection[] {
    return [this.#own, ...[...this.#seats.values()].map((seat) => seat.connection)];
  }

  async #connectUser(user: string): Promise<ServerInfo> {
    const { connection } = this.#seat(userOwner(user));
    await connection.connect();
    return connection.info();
  }

  /** A user of the hub's own session is one like any other. */
  #isOwn({ id, user }: SessionContext): boolean {
    if (id !== this.#deps.hubSession.id) return false;
    return this.#seating.by === "session" || user === undefined || user === "";
  }

  #hasRoom(): boolean {
    return this.#seating.by === "user" || this.#seats.size < (this.#deps.maxSessionConnections?.() ?? Infinity);
  }

  #seat(holder: ConnectionOwner): IsolatedConnection {
    const { key, called, mark } = holder;
    const known = this.#seats.get(key);
    if (known !== undefined) return known;
    if (this.#state.kind === "closed") {
      const details = { server: this.id, sent: false };
      throw new ToolcribError("server_unavailable", `Server "${this.id}" is closed.`, { details });
    }
    if (!this.#hasRoom()) {
      throw new ToolcribError(
        "server_unavailable",
        `${this.#seats.size} sessions have a connection of their own to server "${this.id}", and more are not allowed.`,
        {
          hint: "Wait until a session ends, or raise limits.sessionConnections.",
          details: { server: this.id, sent: false },
        },
      );
    }
    const level = this.#logLevel === undefined ? {} : { logLevel: this.#logLevel };
    const connection = new Connection(this.#spec, { ...this.#deps, ...level, ...holder.deps });
    const { terms } = this.#seating;
    const seat = new IsolatedConnection(this.#listened(connection, mark, called), terms, this.#deps.clock, () =>
      this.#leave(key, seat),
    );
    this.#seats.set(key, seat);
    return seat;
  }

  #leave(key: string, seat: IsolatedConnection): void {
    if (this.#seats.get(key) !== seat) return;
    this.#seats.delete(key);
    const closing = seat.close().then(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#changed();
  }

  #empty(): void {
    for (const [key, seat] of [...this.#seats]) this.#leave(key, seat);
  }

  /** Nobody is meant to use the server any more. */
  #forget(): void {
    this.#shown = undefined;
    if (this.#definitions === NO_DEFINITIONS) return;
    this.#definitions = NO_DEFINITIONS;
    this.#events.emit("changed", undefined);
  }

  #listened(connection: Connection, mark: Audience, called?: string): Connection {
    connection.on("state", () => this.#changed());
    connection.on("changed", () => this.#show());
    connection.on("log", (event) => this.#events.emit("log", { ...event, ...mark }));
    connection.on("notice", (event) => this.#events.emit("notice", { ...event, ...mark }));
    connection.on("resource-updated", (event) => this.#events.emit("resource-updated", { ...event, ...mark }));
    connection.on("warning", (text) =>
      this.#events.emit("warning", called === undefined ? text : `for ${called}: ${text}`),
    );
    return connection;
  }

  #changed(): void {
    const previous = this.#state;
    this.#state = (this.#up() ?? this.#own).state;
    this.#show();
    this.#events.emit("state", { previous, state: this.#state });
  }

  #show(): void {
    const up = this.#up();
    if (up === undefined) return;
    this.#shown = up;
    const definitions = up.definitions();
    if (definitions === this.#definitions) return;
    this.#definitions = definitions;
    this.#events.emit("changed", undefined);
  }

  #up(): Connection | undefined {
    if (isUp(this.#own)) return this.#own;
    const connections = [...this.#seats.values()].map((seat) => seat.connection).filter(isUp);
    // Whose list is shown stays the same as long as it can, so that it does not flicker.
    return connections.find((connection) => connection === this.#shown) ?? connections[0];
  }
}

function isUp({ state }: Connection): boolean {
  return state.kind === "ready" || state.kind === "degraded";
}

/** Marks what comes over a connection, so that nobody hears what is meant for others. */
type Audience = { readonly user: string | null } | { readonly session: string };

interface ConnectionOwner {
  /** Sessions with the same key share the seat. */
  readonly key: string;
  /** For warnings. */
  readonly called: string;
  readonly mark: Audience;
  /** What its connection has in the place of what all have. */
  readonly deps: Partial<ConnectionDeps>;
}

interface Isolation {
  readonly by: "user" | "session";
  readonly terms: IdleTerms;
  /** Of what comes over the connection of the hub's own session. */
  ownMark(hubSession: SessionContext): Audience;
  /** Undefined for a session that has no seat. */
  holderOf(session: SessionContext): ConnectionOwner | undefined;
  /** Why a session without a seat cannot use the server. */
  refusal(server: string): ToolcribError;
}

/** A user's next session often follows the last one at once. */
const USER_TERMS: IdleTerms = { idleMs: 30 * 60_000, graceMs: 60_000 };
const SESSION_TERMS: IdleTerms = { idleMs: undefined, graceMs: 0 };

const USER_ISOLATION: Isolation = {
  by: "user",
  terms: USER_TERMS,
  ownMark: () => ({ user: null }),
  holderOf: ({ user }) => (user === undefined || user === "" ? undefined : userOwner(user)),
  refusal: (server) =>
    new ToolcribError(
      "unauthorized",
      `Server ${JSON.stringify(server)} is used with each user's own account, and this session has no user.`,
      { hint: "Open the session with `user`.", details: { server, sent: false } },
    ),
};

const SESSION_ISOLATION: Isolation = {
  by: "session",
  terms: SESSION_TERMS,
  ownMark: ({ id }) => ({ session: id }),
  holderOf: (session) => ({
    key: session.id,
    called: "a session",
    mark: { session: session.id },
    // There is one client only that the server can mean, whether a call is in flight or not.
    deps: { hubSession: session, session: session.id, ...(session.user ? { secretsUser: session.user } : {}) },
  }),
  refusal: (server) => new ToolcribError("internal", `Server ${JSON.stringify(server)} has no seat for the session.`),
};

/** Who has a connection of their own: each user (`isolation: "user"`), or each session (`"session"`). */
function userOwner(user: string): ConnectionOwner {
  // What a server asks on its own while a user's connection is up is no business of the hub owner's session.
  const id = `user:${user}`;
  const hubSession: SessionContext = { id, door: "hub", owner: false, user, client: { key: id, capabilities: {} } };
  return { key: user, called: `the user ${user}`, mark: { user }, deps: { hubSession, user } };
}

interface IdleTerms {
  /** It ends when nothing was called for so long; undefined: it is kept, because it holds what its session has done. */
  readonly idleMs: number | undefined;
  /** How long it waits for another session after the last one; 0: it ends with it, whatever is under way. */
  readonly graceMs: number;
}

/** A connection that belongs to one user or to one session, and when it is no longer worth keeping. */
class IsolatedConnection {
  readonly connection: Connection;
  readonly #clock: Clock;
  readonly #terms: IdleTerms;
  readonly #onUnused: () => void;
  readonly #sessions = new Set<string>();
  /** Session and URI of each subscription: who waits for news is not idle. */
  readonly #subscribed = new Set<string>();
  #running = 0;
  #closed = false;
  #stopTimer: () => void = () => {};

  /** @param onUnused Called once nobody needs the connection; it is then to be closed. */
  constructor(connection: Connection, terms: IdleTerms, clock: Clock, onUnused: () => void) {
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
