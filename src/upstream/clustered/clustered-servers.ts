/** State that the clustered servers of a node share: operators' wishes, failures by node, and load balancing. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { Emitter } from "../../base/emitter.ts";
import type { Cluster, SharedMap } from "../../cluster/cluster.ts";
import type { JsonObject } from "../../model/json.ts";
import { SessionLiveness } from "./cluster-sessions.ts";
import { lessLoadedNodes, type OpenServer, planClaims, serverCounts } from "./replica.ts";
import { endsWithin } from "../../base/async.ts";

interface ClusteredServersOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Of the cluster. */
  readonly leaseMs: number;
  /** How long calls in progress may take when a node stops. */
  readonly shutdownMs: number;
}

const MAX_READY_MS = 3000;
/** A wish is written again by every node that lives, and outlives the last one by this long. */
const WISH_TTL_MS = 60 * 60_000;
/** Names of nodes that are no longer there are shown until their servers are elsewhere. */
const MAX_NAMES = 256;

/** Why a node gave a server up. */
export interface ReportedFailure {
  readonly node: string;
  readonly digest: string;
  readonly reason: string;
  readonly hint?: string;
}

/** A server that some node is to run, and that may move to another one. */
interface Placeable {
  /** Undefined where nothing is to be started for it. */
  openServer(): OpenServer | undefined;
  /** Gives its slot back if it is idle and one of these nodes may take it; whether it did. */
  moveTo(nodes: readonly string[]): Promise<boolean>;
}

export class ClusteredServers {
  readonly cluster: Cluster;
  readonly leaseMs: number;
  readonly shutdownMs: number;
  readonly candidates: CandidateNodes;
  readonly liveness: SessionLiveness;
  readonly #clock: Clock;
  readonly #names = new Map<string, string>();
  readonly #events = new Emitter<Record<string, undefined>>();
  readonly #placeable = new Set<Placeable>();
  readonly #stops: (() => void)[];
  #map: SharedMap | undefined;
  #wishes: SharedMap | undefined;
  #stopRenewing: () => void = () => {};
  #opening: Promise<void> | undefined;
  #stopTimer: (() => void) | undefined;
  /** Of this turn of the event loop: what happens in the cluster is looked at by every server. */
  #plan: ReadonlyMap<string, { readonly server: OpenServer; readonly order: readonly string[] }> | undefined;
  #closed = false;

