/** A server that runs at this node: the real connection, and how it gives way to a successor or ends. */
import { Emitter } from "../../base/emitter.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ServerState } from "../../model/server-state.ts";
import type { SessionContext, Use, UseContext } from "../../model/source.ts";
import type { ConnectionDeps, ConnectionEvents } from "../connection-deps.ts";
import { serverConnection, type ServerConnection } from "../server-connection.ts";
import { specDigest } from "./replica.ts";
import { endsWithin, InFlight } from "../../base/async.ts";

export interface LocalServerEvents extends Omit<ConnectionEvents, "state"> {
  state: ServerState;
  /** Another connection has taken over: it knows no sessions. */
  replaced: undefined;
}

let lastNumber = 0;

export class LocalServer {
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<LocalServerEvents>();
  /** Another one for each connection. */
  #number = ++lastNumber;
  #connection: ServerConnection;
  #successor: ServerConnection | undefined;
  /** They finish their calls, and end. */
  readonly #retiring = new Set<ServerConnection>();
  /** Subscribed URIs by session. */
  readonly #followed = new Map<string, Set<string>>();
  #state: ServerState = { kind: "idle" };
  #stopListening: () => void;
  readonly #calls = new InFlight();
  #lastUse: number;
  #wasUsed = false;
  #killed = false;

  constructor(spec: ServerSpec, deps: ConnectionDeps) {
    // Asked when a process is ended: one that may run elsewhere by now gets no time to say good-bye.
    this.#deps = { ...deps, closeGraceMs: () => (this.#killed ? 0 : undefined) };
    this.#lastUse = deps.clock.now();
    this.#connection = serverConnection(alwaysRunning(spec), this.#deps);
    this.#stopListening = this.#listenTo(this.#connection);
  }

  on<Name extends keyof LocalServerEvents>(name: Name, listener: (event: LocalServerEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  get number(): number {
    return this.#number;
  }

  get connection(): ServerConnection {
    return this.#connection;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** Of the spec that its program was started with. */
  get digest(): string {
    return specDigest(this.#connection.spec);
  }

  /** Nothing was ever run on it, so that it has nothing in memory to lose. */
  get isUntouched(): boolean {
    return !this.#wasUsed;
  }

  /** It has no subscriptions and no isolated connections, and nothing ran for this long. */
  isUnusedFor(ms: number): boolean {
    const { users, sessions } = this.#connection.info();
    const isKept = this.#followed.size > 0 || ((users ?? sessions)?.connections ?? 0) > 0;
    return !isKept && this.#calls.count === 0 && this.#deps.clock.now() - this.#lastUse >= ms;
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    this.#wasUsed = true;
    this.#calls.start();
    try {
      const result = await this.#connection.run(use, context);
      const { id } = context.session;
      if (use.kind === "subscribe") this.#follow(id, [use.uri]);
      if (use.kind === "unsubscribe") this.#unfollow(id, use.uri);
      return result;
    } finally {
      this.#lastUse = this.#deps.clock.now();
      this.#calls.end();
    }
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#follow(session.id, uris);
    this.#connection.resume(session, uris);
  }

  endSession(sessionId: string): void {
    this.#followed.delete(sessionId);
    for (const each of [this.#connection, ...this.#retiring]) each.endSession(sessionId);
  }

  /** Resolves when nothing runs, or after this time. */
  async drained(limitMs: number): Promise<void> {
    await endsWithin(this.#calls.whenIdle(), { ms: limitMs, clock: this.#deps.clock });
  }

  /** The old program serves until the new one is ready or has failed, and finishes its calls. */
  async respec(spec: ServerSpec): Promise<void> {
    const overtaken = this.#successor;
    this.#successor = undefined;
    if (overtaken !== undefined) this.#leave(overtaken, overtaken.close());
    if (this.#killed || this.#connection.respec(alwaysRunning(spec))) return;
    const successor = serverConnection(alwaysRunning(spec), this.#deps);
    this.#successor = successor;
    await successor.connect();
    if (this.#successor !== successor) return;
    this.#successor = undefined;
    const old = this.#connection;
    this.#stopListening();
    this.#connection = successor;
    this.#number = ++lastNumber;
    this.#stopListening = this.#listenTo(successor);
    this.#setState(stateOf(successor));
    this.#events.emit("replaced", undefined);
    this.#events.emit("changed", undefined);
    this.#leave(old, old.retire());
  }

  async close(): Promise<void> {
    const successor = this.#successor;
    this.#successor = undefined;
    const all = [this.#connection, ...(successor === undefined ? [] : [successor]), ...this.#retiring];
    await Promise.all(all.map((each) => each.close()));
    this.#stopListening();
  }

  /** Nothing of it may run any more: its calls are cut off, its processes killed. */
  async kill(): Promise<void> {
    this.#killed = true;
    await this.close();
  }

  #leave(connection: ServerConnection, over: Promise<void>): void {
    this.#retiring.add(connection);
    void over.finally(() => this.#retiring.delete(connection));
  }

  #follow(session: string, uris: readonly string[]): void {
    if (uris.length > 0) this.#followed.set(session, new Set([...(this.#followed.get(session) ?? []), ...uris]));
  }

  #unfollow(session: string, uri: string): void {
    const uris = this.#followed.get(session);
    uris?.delete(uri);
    if (uris?.size === 0) this.#followed.delete(session);
  }

  #listenTo(connection: ServerConnection): () => void {
    const events = this.#events;
    return connection.listen({
      state: ({ state }) => this.#setState(state),
      changed: () => events.emit("changed", undefined),
      log: (event) => events.emit("log", event),
      notice: (event) => events.emit("notice", event),
      warning: (event) => events.emit("warning", event),
      "resource-updated": (event) => events.emit("resource-updated", event),
    });
  }

  #setState(state: ServerState): void {
    this.#state = state;
    this.#events.emit("state", state);
  }
}

/** The state of a connection that had no listener so far. */
function stateOf(connection: ServerConnection): ServerState {
  const { state, connectedAt, lastError, hint, problem, attempts } = connection.info();
  const reason = lastError ?? "it did not become ready";
  const why = { reason, hint, problem };
  switch (state) {
    case "ready":
      return { kind: state, since: Date.parse(connectedAt ?? "") };
    case "degraded":
      return { kind: state, since: Date.parse(connectedAt ?? ""), missedPings: 1, reason };
    case "failed":
      return { kind: state, ...why, attempts };
    case "restarting": {
      const { attempt = 1, nextAt = "", delayMs = 0 } = connection.info().restart ?? {};
      return { kind: state, attempt, nextAt: Date.parse(nextAt), delayMs, ...why };
    }
    default:
      return { kind: state };
  }
}

/** The cluster says when a program runs. A config that says otherwise is refused; the store may still have such an entry. */
function alwaysRunning({ start: _start, hubStart: _hubStart, idle: _idle, ...spec }: ServerSpec): ServerSpec {
  return spec;
}
