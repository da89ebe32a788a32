/**
 * ClusteredConnection: a server that runs at one node of the cluster, or at several as `replicas` says. To the hub of each
 * node it is a connection like any other.
 */
import type { Clock } from "../../base/clock.ts";
import { Emitter } from "../../base/emitter.ts";
import { type Cluster, subjectToken } from "../../cluster/cluster.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { type ServerInfo, type ServerState, statusOf } from "../../model/server-state.ts";
import {
  type Definitions,
  NO_DEFINITIONS,
  type SessionContext,
  type Use,
  type UseContext,
} from "../../model/source.ts";
import { maxCallMs } from "../link-calls.ts";
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
/** A removed server stays taken for so long: a node that has not heard of it must not start it again. */
const KEEP_MS = 2000;
const POLL_MS = 200;

export class ClusteredConnection implements ServerConnection {
  readonly kind = "server";
  readonly id: string;
  readonly #deps: ConnectionDeps;
  readonly #shared: ClusteredServers;
  readonly #word: string;
  readonly #slots: ReplicaSet;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #lookOut: ChangeSignal;
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
  #isTrustHeld = false;
  #retiring: Promise<void> | undefined;
  #logLevel: string | undefined;
  #next = 0;
  connectUser?: (user: string) => Promise<ServerInfo>;