  constructor({ cluster, clock, leaseMs, shutdownMs }: ClusteredServersOptions) {
    this.cluster = cluster;
    this.leaseMs = leaseMs;
    this.shutdownMs = shutdownMs;
    this.#clock = clock;
    this.candidates = new CandidateNodes(cluster);
    this.liveness = new SessionLiveness(cluster);
    this.#stops = [
      cluster.on("up", () => void this.#open()),
      cluster.on("nodes", () => {
        this.#noteNames();
        this.#balanceLater();
      }),
      cluster.on("gone", ({ node }) => this.#forgetNode(node)),
      cluster.leases.onChange(() => this.#balanceLater()),
    ];
    this.#noteNames();
    this.#renewWishes();
    void this.#open();
  }

  /** Called when the shared state of a server has changed. */
  on(token: string, listener: () => void): () => void {
    return this.#events.on(token, listener);
  }

  /** Resolves when wishes are known, or cannot be had in time. */
  async ready(): Promise<void> {
    if (this.#map !== undefined) return;
    await endsWithin(this.#open(), { ms: MAX_READY_MS, clock: this.#clock });
  }

  /** Of a node, also for a while after it has gone. */
  nameOf(node: string): string {
    return this.#names.get(node) ?? node;
  }

  /** Whether operators want it disconnected, whatever its entry says. Another spec is another matter. */
  isUnwanted(token: string, digest: string): boolean {
    return this.#wishes?.get(`wish.${token}`)?.["unwanted"] === digest;
  }

  /** Holds on all nodes. Where NATS is away it cannot, and rejects. */
  async wish(token: string, digest: string, connected: boolean): Promise<void> {
    if (connected) return this.forgetWish(token);
    const wishes = await this.#openedWishes();
    await wishes.put(`wish.${token}`, { unwanted: digest });
    this.#events.emit(token, undefined);
  }

  async forgetWish(token: string): Promise<void> {
    const wishes = await this.#openedWishes();
    if (wishes.get(`wish.${token}`) === undefined) return;
    await wishes.take(`wish.${token}`);
    this.#events.emit(token, undefined);
  }

  /** Those of nodes that live, with this spec. */
  failures(token: string, digest: string): ReportedFailure[] {
    const living = new Set(this.cluster.nodes().map(({ id }) => id));
    return [...(this.#map?.entries() ?? [])].flatMap(([key, value]) => {
      const failure = key.startsWith(`failed.${token}.`) ? readFailure(value) : undefined;
      return failure !== undefined && failure.digest === digest && living.has(failure.node) ? [failure] : [];
    });
  }

  async noteFailure(token: string, failure: Omit<ReportedFailure, "node">): Promise<void> {
    const { id } = this.cluster.node;
    const map = await this.#opened();
    await map.put(`failed.${token}.${id}`, { ...failure, node: id });
    this.#events.emit(token, undefined);
  }

  /** All nodes may try again. */
  async forgetFailures(token: string): Promise<void> {
    const map = await this.#opened();
    const keys = [...map.entries().keys()].filter((key) => key.startsWith(`failed.${token}.`));
    await Promise.all(keys.map((key) => map.take(key)));
    this.#events.emit(token, undefined);
  }

  /** The order in which nodes try for a slot of this server. */
  claimOrder(server: OpenServer): readonly string[] {
    const known = this.#plan?.get(server.token);
    // Of others an older state does: who gets a slot is up to the leases.
    if (known !== undefined && isDeepStrictEqual(known.server, server)) return known.order;
    if (this.#plan === undefined) setImmediate(() => (this.#plan = undefined));
    const open = [...this.#placeable].flatMap((each) => each.openServer() ?? []);
    const orders = planClaims(this.#loads()[1], open);
    this.#plan = new Map(open.map((each) => [each.token, { server: each, order: orders.get(each.token) ?? [] }]));
    return orders.get(server.token) ?? [];
  }

  /** The returned function takes it out. */
  add(placeable: Placeable): () => void {
    this.#placeable.add(placeable);
    return () => this.#placeable.delete(placeable);
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
    this.#stopRenewing();
    this.liveness.close();
    for (const stop of this.#stops) stop();
  }

  #noteNames(): void {
    for (const { id, name } of this.cluster.nodes()) this.#names.set(id, name);
    for (const oldest of this.#names.keys()) if (this.#names.size > MAX_NAMES) this.#names.delete(oldest);
  }

  #renewWishes(): void {
    this.#stopRenewing = this.#clock.after(WISH_TTL_MS / 4, () => {
      for (const [key, value] of this.#wishes?.entries() ?? []) this.#wishes?.renew(key, value).catch(() => {});
      this.#renewWishes();
    });
  }

  /** Its id never comes back. */
  #forgetNode(node: string): void {
    const map = this.#map;
    if (map === undefined) return;
    const keys = [...map.entries().keys()].filter((key) => key.startsWith("failed.") && key.endsWith(`.${node}`));
    for (const key of keys) map.take(key).catch(() => {});
  }

  async #opened(): Promise<SharedMap> {
    await this.#open();
    return this.#map ?? this.cluster.map("servers");
  }

  async #openedWishes(): Promise<SharedMap> {
    await this.#open();
    return this.#wishes ?? this.#openWishes();
  }

  #open(): Promise<void> {
    this.#opening ??= Promise.all([this.cluster.map("servers"), this.#openWishes()]).then(
      ([map, wishes]) => {
        this.#map = map;
        this.#wishes = wishes;
        for (const each of [map, wishes]) {
          this.#stops.push(each.onChange((key) => this.#events.emit(key.split(".")[1] ?? "", undefined)));
          for (const key of each.entries().keys()) this.#events.emit(key.split(".")[1] ?? "", undefined);
        }
      },
      // Tried again when NATS answers.
      () => void (this.#opening = undefined),
    );
    return this.#opening;
  }

  #openWishes(): Promise<SharedMap> {
    return this.cluster.map("wishes", { ttlMs: WISH_TTL_MS });
  }

  /** Not at once: who has just come may be about to go, and what has just lost its node is placed again anyway. */
  #balanceLater(): void {
    if (this.#stopTimer !== undefined || this.#closed || lessLoadedNodes(...this.#loads()).length === 0) return;
    const wait = this.leaseMs * (2 + Math.random());
    this.#stopTimer = this.#clock.after(wait, () => {
      this.#stopTimer = undefined;
      void this.#balance().then(() => this.#balanceLater());
    });
  }

  /** One at a time. */
  async #balance(): Promise<void> {
    const nodes = lessLoadedNodes(...this.#loads());
    if (nodes.length === 0 || !this.cluster.isUp) return;
    for (const placeable of this.#placeable) if (await placeable.moveTo(nodes)) return;
  }

  #loads(): [string, Map<string, number>] {
    const nodes = this.cluster.nodes().map(({ id }) => id);
    return [this.cluster.node.id, serverCounts(nodes, this.cluster.leases.all().values())];
  }
}

