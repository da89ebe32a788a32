/**
 * IsolatedConnections: a server with `isolation: "user"` or `"session"`. Every user, or every session, has a Connection of its
 * own, and a call runs only on that of its session.
 */
import type { Clock } from "../base/clock.ts";
import { Emitter, type Listeners } from "../base/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Result } from "../model/protocol.ts";
import { isLazy, type ServerSpec } from "../model/server-spec.ts";
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
import { asleep, countedTools, isSameLink } from "./connection-state.ts";
import { Connection } from "./connection.ts";
import type { ListMemory } from "./known-lists.ts";
import { notSent } from "./wire.ts";

export class IsolatedConnections implements Source {
  readonly kind = "server";
  readonly id: string;
  #spec: ServerSpec;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #isolation: Isolation;
  readonly #memory: ListMemory | undefined;
  /** Of the user who runs the hub; only the hub's own session uses it. */
  readonly #own: Connection;
  readonly #isolated = new Map<string, IsolatedConnection>();
  /** Only with `isolation: "user"`. */
  readonly connectUser?: (user: string) => Promise<ServerInfo>;
  readonly #closing = new Set<Promise<void>>();
  #shown: Connection | undefined;
  #definitions: Definitions = NO_DEFINITIONS;
  #state: ServerState;
  /** For connections that are made later. */
  #logLevel: string | undefined;
  #retiring: Promise<void> | undefined;