  constructor(spec: ServerSpec, deps: ConnectionDeps, shared: ClusteredServers) {
    this.id = spec.id;
    this.#spec = spec;
    this.#deps = deps;
    this.#shared = shared;
    this.#word = subjectToken(spec.id);
    this.#lookOut = new ChangeSignal(deps.clock);
    this.#state = spec.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#grace = new GracePeriod(deps.clock, deps.graceMs ?? DEFAULT_GRACE_MS, () => this.#list(NO_DEFINITIONS));
    const { cluster } = shared;
    this.#slots = new ReplicaSet({
      shared,
      word: this.#word,
      deps,
      spec: () => this.#spec,
      isWanted: () => this.#isMeantToRun,
      users: () => this.#sessions.users(),
      onServer: (server) => {
        if (this.#logLevel !== undefined) void server.connection.setLogLevel(this.#logLevel);
        publishEvents(server, this.#word, cluster, this.#events);
      },
      warn: (message) => this.#events.emit("warning", message),
      onChange: () => this.#look(),
    });
    this.#stops = [
      receiveEvents(this.#word, cluster, this.#events, (node) => this.#nodes().includes(node)),
      shared.roll.add(this.#word, (sessionId) => this.#sessions.knows(sessionId)),
      cluster.on("up", () => {
        this.#followed.forget();
        this.#sessions.introduceAgain();
        this.#look();
      }),
    ];
    this.#seatUsers();
    this.#slots.review();
  }

  /** Another program is not trusted before it runs, nor because of the one before it. */
  get spec(): ServerSpec {
    return this.#isTrustHeld ? { ...this.#spec, trust: "untrusted" } : this.#spec;
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("changed", listener);
  }

  definitions(): Definitions {
    return this.#definitions;
  }

  instructions(user?: string): string | null {
    return this.#best()?.instructions(user) ?? null;
  }

  info(): ServerInfo {
    return clusteredInfo({
      spec: this.#spec,
      state: this.#state,
      toolCount: this.#definitions.tools.length,
      place: this.#best()?.info(),
      nodes: this.#nodes().map((id) => this.#shared.nameOf(id)),
    });
  }

  /** Resolves when it is ready somewhere, or cannot be for now; `info` says which. Never rejects. */
  async connect(): Promise<void> {
    if (this.#isClosed || !this.#spec.enabled) return;
    await this.#shared.ready();
    this.#isWanted = true;
    if (this.#state.kind === "failed") {
      this.#slots.forgive();
      await this.#shared.forgetFailures(this.#word).catch(() => {});
    }
    this.#slots.review();
    await this.#lookOut.until(() => this.#isClosed || !this.#isPending, this.#spec.timeout + MAX_WAIT_MS);
  }

  async wish(connected: boolean): Promise<void> {
    await this.#shared.wish(this.#word, specDigest(this.#spec), connected).catch(() => {
      this.#events.emit("warning", "NATS cannot be reached, so the other nodes do not hear of it.");
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
    this.#list(NO_DEFINITIONS);
    await this.#lookOut.until(() => this.#slots.places().length === 0 && !this.#slots.isEnding, MAX_LEAVE_MS);
  }

  async close(): Promise<void> {
    await this.#end({ drainMs: Math.min(maxCallMs(this.#spec), this.#shared.shutdownMs) });
  }

  retire(): Promise<void> {
    // Not at once: a node that has not heard of its end would start it.
    if (this.#retiring === undefined) {
      this.#deps.clock.after(KEEP_MS, () => void this.#shared.forgetWish(this.#word).catch(() => {}));
    }
    this.#retiring ??= this.#end({ drainMs: maxCallMs(this.#spec), keepMs: KEEP_MS });
    return this.#retiring;
  }

  /** The program gives way to another one in the place where it runs: it is not this node's to replace. */
  respec(spec: ServerSpec): boolean {
    if (spec.url !== undefined) return false;
    const before = this.#spec;
    this.#spec = spec;
    this.#seatUsers();
    if (spec.enabled && spec.autoConnect && !before.enabled) this.#isWanted = true;
    const isOther = !isSameLink(before, spec);
    if (isOther) this.#isTrustHeld = before.trust !== "trusted";
    const changing = this.#slots.respec(spec).then(async () => {
      const isSettled = (): boolean => this.#isClosed || !this.#isMeantToRun || hasSettled(this.#state, this.#best());
      if (isOther) await this.#lookOut.until(isSettled, this.#spec.timeout);
      if (this.#changing === changing) this.#isTrustHeld = false;
    });
    this.#changing = changing;
    this.#slots.review();
    return true;
  }

  async settled(): Promise<void> {
    await this.#changing;
  }

  async refresh(): Promise<void> {
    await Promise.all(this.#slots.places().map((place) => place.refresh().catch(() => {})));
  }

  async setLogLevel(level: string): Promise<void> {
    this.#logLevel = level;
    for (const place of this.#slots.places()) place.setLogLevel(level);
  }

  async rootsChanged(): Promise<void> {
    for (const place of this.#slots.places()) place.rootsChanged();
  }

  startSession(session: SessionContext): void {
    if (this.#spec.isolation !== "shared") this.#sessions.start(session, this.#slots.places());
  }

  endSession(sessionId: string): void {
    this.#sessions.end(sessionId, this.#slots.places());
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#sessions.note(session.id);
    this.#followed.of(this.#slots.places())?.resume(session, uris);
  }

  skillOffer(): SkillOffer | undefined {
    return this.#best()?.skillOffer();
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    if (this.#retiring !== undefined || this.#isClosed) throw removedError(this.id);
    // What nobody connected yet is connected by its first call.
    if (this.#state.kind === "idle" && !this.#isUnwanted) {
      await this.#shared.ready();
      this.#isWanted = true;
      this.#slots.review();
    }
    const { clock } = this.#deps;
    const lastStart = clock.now() + maxCallMs(this.#spec);
    let began = clock.now();
    for (;;) {
      const place = this.#placeFor(use);
      let isLeaving = this.#slots.isHeldByPredecessor;
      try {
        if (place !== undefined) return await this.#runAt(place, use, context);
      } catch (error) {
        if (!(error instanceof CallNotStarted)) throw error;
        isLeaving = error.isMoving;
      }
      // Calls that were there first are waited for, as long as one may take.
      if (isLeaving) began = Math.min(clock.now(), lastStart);
      const limitMs = this.#shared.cluster.isUp ? MAX_WAIT_MS : MAX_NATS_WAIT_MS;
      const leftMs = began + Math.min(this.#spec.toolTimeout, limitMs) - clock.now();
      if (!this.#mayCome || leftMs <= 0) throw unavailableError(this.info(), this.#state);
      await this.#lookOut.next(Math.min(leftMs, POLL_MS), context.signal);
    }
  }

  async #runAt(place: Replica, use: Use, context: UseContext): Promise<Result> {
    if (this.#leavesTraces(use)) this.#sessions.note(context.session.id);
    return place.run(use, context);
  }

  #seatUsers(): void {
    if (this.#spec.isolation === "user") this.connectUser = (user) => this.#connectUser(user);
    else delete this.connectUser;
  }

  async #connectUser(user: string): Promise<ServerInfo> {
    await this.connect();
    const info = await this.#best()?.connectUser(user);
    const { node } = this.info();
    return info === undefined ? this.info() : { ...info, ...(node === undefined ? {} : { node }) };
  }

  /** The server keeps something of the session, and is told when it ends. */
  #leavesTraces({ kind }: Use): boolean {
    return kind === "subscribe" || this.#spec.isolation !== "shared";
  }

  get #isUnwanted(): boolean {
    return this.#shared.isUnwanted(this.#word, specDigest(this.#spec));
  }

  get #isMeantToRun(): boolean {
    return !this.#isClosed && this.#spec.enabled && this.#isWanted && !this.#isUnwanted;
  }

  /** It is being started, or about to be. */
  get #isPending(): boolean {
    const { kind } = this.#state;
    const isBetweenNodes = this.#shared.cluster.isUp && this.#slots.places().length === 0;
    return kind === "connecting" || (kind === "restarting" && isBetweenNodes);
  }

  /** Whether it is worth waiting for a place. */
  get #mayCome(): boolean {
    return ["connecting", "restarting", "ready", "degraded"].includes(this.#state.kind);
  }

  #placeFor({ kind }: Use): Replica | undefined {
    if (kind === "subscribe" || kind === "unsubscribe") return this.#followed.of(this.#slots.places());
    const { cluster } = this.#shared;
    const open = this.#slots.places().filter(({ isOpen }) => isOpen);
    if (open.length === 0 && !cluster.isUp && (this.#spec.replicas ?? 1) > 1) {
      // Stateless by declaration: better here than nowhere.
      this.#slots.runWithoutLease();
      return this.#slots.places()[0];
    }
    const up = open.filter(isUp);
    const pool = up.length > 0 ? up : open;
    return pool.find(({ node }) => node === cluster.node.id) ?? pool[this.#next++ % pool.length];
  }

  #best(): Replica | undefined {
    const places = this.#slots.places();
    return places.find(isUp) ?? places[0];
  }

  #nodes(): string[] {
    return this.#slots.places().map(({ node }) => node);
  }

  /** Something about the places has changed. */
  #look(): void {
    const places = this.#slots.places();
    // Whoever connected it at another node meant all of them.
    if (places.length > 0 && !this.#isUnwanted) this.#isWanted = true;
    this.#sessions.introduce(places);
    const up = places.find(isUp);
    if (up !== undefined && this.#isMeantToRun) {
      this.#wasUp = true;
      this.#grace.earn();
      this.#list(up.definitions());
    }
    const state = clusterState(places, {
      isClosed: this.#isClosed,
      isEnabled: this.#spec.enabled,
      isWanted: this.#isMeantToRun,
      isClusterUp: this.#shared.cluster.isUp,
      wasUp: this.#wasUp,
      isGivenAway: this.#slots.isGivenAway,
      givenUp: this.#slots.givenUp(),
      now: this.#deps.clock.now(),
    });
    const { isNew, former } = this.#followed.look(places);
    this.#take(state, isNew);
    if (former !== undefined) this.#sessions.leave(former);
    this.#lookOut.look();
  }

  /** @param isTakenOver Whoever hears that it is ready tells it what sessions follow. */
  #take(state: ServerState, isTakenOver: boolean): void {
    const previous = this.#state;
    if (isSameState(previous, state) && !isTakenOver) return;
    this.#state = state;
    if (state.kind === "failed") this.#grace.begin();
    if (state.kind === "idle" || state.kind === "disabled" || state.kind === "closed") {
      this.#wasUp = false;
      this.#grace.forget();
      this.#list(NO_DEFINITIONS);
    }
    this.#events.emit("state", { previous, state });
  }

  #list(definitions: Definitions): void {
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
    this.#lookOut.look();
  }
}

function hasSettled({ kind }: ServerState, place: Replica | undefined): boolean {
  return kind === "failed" || (place !== undefined && isUp(place));
}

/** When a restart comes next is told with its first mention. */
function isSameState(one: ServerState, other: ServerState): boolean {
  if (one.kind !== "restarting" || other.kind !== "restarting") return JSON.stringify(one) === JSON.stringify(other);
  return one.attempt === other.attempt && one.reason === other.reason;
}

export interface StateInputs {
  readonly isClosed: boolean;
  readonly isEnabled: boolean;
  /** Somebody wants it to run. */
  readonly isWanted: boolean;
  /** NATS answers. */
  readonly isClusterUp: boolean;
  /** It has been ready before, and was not disconnected since. */
  readonly wasUp: boolean;
  /** The node that ran it is there, and gave it away. */
  readonly isGivenAway: boolean;
  /** All nodes have tried, and this is why it runs nowhere. */
  readonly givenUp: { readonly reason: string; readonly hint?: string } | undefined;
  readonly now: number;
}

/** Another node needs about so long to take over. */
const TAKE_OVER_MS = 1000;

/** One state for a server that may run in several places, or between two of them. */
export function clusterState(places: readonly Pick<Replica, "state">[], now: StateInputs): ServerState {
  if (now.isClosed) return { kind: "closed" };
  if (!now.isEnabled) return { kind: "disabled" };
  if (!now.isWanted) return { kind: "idle" };
  const up = places.find(isUp)?.state;
  if (up !== undefined) return up;
  // A node that has failed gives the server to another one.
  const known = places.find(({ state }) => state?.kind === "connecting" || state?.kind === "restarting")?.state;
  if (known !== undefined) return known;
  if (now.givenUp !== undefined) {
    const { reason, hint } = now.givenUp;
    return { kind: "failed", reason, hint };
  }
  const takingOver = { kind: "restarting", attempt: 1, nextAt: now.now + TAKE_OVER_MS } as const;
  if (!now.isClusterUp) {
    return {
      ...takingOver,
      reason: "NATS cannot be reached, and without it nobody can say which node may run it",
      hint: "It starts by itself when NATS is back. `replicas: 2` or more lets a stateless server run meanwhile.",
    };
  }
  if (now.wasUp && !now.isGivenAway)
    return { ...takingOver, reason: "the node that ran it has gone; another takes over" };
  return { kind: "connecting" };
}

interface ClusteredFacts {
  readonly spec: ServerSpec;
  readonly state: ServerState;
  readonly toolCount: number;
  /** What the place says that knows most. */
  readonly place: ServerInfo | undefined;
  /** Names of the nodes that run it. */
  readonly nodes: readonly string[];
}

/** A server of the cluster as every node shows it: what this node thinks of it, and the rest from where it runs. */
function clusteredInfo({ spec, state, toolCount, place, nodes }: ClusteredFacts): ServerInfo {
  const lastError = "reason" in state ? state.reason : null;
  const facts = { spec, state, toolCount, lastError, warnings: [], agreement: null, auth: undefined };
  const own = serverInfo({ ...facts, transport: "stdio" });
  const { id, name, origin, tags } = own;
  const placed = { ...place, id, name, origin, tags, toolCount, state: state.kind, status: statusOf(state) };
  return {
    ...own,
    ...(place === undefined ? {} : placed),
    ...(lastError === null ? {} : { lastError }),
    ...(nodes.length === 0 ? {} : { node: nodes.toSorted().join(", ") }),
  };
}

/** The place where the sessions of a node follow resources: the same for all of them, so that each change is told once. */
class SubscriptionReplica {
  /** Of the program that was told what sessions follow. */
  #mark: string | undefined;

