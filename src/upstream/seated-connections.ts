/**
 * SeatedConnections: a server with `isolation: "user"` or `"session"`. Every user, or every session, has a Connection of its
 * own, and a call runs on that of its session or not at all.
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
import { Seat } from "./seat.ts";
import { bySession, byUser, type Holder, type Mark, type Seating, userHolder } from "./seating.ts";

export class SeatedConnections implements Source {
  readonly kind = "server";
  readonly id: string;
  #spec: ServerSpec;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #seating: Seating;
  /** Of the user who runs the hub; only the hub's own session uses it. */
  readonly #own: Connection;
  readonly #seats = new Map<string, Seat>();
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
    this.#seating = spec.isolation === "session" ? bySession : byUser;
    this.#own = this.#listened(new Connection(spec, deps), this.#seating.ownMark(deps.hubSession));
    this.#state = this.#own.state;
    if (this.#seating === byUser) this.connectUser = (user) => this.#connectUser(user);
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

  shownInstructions(): string | null {
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
    if (this.#retiring !== undefined) throw removed(this.id);
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
    const { connection } = this.#seat(userHolder(user));
    await connection.connect();
    return connection.info();
  }

  /** A user of the hub's own session is one like any other. */
  #isOwn({ id, user }: SessionContext): boolean {
    if (id !== this.#deps.hubSession.id) return false;
    return this.#seating.by === "session" || user === undefined || user === "";
  }

  #hasRoom(): boolean {
    return this.#seating.by === "user" || this.#seats.size < (this.#deps.mostSeats?.() ?? Infinity);
  }

  #seat(holder: Holder): Seat {
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
    const seat = new Seat(this.#listened(connection, mark, called), terms, this.#deps.clock, () =>
      this.#leave(key, seat),
    );
    this.#seats.set(key, seat);
    return seat;
  }

  #leave(key: string, seat: Seat): void {
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

  #listened(connection: Connection, mark: Mark, called?: string): Connection {
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
