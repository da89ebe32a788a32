/** ReplicaHost: this node holds a slot of a server and runs it for all others. */
import type { Clock } from "../../base/clock.ts";
import { type CallReply, type Cluster, encodeError, type IncomingCall, type Lease } from "../../cluster/cluster.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { Definitions, SessionContext, Use, UseContext } from "../../model/source.ts";
import type { SkillOffer } from "../live-lists.ts";
import { endedSessions, RemoteSessions } from "./cluster-sessions.ts";
import {
  asCallNotStarted,
  CallNotStarted,
  type ForwardedSession,
  type ForwardedUse,
  readBody,
  remoteClient,
  type ReplicaDescription,
  serverMoving,
  writeBody,
} from "./forwarded-calls.ts";
import type { LocalServer } from "./local-server.ts";
import { type Replica, replicaAddress, type ReplicaFacts } from "./replica.ts";
import { pause } from "../../base/async.ts";

interface ReplicaHostOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Of the cluster. */
  readonly leaseMs: number;
  readonly token: string;
  readonly slot: number;
  readonly lease: Lease;
  readonly server: LocalServer;
  readonly hubSession: SessionContext;
  /** The lease is gone: nothing may be done in its name. */
  readonly onLost: () => void;
}

const NO_REPLY: CallReply = { head: { ok: true } };

export class ReplicaHost {
  readonly slot: number;
  readonly server: LocalServer;
  readonly #options: ReplicaHostOptions;
  readonly #sessions: RemoteSessions;
  readonly #stops: (() => void)[];
  #facts: ReplicaFacts;
  #telling = false;
  #moving = false;
  #over = false;
  #stopAsking = (): void => {};

