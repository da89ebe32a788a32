/**
 * ClusteredConnection: a server that runs at one node of the cluster, or at several as `replicas` says. To the hub of each
 * node it is a connection like any other.
 */
import { Emitter } from "../../model/emitter.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { SessionContext } from "../../model/session.ts";
import { type Definitions, NO_DEFINITIONS, type Use, type UseContext } from "../../model/source.ts";
import { addressWord } from "../../cluster/address-word.ts";
import { removed, unavailable } from "../call-failure.ts";
import { longestCallMs } from "../calls.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import type { ConnectionEvents } from "../connection-events.ts";
import { DEFAULT_GRACE_MS, Grace } from "../grace.ts";
import { sameLink } from "../same-link.ts";
import type { ServerConnection } from "../server-connection.ts";
import type { SkillOffer } from "../skill-offer.ts";
import { clusteredInfo } from "./clustered-info.ts";
import type { ClusteredServers } from "./clustered-servers.ts";
import { FollowedPlace } from "./followed-place.ts";
import { IntroducedSessions } from "./introduced-sessions.ts";
import { LookOut } from "./look-out.ts";
import { NotTaken } from "./not-taken.ts";
import { overallState } from "./overall-state.ts";
import { isUp, type Place } from "./place.ts";
import { hearNews, tellNews } from "./relayed-events.ts";
import { Slots } from "./slots.ts";
import { specDigest } from "./spec-digest.ts";

/** How long a call waits for a node that runs the server. */
const WAIT_MS = 30_000;
/** While NATS is away that may be long. */
const WAIT_FOR_NATS_MS = 5000;
/** How long nodes may take to end what an operator disconnects. */
const LEAVE_MS = 20_000;
/** A removed server stays taken for so long: a node that has not heard of it must not start it again. */
const KEEP_MS = 2000;
const LOOK_AGAIN_MS = 200;

export class ClusteredConnection implements ServerConnection {
  readonly kind = "server";
  readonly id: string;
  readonly #deps: ConnectionDeps;
  readonly #shared: ClusteredServers;
  readonly #word: string;
  readonly #slots: Slots;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #lookOut: LookOut;
  readonly #grace: Grace;
  readonly #stops: (() => void)[];
  readonly #sessions = new IntroducedSessions();
  readonly #followed = new FollowedPlace();
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
    this.#word = addressWord(spec.id);
    this.#lookOut = new LookOut(deps.clock);
    this.#state = spec.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#grace = new Grace(deps.clock, deps.graceMs ?? DEFAULT_GRACE_MS, () => this.#list(NO_DEFINITIONS));
    const { cluster } = shared;
    this.#slots = new Slots({
      shared,
      word: this.#word,
      deps,
      spec: () => this.#spec,
      isWanted: () => this.#isMeantToRun,
      users: () => this.#sessions.users(),
      onServer: (server) => {
        if (this.#logLevel !== undefined) void server.connection.setLogLevel(this.#logLevel);
        tellNews(server, this.#word, cluster, this.#events);
      },
      warn: (message) => this.#events.emit("warning", message),
      onChange: () => this.#look(),
    });
    this.#stops = [
      hearNews(this.#word, cluster, this.#events, (node) => this.#nodes().includes(node)),
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
    await this.#lookOut.until(() => this.#isClosed || !this.#isPending, this.#spec.timeout + WAIT_MS);
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
    await this.#lookOut.until(() => this.#slots.places().length === 0 && !this.#slots.isEnding, LEAVE_MS);
  }

  async close(): Promise<void> {
    await this.#end({ drainMs: Math.min(longestCallMs(this.#spec), this.#shared.shutdownMs) });
  }

  retire(): Promise<void> {
    // Not at once: a node that has not heard of its end would start it.
    if (this.#retiring === undefined) {
      this.#deps.clock.after(KEEP_MS, () => void this.#shared.forgetWish(this.#word).catch(() => {}));
    }
    this.#retiring ??= this.#end({ drainMs: longestCallMs(this.#spec), keepMs: KEEP_MS });
    return this.#retiring;
  }

  /** The program gives way to another one in the place where it runs: it is not this node's to replace. */
  respec(spec: ServerSpec): boolean {
    if (spec.url !== undefined) return false;
    const before = this.#spec;
    this.#spec = spec;
    this.#seatUsers();
    if (spec.enabled && spec.autoConnect && !before.enabled) this.#isWanted = true;
    const isOther = !sameLink(before, spec);
    if (isOther) this.#isTrustHeld = before.trust !== "trusted";
    const changing = this.#slots.respec(spec).then(async () => {
      const isSettled = (): boolean => this.#isClosed || !this.#isMeantToRun || isOver(this.#state, this.#best());
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
    if (this.#retiring !== undefined || this.#isClosed) throw removed(this.id);
    // What nobody connected yet is connected by its first call.
    if (this.#state.kind === "idle" && !this.#isUnwanted) {
      await this.#shared.ready();
      this.#isWanted = true;
      this.#slots.review();
    }
    const { clock } = this.#deps;
    const lastStart = clock.now() + longestCallMs(this.#spec);
    let began = clock.now();
    for (;;) {
      const place = this.#placeFor(use);
      let isLeaving = this.#slots.isHeldBefore;
      try {
        if (place !== undefined) return await this.#runAt(place, use, context);
      } catch (error) {
        if (!(error instanceof NotTaken)) throw error;
        isLeaving = error.isMoving;
      }
      // Calls that were there first are waited for, as long as one may take.
      if (isLeaving) began = Math.min(clock.now(), lastStart);
      const limitMs = this.#shared.cluster.isUp ? WAIT_MS : WAIT_FOR_NATS_MS;
      const leftMs = began + Math.min(this.#spec.toolTimeout, limitMs) - clock.now();
      if (!this.#mayCome || leftMs <= 0) throw unavailable(this.info(), this.#state);
      await this.#lookOut.next(Math.min(leftMs, LOOK_AGAIN_MS), context.signal);
    }
  }

  async #runAt(place: Place, use: Use, context: UseContext): Promise<Result> {
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

  #placeFor({ kind }: Use): Place | undefined {
    if (kind === "subscribe" || kind === "unsubscribe") return this.#followed.of(this.#slots.places());
    const { cluster } = this.#shared;
    const open = this.#slots.places().filter(({ isOpen }) => isOpen);
    if (open.length === 0 && !cluster.isUp && (this.#spec.replicas ?? 1) > 1) {
      // Stateless by declaration: better here than nowhere.
      this.#slots.runFreely();
      return this.#slots.places()[0];
    }
    const up = open.filter(isUp);
    const pool = up.length > 0 ? up : open;
    return pool.find(({ node }) => node === cluster.node.id) ?? pool[this.#next++ % pool.length];
  }

  #best(): Place | undefined {
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
    const state = overallState(places, {
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
    if (isSame(previous, state) && !isTakenOver) return;
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

function isOver({ kind }: ServerState, place: Place | undefined): boolean {
  return kind === "failed" || (place !== undefined && isUp(place));
}

/** When a restart comes next is told with its first mention. */
function isSame(one: ServerState, other: ServerState): boolean {
  if (one.kind !== "restarting" || other.kind !== "restarting") return JSON.stringify(one) === JSON.stringify(other);
  return one.attempt === other.attempt && one.reason === other.reason;
}
