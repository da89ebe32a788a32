/**
 * UserConnections: a server with `isolation: "user"`. Every user has a Connection of their own, with their own tokens and
 * `secret://user/…` values, and a call runs on the connection of the session's user or not at all.
 */
import { Emitter } from "../model/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Result } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import type { SessionContext } from "../model/session.ts";
import { type Definitions, NO_DEFINITIONS, type Source, type Use, type UseContext } from "../model/source.ts";
import { removed } from "./call-failure.ts";
import { Connection } from "./connection.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { ConnectionEvents } from "./connection-events.ts";
import { sameLink } from "./same-link.ts";
import { UserSeat } from "./user-seat.ts";

export class UserConnections implements Source {
  readonly kind = "server";
  readonly id: string;
  #spec: ServerSpec;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  /** Of the user who runs the hub; only the hub's own session uses it. */
  readonly #own: Connection;
  readonly #seats = new Map<string, UserSeat>();
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
    this.#own = this.#listened(new Connection(spec, deps));
    this.#state = this.#own.state;
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
   * One list for all users: that of the hub owner's own connection if it is up, else of the first user's that is. The last
   * one stays while nobody is connected, because a user connects by calling something that is listed.
   */
  definitions(): Definitions {
    return this.#definitions;
  }

  info(): ServerInfo {
    const seats = [...this.#seats.values()];
    const users = { connections: seats.length, connected: seats.filter(({ connection }) => isUp(connection)).length };
    // A user's login is not shown to everybody who may see the server.
    const { auth: _auth, ...info } = (this.#up() ?? this.#own).info();
    const ownAuth = this.#own.info().auth;
    return {
      ...info,
      toolCount: this.#definitions.tools.length,
      ...(ownAuth === undefined ? {} : { auth: ownAuth }),
      users,
    };
  }

  /** Connects the hub owner's own; users' are connected when they are first used. */
  async connect(): Promise<void> {
    await this.#own.connect();
  }

  async connectUser(user: string): Promise<ServerInfo> {
    const { connection } = this.#seat(user);
    await connection.connect();
    return connection.info();
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
    if (!sameLink(this.#spec, spec)) return false;
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

  /** What the server tells this user; while the user has no connection, what it tells the hub's owner. */
  instructions(user?: string): string | null {
    const seat = user === undefined ? undefined : this.#seats.get(user);
    return seat?.connection.instructions() ?? this.#own.instructions();
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { session } = context;
    if (this.#retiring !== undefined) throw removed(this.id);
    if (session.user === undefined || session.user === "") {
      if (session.id === this.#deps.hubSession.id) return this.#own.run(use, context);
      throw new ToolcribError(
        "unauthorized",
        `Server ${JSON.stringify(this.id)} is used with each user's own account, and this session has no user.`,
        { hint: "Open the session with `user`.", details: { server: this.id, sent: false } },
      );
    }
    return this.#seat(session.user).run(use, context);
  }

  /** Where nothing is listed yet there is nothing to call: the first user's connection then brings the list. */
  startSession(session: SessionContext): void {
    if (session.user === undefined || session.user === "") return;
    const isNeeded = this.#definitions === NO_DEFINITIONS && this.#spec.enabled && this.#spec.autoConnect;
    const seat = isNeeded ? this.#seat(session.user) : this.#seats.get(session.user);
    seat?.join(session.id);
    if (isNeeded) void seat?.connection.connect();
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    if (session.id === this.#deps.hubSession.id) return this.#own.resume(session, uris);
    if (session.user === undefined || session.user === "" || this.#state.kind === "closed") return;
    this.#seat(session.user).resume(session, uris);
  }

  endSession(sessionId: string): void {
    this.#own.endSession(sessionId);
    for (const seat of this.#seats.values()) seat.leave(sessionId);
  }

  #all(): Connection[] {
    return [this.#own, ...[...this.#seats.values()].map((seat) => seat.connection)];
  }

  #seat(user: string): UserSeat {
    const known = this.#seats.get(user);
    if (known !== undefined) return known;
    if (this.#state.kind === "closed") throw new ToolcribError("server_unavailable", `Server "${this.id}" is closed.`);
    // What a server asks on its own while a user's connection is up is no business of the hub owner's session.
    const id = `user:${user}`;
    const hubSession: SessionContext = { id, door: "hub", owner: false, user, client: { key: id, capabilities: {} } };
    const level = this.#logLevel === undefined ? {} : { logLevel: this.#logLevel };
    const deps: ConnectionDeps = { ...this.#deps, ...level, hubSession, user };
    const connection = this.#listened(new Connection(this.#spec, deps), user);
    const seat = new UserSeat(connection, this.#deps.clock, () => this.#leave(user, seat));
    this.#seats.set(user, seat);
    return seat;
  }

  #leave(user: string, seat: UserSeat): void {
    if (this.#seats.get(user) !== seat) return;
    this.#seats.delete(user);
    const closing = seat.close().then(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#changed();
  }

  #empty(): void {
    for (const [user, seat] of [...this.#seats]) this.#leave(user, seat);
  }

  /** Nobody is meant to use the server any more. */
  #forget(): void {
    this.#shown = undefined;
    if (this.#definitions === NO_DEFINITIONS) return;
    this.#definitions = NO_DEFINITIONS;
    this.#events.emit("changed", undefined);
  }

  #listened(connection: Connection, user?: string): Connection {
    const whose = { user: user ?? null };
    connection.on("state", () => this.#changed());
    connection.on("changed", () => this.#show());
    connection.on("log", (event) => this.#events.emit("log", { ...event, ...whose }));
    connection.on("notice", (event) => this.#events.emit("notice", { ...event, ...whose }));
    connection.on("resource-updated", (event) => this.#events.emit("resource-updated", { ...event, ...whose }));
    connection.on("warning", (text) =>
      this.#events.emit("warning", user === undefined ? text : `for the user ${user}: ${text}`),
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