  constructor(options: ReplicaHostOptions) {
    this.#options = options;
    const { cluster, token, slot, lease, server, hubSession } = options;
    this.slot = slot;
    this.server = server;
    this.#facts = { server: server.connection.id, digest: server.digest, generation: 0, revision: 0 };
    const { spec } = server.connection;
    this.#sessions = new RemoteSessions(spec.isolation === "user" ? hubSession.id : undefined);
    const lost = (): void => {
      if (!this.#over) options.onLost();
    };
    lease.lost.addEventListener("abort", lost, { once: true });
    this.#stops = [
      cluster.serve(replicaAddress(token, slot, lease.term), (call) => this.#answer(call)),
      cluster.on("gone", ({ node }) => this.#endSessionsOf(node)),
      server.on("state", () => this.#tell({})),
      server.on("changed", () => this.#tell({})),
      server.on("replaced", () => this.#tell({ generation: this.#facts.generation + 1, digest: server.digest })),
      () => lease.lost.removeEventListener("abort", lost),
    ];
    if (lease.lost.aborted) queueMicrotask(lost);
    else this.#tell({});
    this.#askLater();
  }

  get term(): number {
    return this.#options.lease.term;
  }

  get generation(): number {
    return this.#facts.generation;
  }

  /** Whether it may run anything now. */
  get isOpen(): boolean {
    return !this.#moving && !this.#over && this.#options.lease.holds;
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    if (!this.isOpen) throw serverMoving(this.server.connection.id);
    return this.server.run(use, context).catch((error: unknown) => {
      // Where the server was ended under a call that had not reached it, the next holder may have it.
      const isNotBegun = !this.isOpen && asCallNotStarted(error) instanceof CallNotStarted;
      throw isNotBegun ? serverMoving(this.server.connection.id) : error;
    });
  }

  /** Takes nothing new, lets what runs finish, ends the program, and only then gives the slot back. */
  async handOver({ drainMs, keepMs = 0 }: { readonly drainMs: number; readonly keepMs?: number }): Promise<void> {
    this.#moving = true;
    await this.server.drained(drainMs);
    await this.server.close();
    if (keepMs > 0) await pause(keepMs, { signal: this.#options.lease.lost, clock: this.#options.clock });
    await this.end();
  }

  /** Gives the slot back; what runs there is not touched. */
  async end(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#stopAsking();
    for (const stop of this.#stops) stop();
    await this.#options.lease.release().catch(() => {});
  }

  /** Others look again when the value of the lease changes. Changes in quick succession are written together. */
  #tell(news: Partial<ReplicaFacts>): void {
    this.#facts = { ...this.#facts, ...news, revision: this.#facts.revision + 1 };
    if (this.#telling) return;
    this.#telling = true;
    setImmediate(() => void this.#write());
  }

  async #write(): Promise<void> {
    const facts = this.#facts;
    if (!this.#over) await this.#options.lease.setValue({ ...facts }).catch(() => {});
    this.#telling = false;
    if (facts !== this.#facts && !this.#over) this.#tell({});
  }

  async #answer(call: IncomingCall): Promise<CallReply> {
    const { connection } = this.server;
    const { head, body } = call;
    switch (head["method"]) {
      case "describe":
        return { head: { ok: true }, body: writeBody(this.#describe(readBody(body))) };
      case "run":
        return this.#run(call);
      case "refresh":
        await connection.refresh();
        return NO_REPLY;
      case "roots-changed":
        await connection.rootsChanged();
        return NO_REPLY;
      case "log-level":
        await connection.setLogLevel(String(head["level"]));
        return NO_REPLY;
      case "start-session":
        connection.startSession?.(this.#sessions.take(readBody<ForwardedSession>(body), call.from));
        return NO_REPLY;
      case "end-session":
        this.server.endSession(this.#sessions.drop(String(head["session"]), call.from));
        return NO_REPLY;
      case "resume": {
        const { session, uris } = readBody<{ session: ForwardedSession; uris: string[] }>(body);
        this.server.resume(this.#sessions.take(session, call.from), uris);
        return NO_REPLY;
      }
      case "connect-user": {
        const info = await connection.connectUser?.(String(head["user"]));
        return { head: { ok: true }, body: writeBody(info ?? connection.info()) };
      }
      case "skills":
        return this.#reply(async () => writeBody(await this.#skills().list()));
      case "skill-file":
        return this.#reply(() => this.#skills().read(String(head["uri"]), Number(head["size"])));
      default:
        throw new ToolcribError("internal", `Another node asks for ${JSON.stringify(head["method"])}.`, {
          hint: "Run the same version on all nodes.",
        });
    }
  }

  #describe(users: readonly string[]): ReplicaDescription {
    const { connection, state } = this.server;
    const told = users.flatMap((user) => {
      const text = connection.instructions(user);
      return text === null ? [] : [[user, text] as const];
    });
    return {
      state,
      info: connection.info(),
      definitions: connection.definitions(),
      instructions: connection.instructions(),
      userInstructions: Object.fromEntries(told),
      offersSkills: connection.skillOffer?.() !== undefined,
    };
  }

  #skills(): SkillOffer {
    const offer = this.server.connection.skillOffer?.();
    if (offer === undefined) throw serverMoving(this.server.connection.id);
    return offer;
  }

  async #run(call: IncomingCall): Promise<CallReply> {
    if (!this.isOpen) throw serverMoving(this.server.connection.id);
    const sent = readBody<ForwardedUse>(call.body);
    /** Those that the link has not taken yet. Where it never does, the caller has gone, and the call ends by its signal. */
    const events = new Set<Promise<void>>();
    const emit = (event: JsonObject, value: unknown): void => {
      const told: Promise<void> = call
        .emit(event, writeBody(value))
        .catch(() => {})
        .finally(() => events.delete(told));
      events.add(told);
    };
    const client = remoteClient(sent.client, call);
    const { spec } = this.server.connection;
    const isKept = spec.isolation !== "shared" || sent.use.kind === "subscribe";
    const session = { ...this.#sessions[isKept ? "take" : "see"](sent.session, call.from), client };
    const { callId, meta, extra, logLevel, tasks, input } = sent;
    const context: UseContext = {
      callId,
      session,
      client,
      signal: call.signal,
      onProgress: sent.wantsProgress ? (progress) => emit({ kind: "progress" }, progress) : undefined,
      onNotice: sent.wantsNotices ? (method, params) => emit({ kind: "notice", method }, params) : undefined,
      ...{ meta, extra, logLevel, tasks, input },
    };
    return this.#reply(async () => {
      const result = await this.run(sent.use, context);
      await Promise.all(events);
      return writeBody(result);
    });
  }

  /** Errors of the server are answers: what is thrown instead says that nothing was begun. */
  async #reply(work: () => Promise<Uint8Array>): Promise<CallReply> {
    try {
      return { head: { ok: true }, body: await work() };
    } catch (error) {
      if (error instanceof CallNotStarted) throw error;
      return { head: { ok: false, error: encodeError(error) } };
    }
  }

  #endSessionsOf(node: string): void {
    for (const id of this.#sessions.dropAll(node)) this.server.endSession(id);
  }

  /** That a session has ended may not have been heard: its node is asked, time and again. */
  #askLater(): void {
    const { clock, leaseMs } = this.#options;
    this.#stopAsking = clock.after(leaseMs, () => {
      void this.#askForSessions().finally(() => {
        if (!this.#over) this.#askLater();
      });
    });
  }

  async #askForSessions(): Promise<void> {
    const { cluster, token } = this.#options;
    const living = new Set(cluster.nodes().map(({ id }) => id));
    // Without NATS every node seems to be away.
    if (!cluster.isUp) return;
    await Promise.all(
      [...this.#sessions.byNode()].map(async ([node, ids]) => {
        if (!living.has(node)) return this.#endSessionsOf(node);
        for (const id of await endedSessions(cluster, node, { word: token, ids })) {
          this.server.endSession(this.#sessions.drop(id, node));
        }
      }),
    );
  }
}

/** A server that runs at this node, as its own sessions use it. */
export class LocalReplica implements Replica {
  readonly node: string;
  readonly #server: LocalServer;
  readonly #host: ReplicaHost | undefined;

  /** @param host Absent where it runs without a lease. */
  constructor(node: string, server: LocalServer, host: ReplicaHost | undefined) {
    this.node = node;
    this.#server = server;
    this.#host = host;
  }

  get slot(): number {
    return this.#host?.slot ?? Number.POSITIVE_INFINITY;
  }

  get incarnation(): string {
    return `here ${this.#server.number}`;
  }

  get state(): ServerState {
    return this.#server.state;
  }

  get isOpen(): boolean {
    return this.#host?.isOpen ?? true;
  }

  info(): ServerInfo {
    return this.#server.connection.info();
  }

  definitions(): Definitions {
    return this.#server.connection.definitions();
  }

  instructions(user?: string): string | null {
    return this.#server.connection.instructions(user);
  }

  skillOffer(): SkillOffer | undefined {
    return this.#server.connection.skillOffer?.();
  }

  run(use: Use, context: UseContext): Promise<Result> {
    return (this.#host ?? this.#server).run(use, context);
  }

  refresh(): Promise<void> {
    return this.#server.connection.refresh();
  }

  async connectUser(user: string): Promise<ServerInfo> {
    return (await this.#server.connection.connectUser?.(user)) ?? this.info();
  }

  rootsChanged(): void {
    void this.#server.connection.rootsChanged();
  }

  setLogLevel(level: string): void {
    void this.#server.connection.setLogLevel(level);
  }

  startSession(session: SessionContext): void {
    this.#server.connection.startSession?.(session);
  }

  endSession(sessionId: string): void {
    this.#server.endSession(sessionId);
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#server.resume(session, uris);
  }
}