  of(places: readonly Replica[]): Replica | undefined {
    return places.toSorted((one, other) => one.slot - other.slot)[0];
  }

  /** It is to be told again. */
  forget(): void {
    this.#mark = undefined;
  }

  /** Whether it is one that does not know yet what sessions follow, and which one of the others knows; counts as told. */
  look(places: readonly Replica[]): { readonly isNew: boolean; readonly former?: Replica } {
    const place = this.of(places);
    if (place === undefined || !isUp(place) || place.mark === this.#mark) return { isNew: false };
    const former = places.find(({ mark }) => mark === this.#mark);
    this.#mark = place.mark;
    return former === undefined ? { isNew: true } : { isNew: true, former };
  }
}

/** What a server says of its own accord reaches the sessions of every node. */

const FORWARDED_EVENTS = ["log", "notice", "warning", "resource-updated"] as const satisfies (keyof ConnectionEvents)[];

type Events = Pick<Emitter<ConnectionEvents>, "emit">;

/** Of a server that runs here: to the sessions here and to the other nodes. */
function publishEvents(server: LocalServer, word: string, cluster: Cluster, events: Events): void {
  for (const name of FORWARDED_EVENTS) {
    server.on(name, (event) => {
      events.emit(name, event);
      if (cluster.nodes().length > 1) cluster.publish(eventsTopic(word), { name, event });
    });
  }
}

/** @param isHolder Whether the server runs at that node: what others say of it is not heard. */
function receiveEvents(
  word: string,
  cluster: Cluster,
  events: Events,
  isHolder: (node: string) => boolean,
): () => void {
  return cluster.subscribe(eventsTopic(word), ({ name, event }: JsonObject, from) => {
    const known = FORWARDED_EVENTS.find((each) => each === name);
    if (known === undefined || !isHolder(from)) return;
    // The other node sent it with `tellNews`: what is under a name is that event.
    events.emit(known, withLocalSession(event, cluster.node.id) as never);
  });
}

/** What is meant for one session names it as it is called where the server runs. */
function withLocalSession(event: unknown, node: string): unknown {
  if (!isJsonObject(event) || typeof event["session"] !== "string") return event;
  return { ...event, session: localSessionId(event["session"], node) };
}

/** Waiting for something to be seen, by whoever sees it next. */
class ChangeSignal {
  readonly #clock: Clock;
  readonly #looks = new Emitter<{ look: undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** There is something new to see. */
  look(): void {
    this.#looks.emit("look", undefined);
  }

  /** Resolves when it is so, or after this time. */
  until(isSo: () => boolean, limitMs: number): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        stopTimer();
        stopLooking();
        resolve();
      };
      const stopTimer = this.#clock.after(limitMs, finish);
      const stopLooking = this.#looks.on("look", () => {
        if (isSo()) finish();
      });
    });
  }

  /** Resolves with the next look, or after this time; rejects when the signal is aborted. */
  async next(limitMs: number, signal: AbortSignal): Promise<void> {
    const abort = (): void => this.look();
    signal.addEventListener("abort", abort, { once: true });
    let isFirst = true;
    const isNext = (): boolean => {
      const isOver = !isFirst || signal.aborted;
      isFirst = false;
      return isOver;
    };
    await this.until(isNext, limitMs);
    signal.removeEventListener("abort", abort);
    if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled by the caller.");
  }
}
