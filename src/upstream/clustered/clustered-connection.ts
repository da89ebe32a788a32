/**
 * ClusteredConnection: a server that runs at one node of the cluster, or at several as `replicas` says. To the hub of each
 * node it is a connection like any other.
 */
import type { CancelSignal } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { Emitter, type Listeners } from "../../base/emitter.ts";
import { type Cluster, subjectToken } from "../../cluster/cluster.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { type ServerInfo, type ServerState, STATUS_OF } from "../../model/server-state.ts";
import {
  type Definitions,
  NO_DEFINITIONS,
  type SessionContext,
  type Use,
  type UseContext,
} from "../../model/source.ts";
import { cancelledByCaller, maxCallMs } from "../link-calls.ts";
import type { ConnectionDeps, ConnectionEvents } from "../connection-deps.ts";
import { removedError, unavailableError } from "../connection-failures.ts";
import { DEFAULT_GRACE_MS, GracePeriod, isSameLink, serverInfo } from "../connection-state.ts";
import type { SkillOffer } from "../live-lists.ts";
import type { ServerConnection } from "../server-connection.ts";
import { AnnouncedSessions, localSessionId } from "./cluster-sessions.ts";
import type { ClusteredServers } from "./clustered-servers.ts";
import { CallNotStarted } from "./forwarded-calls.ts";
import type { LocalServer } from "./local-server.ts";
import { ReplicaSet } from "./replica-set.ts";
import { eventsTopic, isUp, type Replica, specDigest } from "./replica.ts";

/** How long a call waits for a node that runs the server. */
const MAX_WAIT_MS = 30_000;
/** While NATS is away that may be long. */
const MAX_NATS_WAIT_MS = 5000;
/** How long nodes may take to end what an operator disconnects. */
const MAX_LEAVE_MS = 20_000;
/** How long the lease of a removed server is kept: a node that was not notified yet must not start it again. */
const KEEP_MS = 2000;
const POLL_MS = 200;

export class ClusteredConnection implements ServerConnection {
  readonly kind = "server";
  readonly id: string;
  readonly #deps: ConnectionDeps;
  readonly #shared: ClusteredServers;
  readonly #token: string;
  readonly #slots: ReplicaSet;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #changes: ChangeSignal;
  readonly #grace: GracePeriod;
  readonly #stops: (() => void)[];
  readonly #sessions = new AnnouncedSessions();
  readonly #followed = new SubscriptionReplica();
  #spec: ServerSpec;
  #state: ServerState;
  #definitions: Definitions = NO_DEFINITIONS;
  #isWanted = false;
  #wasUp = false;
  #isClosed = false;
  #changing: Promise<void> | undefined;
  #isTrustWithheld = false;
  #retiring: Promise<void> | undefined;
  #logLevel: string | undefined;
  #next = 0;
  connectUser?: (user: string) => Promise<ServerInfo>;

