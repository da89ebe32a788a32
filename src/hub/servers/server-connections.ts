/** The servers of a hub over time: who serves under each id, who is about to take over, and who is on the way out. */
import type { Catalog } from "../../catalog/catalog.ts";
import { Emitter } from "../../base/emitter.ts";
import { isLazy, type ServerSpec } from "../../model/server-spec.ts";
import type { Session } from "../../sessions/session.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { ClusteredConnection } from "../../upstream/clustered/clustered-connection.ts";
import type { ClusteredServers } from "../../upstream/clustered/clustered-servers.ts";
import { type KnownLists, offersAnything } from "../../upstream/known-lists.ts";
import { serverConnection, type ServerConnection } from "../../upstream/server-connection.ts";
import type { HubSessions } from "../create/hub-sessions.ts";
import type { HubEvents } from "../hub-events.ts";

export interface ServerConnectionsOptions {
  readonly deps: ConnectionDeps;
  /** Of lazy servers. */
  readonly known: KnownLists;
  /** Of a node: where programs run is the cluster's to say. */
  readonly clustered: ClusteredServers | undefined;
  readonly catalog: Catalog;
  readonly events: Emitter<HubEvents>;
  readonly sessions: HubSessions;
}

interface ConnectionEvents {
  /** A server is connected, for the first time or again, also one that does not serve yet. */
  ready: ServerConnection;
  /** Another connection serves under an id now. */
  replaced: ServerConnection;
  /** Nothing serves under an id any more. */
  removed: ServerConnection;
}

interface Member {
  readonly connection: ServerConnection;
  readonly stopMessages: () => void;
  readonly stopState: () => void;
}

interface Successor {
  readonly connection: ServerConnection;
  readonly stopMessages: () => void;
}

export class ServerConnections extends Emitter<ConnectionEvents> {
  readonly #options: ServerConnectionsOptions;
  #serving = new Map<string, Member>();
  readonly #successors = new Map<string, Successor>();
  readonly #leaving = new Set<ServerConnection>();
  #closed = false;

  constructor(options: ServerConnectionsOptions) {
    super();
    this.#options = options;
    options.events.on("session", ({ session, open }) => {
      if (open) for (const connection of this.list()) connection.startSession?.(session);
      else for (const connection of this.all()) connection.endSession(session.id);
    });
  }

  get(id: string): ServerConnection | undefined {
    return this.#serving.get(id)?.connection;
  }