function readFailure({ node, digest, reason, hint }: JsonObject): ReportedFailure | undefined {
  if (typeof node !== "string" || typeof digest !== "string") return undefined;
  return { node, digest, reason: String(reason), ...(typeof hint === "string" ? { hint } : {}) };
}

/** All nodes write their facts several times in each lease: enough of a digest to tell specs apart. */
const MARK_LENGTH = 12;

/** Which nodes would run a server: each publishes it, because their configs may differ. */
class CandidateNodes {
  readonly #cluster: Cluster;
  /** By whoever would run it here. */
  readonly #own = new Map<object, string>();
  /** Facts are received again with each renewal, and read by every server. */
  readonly #read = new WeakMap<JsonObject, ReadonlySet<string>>();
  #told = "";
  #telling = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** @param digest Of the spec that this node would run; undefined: it would run none. */
  declare(by: object, digest: string | undefined): void {
    const incarnation = digest?.slice(0, MARK_LENGTH);
    if (this.#own.get(by) === incarnation) return;
    if (incarnation === undefined) this.#own.delete(by);
    else this.#own.set(by, incarnation);
    if (this.#telling) return;
    this.#telling = true;
    setImmediate(() => this.#tell());
  }

  /** Other living nodes that would run it. */
  thatRun(digest: string): string[] {
    return this.#others((runs) => runs?.has(digest.slice(0, MARK_LENGTH)) === true);
  }

  /** The same, and those that have just come and said nothing yet. */
  thatMayRun(digest: string): string[] {
    return this.#others((runs) => runs?.has(digest.slice(0, MARK_LENGTH)) !== false);
  }

  #others(isOne: (runs: ReadonlySet<string> | undefined) => boolean): string[] {
    const self = this.#cluster.node.id;
    return this.#cluster.nodes().flatMap(({ id, facts }) => (id !== self && isOne(this.#runs(facts)) ? [id] : []));
  }

  #runs(facts: JsonObject): ReadonlySet<string> | undefined {
    const { runs } = facts;
    if (!Array.isArray(runs)) return undefined;
    const known = this.#read.get(facts) ?? new Set(runs.map(String));
    this.#read.set(facts, known);
    return known;
  }

  #tell(): void {
    this.#telling = false;
    const runs = [...new Set(this.#own.values())].toSorted();
    const told = runs.join(" ");
    const isKnown = told === this.#told && this.#cluster.node.facts["runs"] !== undefined;
    this.#told = told;
    if (!isKnown) this.#cluster.setFacts({ ...this.#cluster.node.facts, runs });
  }
}