  constructor(spec: ServerSpec, deps: ConnectionDeps, shared: ClusteredServers) {
    this.id = spec.id;
    this.#spec = spec;
    this.#deps = deps;
    this.#shared = shared;
    this.#token = subjectToken(spec.id);
    this.#changes = new ChangeSignal(deps.clock);
    this.#state = spec.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#grace = new GracePeriod(deps.clock, deps.graceMs ?? DEFAULT_GRACE_MS, () => this.#publish(NO_DEFINITIONS));
    const { cluster } = shared;
    this.#slots = new ReplicaSet({
      shared,
      token: this.#token,
      deps,
      spec: () => this.#spec,
      isWanted: () => this.#isMeantToRun,
      users: () => this.#sessions.users(),
      onServer: (server) => {
        if (this.#logLevel !== undefined) void server.connection.setLogLevel(this.#logLevel);
        publishEvents(server, this.#token, cluster, this.#events);
      },
      warn: (message) => this.#events.emit("warning", message),
      onChange: () => this.#update(),
    });
    this.#stops = [
      receiveEvents(this.#token, cluster, this.#events, (node) => this.#nodes().includes(node)),
      shared.liveness.add(this.#token, (sessionId) => this.#sessions.knows(sessionId)),
      cluster.on("up", () => {
        this.#followed.forget();
        this.#sessions.announceAgain();
        this.#update();
      }),
    ];
    this.#updateConnectUser();
    this.#slots.review();
  }

  /** Another program is not trusted before it runs, nor because of the one before it. */
  get spec(): ServerSpec {
    return this.#isTrustWithheld ? { ...this.#spec, trust: "untrusted" } : this.#spec;
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

  definitions(): Definitions {
    return this.#definitions;
  }

  instructions(user?: string): string | null {
    return this.#bestReplica()?.instructions(user) ?? null;
  }

  info(): ServerInfo {
    return clusteredInfo({
      spec: this.#spec,
      state: this.#state,
      toolCount: this.#definitions.tools.length,
      replica: this.#bestReplica()?.info(),
      nodes: this.#nodes().map((id) => this.#shared.nameOf(id)),
    });
  }

  /** Resolves when it is ready somewhere, or cannot be for now; `info` says which. Never rejects. */
  async connect(): Promise<void> {
    if (this.#isClosed || !this.#spec.enabled) return;
    await this.#shared.ready();
    this.#isWanted = true;
    if (this.#state.kind === "failed") {
      this.#slots.retryHere();
      await this.#shared.forgetFailures(this.#token).catch(() => {});
    }
    this.#slots.review();
    await this.#changes.until(() => this.#isClosed || !this.#isPending, this.#spec.timeout + MAX_WAIT_MS);
  }

  async wish(connected: boolean): Promise<void> {
    await this.#shared.wish(this.#token, specDigest(this.#spec), connected).catch(() => {
      this.#events.emit("warning", "NATS cannot be reached, so the other nodes are not notified.");
    });
  }

  /** On all nodes. */
  async disconnect(): Promise<void> {
    if (this.#isClosed) return;
    this.#isWanted = false;
    this.#wasUp = false;
    await this.wish(false);
    this.#slots.review();
    this.#grace.forget();
    this.#publish(NO_DEFINITIONS);
    await this.#changes.until(() => this.#slots.replicas().length === 0 && !this.#slots.isEnding, MAX_LEAVE_MS);
  }

  async close(): Promise<void> {
    await this.#end({ drainMs: Math.min(maxCallMs(this.#spec), this.#shared.shutdownMs) });
  }

  retire(): Promise<void> {
    // Not at once: a node that has not heard of its end would start it.
    if (this.#retiring === undefined) {
      this.#deps.clock.after(KEEP_MS, () => void this.#shared.forgetWish(this.#token).catch(() => {}));
    }
    this.#retiring ??= this.#end({ drainMs: maxCallMs(this.#spec), keepMs: KEEP_MS });
    return this.#retiring;
  }

  /** The program is replaced at the node that runs it, which may be another one. */
  respec(spec: ServerSpec): boolean {
    if (spec.url !== undefined) return false;
    const before = this.#spec;
    this.#spec = spec;
    this.#updateConnectUser();
    if (spec.enabled && spec.autoConnect && !before.enabled) this.#isWanted = true;
    const isOther = !isSameLink(before, spec);
    if (isOther) this.#isTrustWithheld = before.trust !== "trusted";
    const changing = this.#slots.respec(spec).then(async () => {
      const isSettled = (): boolean => {
        const replica = this.#bestReplica();
        const isDecided = this.#state.kind === "failed" || (replica !== undefined && isUp(replica));
        return this.#isClosed || !this.#isMeantToRun || isDecided;
      };
      if (isOther) await this.#changes.until(isSettled, this.#spec.timeout);
      if (this.#changing === changing) this.#isTrustWithheld = false;
    });
    this.#changing = changing;
    this.#slots.review();
    return true;
  }

  async settled(): Promise<void> {
    await this.#changing;
  }

  async refresh(): Promise<void> {
    await Promise.all(this.#slots.replicas().map((replica) => replica.refresh().catch(() => {})));
  }

  async setLogLevel(level: string): Promise<void> {
    this.#logLevel = level;
    for (const replica of this.#slots.replicas()) replica.setLogLevel(level);
  }

  async rootsChanged(): Promise<void> {
    for (const replica of this.#slots.replicas()) replica.rootsChanged();
  }

  startSession(session: SessionContext): void {
    if (this.#spec.isolation !== "shared") this.#sessions.start(session, this.#slots.replicas());
  }

  endSession(sessionId: string): void {
    this.#sessions.end(sessionId, this.#slots.replicas());
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#sessions.note(session.id);
    this.#followed.of(this.#slots.replicas())?.resume(session, uris);
  }

  skillOffer(): SkillOffer | undefined {
    return this.#bestReplica()?.skillOffer();
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    if (this.#retiring !== undefined || this.#isClosed) throw removedError(this.id);
    // The first call connects it.
    if (this.#state.kind === "idle" && !this.#isUnwanted) {
      await this.#shared.ready();
      this.#isWanted = true;
      this.#slots.review();
    }
    const { clock } = this.#deps;
    const lastStart = clock.now() + maxCallMs(this.#spec);
    let began = clock.now();
    for (;;) {
      const replica = this.#replicaFor(use);
      let isLeaving = this.#slots.isHeldByPredecessor;
      try {
        if (replica !== undefined) {
          // The server keeps state of the session, and is notified when it ends.
          const leavesState = use.kind === "subscribe" || this.#spec.isolation !== "shared";
          if (leavesState) this.#sessions.note(context.session.id);
          return await replica.run(use, context);
        }
      } catch (error) {
        if (!(error instanceof CallNotStarted)) throw error;
        isLeaving = error.isMoving;
      }
      // Calls that were there first are waited for, as long as one may take.
      if (isLeaving) began = Math.min(clock.now(), lastStart);
      const limitMs = this.#shared.cluster.isUp ? MAX_WAIT_MS : MAX_NATS_WAIT_MS;
      const leftMs = began + Math.min(this.#spec.toolTimeout, limitMs) - clock.now();
      if (!this.#mayCome || leftMs <= 0) throw unavailableError(this.info(), this.#state);
      await this.#changes.next(Math.min(leftMs, POLL_MS), context.signal);
    }
  }

  #updateConnectUser(): void {
    if (this.#spec.isolation === "user") this.connectUser = (user) => this.#connectUser(user);
    else delete this.connectUser;
  }

  async #connectUser(user: string): Promise<ServerInfo> {
    await this.connect();
    const info = await this.#bestReplica()?.connectUser(user);
    const { node } = this.info();
    return info === undefined ? this.info() : { ...info, ...(node === undefined ? {} : { node }) };
  }

  get #isUnwanted(): boolean {
    return this.#shared.isUnwanted(this.#token, specDigest(this.#spec));
  }

  get #isMeantToRun(): boolean {
    return !this.#isClosed && this.#spec.enabled && this.#isWanted && !this.#isUnwanted;
  }

  /** It is being started, or about to be. */
  get #isPending(): boolean {
    const { kind } = this.#state;
    const isBetweenNodes = this.#shared.cluster.isUp && this.#slots.replicas().length === 0;
    return kind === "connecting" || (kind === "restarting" && isBetweenNodes);
  }

  /** Whether it is worth waiting for a replica. */
  get #mayCome(): boolean {
    return ["connecting", "restarting", "ready", "degraded"].includes(this.#state.kind);
  }

  #replicaFor({ kind }: Use): Replica | undefined {
    if (kind === "subscribe" || kind === "unsubscribe") return this.#followed.of(this.#slots.replicas());
    const { cluster } = this.#shared;
    const open = this.#slots.replicas().filter(({ isOpen }) => isOpen);
    if (open.length === 0 && !cluster.isUp && (this.#spec.replicas ?? 1) > 1) {
      // Stateless by declaration: better here than nowhere.
      this.#slots.runWithoutLease();
      return this.#slots.replicas()[0];
    }
    const up = open.filter(isUp);
    const pool = up.length > 0 ? up : open;
    return pool.find(({ node }) => node === cluster.node.id) ?? pool[this.#next++ % pool.length];
  }

  #bestReplica(): Replica | undefined {
    const replicas = this.#slots.replicas();
    return replicas.find(isUp) ?? replicas[0];
  }

  #nodes(): string[] {
    return this.#slots.replicas().map(({ node }) => node);
  }

  /** Something about the replicas has changed. */
  #update(): void {
    const replicas = this.#slots.replicas();
    // A connect at another node applies to all nodes.
    if (replicas.length > 0 && !this.#isUnwanted) this.#isWanted = true;
    this.#sessions.announce(replicas);
    const up = replicas.find(isUp);
    if (up !== undefined && this.#isMeantToRun) {
      this.#wasUp = true;
      this.#grace.earn();
      this.#publish(up.definitions());
    }
    const state = clusterState(replicas, {
      isClosed: this.#isClosed,
      isEnabled: this.#spec.enabled,
      isWanted: this.#isMeantToRun,
      isClusterUp: this.#shared.cluster.isUp,
      wasUp: this.#wasUp,
      isHandedOver: this.#slots.isHandedOver,
      failure: this.#slots.failure(),
      now: this.#deps.clock.now(),
    });
    const { isNew, former } = this.#followed.check(replicas);
    this.#take(state, isNew);
    if (former !== undefined) this.#sessions.leave(former);
    this.#changes.notify();
  }

  /** @param isNewReplica Emits the state again: listeners then send their subscriptions. */
  #take(state: ServerState, isNewReplica: boolean): void {
    const previous = this.#state;
    if (isSameState(previous, state) && !isNewReplica) return;
    this.#state = state;
    if (state.kind === "failed") this.#grace.begin();
    if (state.kind === "idle" || state.kind === "disabled" || state.kind === "closed") {
      this.#wasUp = false;
      this.#grace.forget();
      this.#publish(NO_DEFINITIONS);
    }
    this.#events.emit("state", { previous, state });
  }

  #publish(definitions: Definitions): void {
    if (definitions === this.#definitions) return;
    if (JSON.stringify(definitions) === JSON.stringify(this.#definitions)) return;
    this.#definitions = definitions;
    this.#events.emit("changed", undefined);
  }

  async #end(options: { readonly drainMs: number; readonly keepMs?: number }): Promise<void> {
    this.#isClosed = true;
    await this.#slots.close(options);
    for (const stop of this.#stops) stop();
    this.#take({ kind: "closed" }, false);
    this.#changes.notify();
  }
}

/** The time of the next restart is reported once. */
function isSameState(one: ServerState, other: ServerState): boolean {
  if (one.kind !== "restarting" || other.kind !== "restarting") return JSON.stringify(one) === JSON.stringify(other);
  return one.attempt === other.attempt && one.reason === other.reason;
}

export interface StateInputs {
  readonly isClosed: boolean;
  readonly isEnabled: boolean;
  /** It is meant to run. */
  readonly isWanted: boolean;
  /** NATS answers. */
  readonly isClusterUp: boolean;
  /** It has been ready before, and was not disconnected since. */
  readonly wasUp: boolean;
  /** The node that ran it is there, and gave it away. */
  readonly isHandedOver: boolean;
  /** All nodes have tried, and this is why it runs nowhere. */
  readonly failure: { readonly reason: string; readonly hint?: string } | undefined;
  readonly now: number;
}

/** Another node needs about this long to take over. */
const TAKE_OVER_MS = 1000;

/** One state for a server that may run in several replicas, or between two of them. */
export function clusterState(replicas: readonly Pick<Replica, "state">[], now: StateInputs): ServerState {
  if (now.isClosed) return { kind: "closed" };
  if (!now.isEnabled) return { kind: "disabled" };
  if (!now.isWanted) return { kind: "idle" };
  const up = replicas.find(isUp)?.state;
  if (up !== undefined) return up;
  // A node that has failed gives the server to another one.
  const known = replicas.find(({ state }) => state?.kind === "connecting" || state?.kind === "restarting")?.state;
  if (known !== undefined) return known;
  if (now.failure !== undefined) return { kind: "failed", reason: now.failure.reason, hint: now.failure.hint };
  const takingOver = { kind: "restarting", attempt: 1, nextAt: now.now + TAKE_OVER_MS, delayMs: TAKE_OVER_MS } as const;
  if (!now.isClusterUp) {
    return {
      ...takingOver,
      reason: "NATS cannot be reached, and without it no node can know which one may run it",
      hint: "It starts by itself when NATS is back. `replicas: 2` or more lets a stateless server run until then.",
    };
  }
  if (now.wasUp && !now.isHandedOver)
    return { ...takingOver, reason: "the node that ran it has gone; another takes over" };
  return { kind: "connecting" };
}

interface ClusteredFacts {
  readonly spec: ServerSpec;
  readonly state: ServerState;
  readonly toolCount: number;
  /** From the replica that knows most. */
  readonly replica: ServerInfo | undefined;
  /** Names of the nodes that run it. */
  readonly nodes: readonly string[];
}

/** A server of the cluster as every node shows it: what this node thinks of it, and the rest from where it runs. */
function clusteredInfo({ spec, state, toolCount, replica, nodes }: ClusteredFacts): ServerInfo {
  const lastError = "reason" in state ? state.reason : null;
  const facts = { spec, state, toolCount, lastError, warnings: [], agreement: null, auth: undefined };
  const own = serverInfo({ ...facts, transport: "stdio" });
  const { id, name, origin, tags, toolCount: counted } = own;
  const remote = {
    ...replica,
    id,
    name,
    origin,
    tags,
    toolCount: counted,
    state: state.kind,
    status: STATUS_OF[state.kind],
  };
  return {
    ...own,
    ...(replica === undefined ? {} : remote),
    ...(lastError === null ? {} : { lastError }),
    ...(nodes.length === 0 ? {} : { node: nodes.toSorted().join(", ") }),
  };
}

/** The one replica at which all sessions of this node subscribe to resources, so that each change is reported once. */
class SubscriptionReplica {
  /** Of the replica that knows the subscriptions. */
  #incarnation: string | undefined;

  of(replicas: readonly Replica[]): Replica | undefined {
    return replicas.toSorted((one, other) => one.slot - other.slot)[0];
  }

  forget(): void {
    this.#incarnation = undefined;
  }

  /** Whether another replica has to get the subscriptions now, and which one had them before. It counts as done. */
  check(replicas: readonly Replica[]): { readonly isNew: boolean; readonly former?: Replica } {
    const replica = this.of(replicas);
    if (replica === undefined || !isUp(replica) || replica.incarnation === this.#incarnation) return { isNew: false };
    const former = replicas.find(({ incarnation }) => incarnation === this.#incarnation);
    this.#incarnation = replica.incarnation;
    return { isNew: true, former };
  }
}

/** Events that reach the sessions of every node. */
const FORWARDED_EVENTS = ["log", "notice", "warning", "resource-updated"] as const satisfies (keyof ConnectionEvents)[];

type Events = Pick<Emitter<ConnectionEvents>, "emit">;

/** Of a server that runs here: to the sessions here and to the other nodes. */
function publishEvents(server: LocalServer, token: string, cluster: Cluster, events: Events): void {
  for (const name of FORWARDED_EVENTS) {
    server.on(name, (event) => {
      events.emit(name, event);
      if (cluster.nodes().length > 1) cluster.publish(eventsTopic(token), { name, event });
    });
  }
}

/** @param isHolder Whether the server runs at that node: events of other nodes are ignored. */
function receiveEvents(
  token: string,
  cluster: Cluster,
  events: Events,
  isHolder: (node: string) => boolean,
): () => void {
  return cluster.subscribe(eventsTopic(token), ({ name, event }: JsonObject, from) => {
    const known = FORWARDED_EVENTS.find((each) => each === name);
    if (known === undefined || !isHolder(from)) return;
    // The other node sent it with `publishEvents`: the value under a name is that event.
    events.emit(known, withLocalSession(event, cluster.node.id) as never);
  });
}

/** An event for one session has the id by which the node that runs the server knows it. */
function withLocalSession(event: unknown, node: string): unknown {
  if (!isJsonObject(event) || typeof event["session"] !== "string") return event;
  return { ...event, session: localSessionId(event["session"], node) };
}

/** Lets callers wait for the next change of the replicas. */
class ChangeSignal {
  readonly #clock: Clock;
  readonly #emitter = new Emitter<{ change: undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    this.#emitter.emit("change", undefined);
  }

  /** Resolves when the condition is met, or after this time. */
  until(isMet: () => boolean, limitMs: number): Promise<void> {
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        stopTimer();
        stopListening();
        resolve();
      };
      const stopTimer = this.#clock.after(limitMs, finish);
      const stopListening = this.#emitter.on("change", () => {
        if (isMet()) finish();
      });
    });
  }

  /** Resolves with the next change or after this time; rejects when the signal aborts. */
  async next(limitMs: number, signal: CancelSignal): Promise<void> {
    const abort = (): void => this.notify();
    signal.addEventListener("abort", abort, { once: true });
    let isFirst = true;
    const isNext = (): boolean => {
      const isOver = !isFirst || signal.aborted;
      isFirst = false;
      return isOver;
    };
    await this.until(isNext, limitMs);
    signal.removeEventListener("abort", abort);
    if (signal.aborted) throw cancelledByCaller();
  }
}