  /** Those that serve, in the config's order. */
  list(): ServerConnection[] {
    return [...this.#serving.values()].map(({ connection }) => connection);
  }

  /** Those that serve, are about to, or finish their last calls. */
  all(): ServerConnection[] {
    const successors = [...this.#successors.values()].map(({ connection }) => connection);
    return [...this.list(), ...successors, ...this.#leaving];
  }

  /** The specs that the config last asked for, by id; of a server that is being replaced the new one. */
  wanted(): Map<string, ServerSpec> {
    return new Map(this.list().map(({ id, spec }) => [id, this.#successors.get(id)?.connection.spec ?? spec] as const));
  }

  /** Call it before servers of another config are added or changed: lazy ones are listed from the first moment on. */
  prepare(specs: readonly ServerSpec[]): Promise<void> {
    return this.#options.known.prepare(specs);
  }

  /** Whether it waits for its first use. */
  waitsForUse(spec: ServerSpec): boolean {
    const { known, clustered } = this.#options;
    return isLazy(spec) && known.has(spec) && (clustered === undefined || spec.url !== undefined);
  }

  /** Its tools join the catalog when it is connected. */
  add(spec: ServerSpec): ServerConnection {
    const connection = this.#make(spec);
    this.#serve(connection, this.#listenTo(connection));
    this.#options.catalog.addSource(connection);
    return connection;
  }

  /** Its tools leave the catalog at once; calls in progress finish first. */
  remove(id: string): void {
    const member = this.#serving.get(id);
    if (member === undefined) return;
    this.#dismissSuccessor(id);
    this.#serving.delete(id);
    this.#options.catalog.removeSource(id);
    this.#options.known.forget(id);
    this.emit("removed", member.connection);
    this.#retire(member.connection, () => {
      member.stopState();
      member.stopMessages();
    });
  }

  /**
   * Another spec for a server. Where the link is not touched it applies at once. The returned function does what takes time:
   * otherwise a new connection takes over when it is ready or has failed, and until then the old one serves. It resolves
   * then, or when it was overtaken by a newer spec.
   */
  change(spec: ServerSpec, wantsConnection: boolean): () => Promise<void> {
    this.#dismissSuccessor(spec.id);
    const present = this.get(spec.id);
    if (present === undefined) return async () => {};
    const before = present.spec;
    if (!present.respec(spec)) return () => this.#replace(present, spec, wantsConnection);
    return async () => {
      // Only if that is what changed: a user who disconnected it by hand meant it.
      const waited = !before.autoConnect || (isLazy(before) && !isLazy(spec));
      if (wantsConnection && waited) await this.connect(present);
      if (present.settled === undefined) return;
      await present.settled();
      if (this.get(spec.id) === present) this.emit("replaced", present);
    };
  }

  /** @param ids All that serve, in the new order. */
  arrange(ids: readonly string[]): void {
    this.#serving = new Map(
      ids.flatMap((id) => {
        const member = this.#serving.get(id);
        return member === undefined ? [] : [[id, member] as const];
      }),
    );
  }

  /** Resolves when it is ready or has failed. Never rejects. */
  async connect(connection: ServerConnection): Promise<void> {
    await connectFor(connection, this.#options.sessions.all()).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    const all = this.all();
    this.#successors.clear();
    await Promise.all(all.map((connection) => connection.close()));
    await this.#options.known.settled();
    this.#options.clustered?.close();
  }

  #make(spec: ServerSpec): ServerConnection {
    const { deps, known, clustered } = this.#options;
    // What has an address is reached from every node.
    const runsAnywhere = clustered === undefined || spec.url !== undefined;
    return runsAnywhere
      ? serverConnection(spec, deps, known.memoryOf(spec))
      : new ClusteredConnection(spec, deps, clustered);
  }

  async #replace(present: ServerConnection, spec: ServerSpec, wantsConnection: boolean): Promise<void> {
    const connection = this.#make(spec);
    const successor: Successor = { connection, stopMessages: this.#listenTo(connection) };
    this.#successors.set(spec.id, successor);
    // A user may have connected by hand what does not connect by itself.
    const connects = spec.enabled && (wantsConnection || present.info().status === "connected");
    if (!connects || !offersAnything(present.definitions())) this.#succeed(spec.id, successor);
    if (connects) await this.connect(connection);
    if (this.#successors.get(spec.id) === successor) this.#succeed(spec.id, successor);
  }

  /** Its state and resource updates become the hub's own while it serves under its id. */
  #serve(connection: ServerConnection, stopMessages: () => void): void {
    const { catalog, events } = this.#options;
    const server = connection.id;
    const stopState = connection.listen({
      state: ({ previous }) => events.emit("server", { info: connection.info(), previous: previous.kind }),
      "resource-updated": ({ uri, ...event }) =>
        events.emit("resource-updated", { server, ...event, uri: catalog.publicUri(server, uri), originUri: uri }),
    });
    this.#serving.set(server, { connection, stopMessages, stopState });
  }

  /** Its messages become the hub's own, whether it serves already, no longer, or not yet. */
  #listenTo(connection: ServerConnection): () => void {
    const { events } = this.#options;
    const server = connection.id;
    return connection.listen({
      log: (event) => events.emit("log", { server, ...event }),
      notice: (event) => events.emit("notice", { server, ...event }),
      warning: (message) => events.emit("warning", { server, message }),
      state: ({ state }) => {
        if (state.kind === "ready") this.emit("ready", connection);
      },
    });
  }

  /** One step for every observer: the list changes where it differs, and there is no moment without the server. */
  #succeed(id: string, { connection, stopMessages }: Successor): void {
    const old = this.#serving.get(id);
    this.#successors.delete(id);
    if (old === undefined || this.#closed) return;
    const { catalog, events, sessions } = this.#options;
    old.stopState();
    this.#serve(connection, stopMessages);
    catalog.replaceSource(connection);
    this.emit("replaced", connection);
    for (const session of sessions.all()) connection.startSession?.(session);
    events.emit("server", { info: connection.info(), previous: old.connection.info().state });
    this.#retire(old.connection, old.stopMessages);
  }

  /** A connection that never served has no calls. */
  #dismissSuccessor(id: string): void {
    const successor = this.#successors.get(id);
    if (successor === undefined) return;
    this.#successors.delete(id);
    successor.stopMessages();
    this.#follow(successor.connection, successor.connection.close());
  }

  #retire(connection: ServerConnection, then: () => void): void {
    // A call that was located a moment ago has not reached the connection yet.
    const retired = new Promise<void>((resolve) => setImmediate(resolve)).then(() => connection.retire());
    this.#follow(connection, retired.finally(then));
  }

  #follow(connection: ServerConnection, over: Promise<void>): void {
    this.#leaving.add(connection);
    void over.catch(() => {}).finally(() => this.#leaving.delete(connection));
  }
}

/**
 * Connects a server. Where each user has a connection and the hub owner has none, the tools are listed only
 * once some user's is up: one is enough, the others' follow when they are used.
 */
async function connectFor(connection: ServerConnection, sessions: readonly Session[]): Promise<void> {
  await connection.connect();
  if (connection.connectUser === undefined || connection.info().status === "connected") return;
  const user = sessions.find((session) => session.user !== undefined)?.user;
  if (user !== undefined) await connection.connectUser(user);
}