  constructor(spec: ServerSpec, deps: ConnectionDeps, memory?: ListMemory) {
    this.id = spec.id;
    this.#spec = spec;
    this.#deps = deps;
    this.#memory = memory;
    this.#isolation = spec.isolation === "session" ? SESSION_ISOLATION : USER_ISOLATION;
    this.#own = this.#listenTo(new Connection(spec, deps, memory), this.#isolation.ownAudience(deps.hubSession));
    this.#state = this.#own.state;
    this.#definitions = this.#own.definitions();
    if (this.#isolation === USER_ISOLATION) this.connectUser = (user) => this.#connectUser(user);
  }

  get spec(): ServerSpec {
    return this.#spec;
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  listen(listeners: Listeners<ConnectionEvents>): () => void {
    return this.#events.listen(listeners);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("changed", listener);
  }

  /**
   * One list for all: that of the hub owner's connection if it is up, else of the first other one that is. The last one
   * stays while none is connected, because a connection is made by calling something that is listed.
   */
  definitions(): Definitions {
    return this.#definitions;
  }

  info(): ServerInfo {
    const isolated = [...this.#isolated.values()];
    const taken = {
      connections: isolated.length,
      connected: isolated.filter(({ connection }) => isUp(connection)).length,
    };
    // A user's login is not shown to all who may see the server.
    const { auth: _auth, ...info } = (this.#up() ?? this.#own).info();
    const ownAuth = this.#own.info().auth;
    return {
      ...info,
      toolCount: countedTools(info.state, this.#definitions.tools.length, info.lastError),
      sleeping: asleep(this.#state, this.#definitions),
      ...(ownAuth === undefined ? {} : { auth: ownAuth }),
      ...(this.#isolation.by === "user" ? { users: taken } : { sessions: taken }),
    };
  }

  /** Connects the hub owner's own; the others are connected when they are first used. */
  async connect(): Promise<void> {
    await this.#own.connect();
  }

  async disconnect(): Promise<void> {
    this.#closeAll();
    await Promise.all([this.#own.disconnect(), ...this.#closing]);
    if (!isLazy(this.#spec)) this.#forget();
  }

  async close(): Promise<void> {
    this.#closeAll();
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

  /** The instructions for this user or session; without a connection of its own, those for the hub's owner. */
  instructions(user?: string, session?: string): string | null {
    const key = this.#isolation.by === "user" ? user : session;
    const isolated = key === undefined ? undefined : this.#isolated.get(key);
    return isolated?.connection.instructions() ?? (this.#knowsPrivate ? null : this.#own.instructions());
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { session, signal } = context;
    if (this.#retiring !== undefined) throw removedError(this.id);
    if (this.#isOwn(session)) return this.#own.run(use, context);
    const owner = this.#isolation.ownerOf(session);
    if (owner === undefined) throw this.#isolation.refusal(this.id);
    // The session may have ended in the meantime: a connection that is made for it now would never be closed.
    if (signal.aborted) throw notSent("cancelled", "The call was cancelled.");
    return this.#connectionOf(owner).run(use, context);
  }

  /** Where nothing is listed yet there is nothing to call: the first connection then brings the list. */
  startSession(session: SessionContext): void {
    const owner = this.#isolation.ownerOf(session);
    if (owner === undefined || this.#isOwn(session)) return;
    const isNeeded = this.#definitions === NO_DEFINITIONS && this.#spec.enabled && this.#spec.autoConnect;
    const isFree = this.#isolated.has(owner.key) || this.#hasRoom();
    const isolated = isNeeded && isFree ? this.#connectionOf(owner) : this.#isolated.get(owner.key);
    isolated?.join(session.id);
    if (isNeeded) void isolated?.connection.connect();
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    if (this.#isOwn(session)) return this.#own.resume(session, uris);
    const owner = this.#isolation.ownerOf(session);
    if (owner === undefined || this.#state.kind === "closed") return;
    if (this.#isolated.has(owner.key) || this.#hasRoom()) this.#connectionOf(owner).resume(session, uris);
  }

  endSession(sessionId: string): void {
    this.#own.endSession(sessionId);
    for (const isolated of this.#isolated.values()) isolated.leave(sessionId);
  }

  /** Whether the owner's connection has nothing but what was once said to someone else. */
  get #knowsPrivate(): boolean {
    return this.#memory?.known?.isPrivate === true && this.#own.state.kind === "idle";
  }

  #all(): Connection[] {
    return [this.#own, ...[...this.#isolated.values()].map((isolated) => isolated.connection)];
  }

  async #connectUser(user: string): Promise<ServerInfo> {
    const { connection } = this.#connectionOf(userOwner(user));
    await connection.connect();
    return connection.info();
  }

  /** A user of the hub's own session is one like any other. */
  #isOwn({ id, user }: SessionContext): boolean {
    if (id !== this.#deps.hubSession.id) return false;
    return this.#isolation.by === "session" || user === undefined || user === "";
  }

  #hasRoom(): boolean {
    return this.#isolation.by === "user" || this.#isolated.size < (this.#deps.maxSessionConnections?.() ?? Infinity);
  }

  #connectionOf(owner: ConnectionOwner): IsolatedConnection {
    const { key, label, audience } = owner;
    const known = this.#isolated.get(key);
    if (known !== undefined) return known;
    if (this.#state.kind === "closed") {
      throw notSent("server_unavailable", `Server "${this.id}" is closed.`, undefined, { server: this.id });
    }
    if (!this.#hasRoom()) {
      throw new ToolcribError(
        "server_unavailable",
        `${this.#isolated.size} sessions have a connection of their own to server "${this.id}", and more are not allowed.`,
        {
          hint: "Wait until a session ends, or raise limits.sessionConnections.",
          details: { server: this.id, sent: false },
        },
      );
    }
    const level = this.#logLevel === undefined ? {} : { logLevel: this.#logLevel };
    const connection = new Connection(this.#spec, { ...this.#deps, ...level, ...owner.deps }, this.#privateMemory());
    const { terms } = this.#isolation;
    const isolated = new IsolatedConnection(this.#listenTo(connection, audience, label), terms, this.#deps.clock, () =>
      this.#leave(key, isolated),
    );
    this.#isolated.set(key, isolated);
    return isolated;
  }

  /** The lists of the owner's connection are for everyone; those of another one are kept only while it is not there. */
  #privateMemory(): ListMemory {
    return {
      known: undefined,
      save: (lists) => {
        if (!isUp(this.#own)) this.#memory?.save({ ...lists, isPrivate: true });
      },
    };
  }

  #leave(key: string, isolated: IsolatedConnection): void {
    if (this.#isolated.get(key) !== isolated) return;
    this.#isolated.delete(key);
    const closing = isolated.close().then(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#changed();
  }

  #closeAll(): void {
    for (const [key, isolated] of [...this.#isolated]) this.#leave(key, isolated);
  }

  /** The server is not meant to be used any more. */
  #forget(): void {
    this.#shown = undefined;
    if (this.#definitions === NO_DEFINITIONS) return;
    this.#definitions = NO_DEFINITIONS;
    this.#events.emit("changed", undefined);
  }

  #listenTo(connection: Connection, audience: Audience, label?: string): Connection {
    connection.listen({
      state: () => this.#changed(),
      changed: () => this.#show(),
      log: (event) => this.#events.emit("log", { ...event, ...audience }),
      notice: (event) => this.#events.emit("notice", { ...event, ...audience }),
      "resource-updated": (event) => this.#events.emit("resource-updated", { ...event, ...audience }),
      warning: (text) => this.#events.emit("warning", label === undefined ? text : `for ${label}: ${text}`),
    });
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
    const connections = [...this.#isolated.values()].map((isolated) => isolated.connection).filter(isUp);
    // Whose list is shown stays the same as long as it can, so that it does not flicker.
    return connections.find((connection) => connection === this.#shown) ?? connections[0];
  }
}

function isUp({ state }: Connection): boolean {
  return state.kind === "ready" || state.kind === "degraded";
}

/** Who may receive what comes over a connection. */
type Audience = { readonly user: string | null } | { readonly session: string };

interface ConnectionOwner {
  /** Sessions with the same key share the connection. */
  readonly key: string;
  /** For warnings. */
  readonly label: string;
  readonly audience: Audience;
  /** Replaces dependencies that are shared otherwise. */
  readonly deps: Partial<ConnectionDeps>;
}

interface Isolation {
  readonly by: "user" | "session";
  readonly terms: IdleTerms;
  /** Of what comes over the connection of the hub's own session. */
  ownAudience(hubSession: SessionContext): Audience;
  /** Undefined for a session that cannot have a connection. */
  ownerOf(session: SessionContext): ConnectionOwner | undefined;
  /** Why such a session cannot use the server. */
  refusal(server: string): ToolcribError;
}

/** A user's next session often follows the last one at once. */
const USER_TERMS: IdleTerms = { idleMs: 30 * 60_000, graceMs: 60_000 };
const SESSION_TERMS: IdleTerms = { idleMs: undefined, graceMs: 0 };

const USER_ISOLATION: Isolation = {
  by: "user",
  terms: USER_TERMS,
  ownAudience: () => ({ user: null }),
  ownerOf: ({ user }) => (user === undefined || user === "" ? undefined : userOwner(user)),
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
  ownAudience: ({ id }) => ({ session: id }),
  ownerOf: (session) => ({
    key: session.id,
    label: "a session",
    audience: { session: session.id },
    // There is one client only that the server can mean, whether a call is in flight or not.
    deps: {
      ...{ hubSession: session, session: session.id, clientEnv: session.clientEnv },
      ...(session.user ? { secretsUser: session.user } : {}),
    },
  }),
  refusal: (server) =>
    new ToolcribError("internal", `Server ${JSON.stringify(server)} has no connection for the session.`),
};

function userOwner(user: string): ConnectionOwner {
  // A question that a server asks on a user's connection is not for the hub owner's session.
  const id = `user:${user}`;
  const hubSession: SessionContext = { id, door: "hub", owner: false, user, client: { key: id, capabilities: {} } };
  return { key: user, label: `the user ${user}`, audience: { user }, deps: { hubSession, user } };
}

interface IdleTerms {
  /** It ends after this long without a call; undefined: it is kept, because it has the state of its session. */
  readonly idleMs: number | undefined;
  /** How long it waits for another session after the last one; 0: it ends with it, also with calls in progress. */
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

  /** @param onUnused Called once the connection is not needed any more; close it then. */
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
