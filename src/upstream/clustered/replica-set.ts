/** ReplicaSet: where a server runs now, and when this node takes a slot or gives it back. */
import type { Lease } from "../../cluster/cluster.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ServerState } from "../../model/server-state.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import type { ClusteredServers, ReportedFailure } from "./clustered-servers.ts";
import { LocalReplica, ReplicaHost } from "./replica-host.ts";
import { LocalServer } from "./local-server.ts";
import { type ClaimTurn, claimTurn, isUp, leaseKey, type OpenServer, type Replica, specDigest } from "./replica.ts";
import { RemoteReplicas } from "./remote-replicas.ts";

export interface ReplicaSetOptions {
  readonly shared: ClusteredServers;
  readonly token: string;
  readonly deps: ConnectionDeps;
  readonly spec: () => ServerSpec;
  /** Whether it is to run at all. */
  readonly isWanted: () => boolean;
  readonly users: () => string[];
  /** A program was made that runs here. */
  readonly onServer: (server: LocalServer) => void;
  readonly warn: (message: string) => void;
  readonly onChange: () => void;
}

/** A node waits this long for each node that ranks before it. */
const CLAIM_TURN_MS = 300;
const CLAIM_AGAIN_MS = 500;
/** A program that moves loses what it has in memory: it must have been idle for this many leases. */
const MIN_IDLE_LEASES = 15;
/** One that was never used has nothing to lose. */
const MIN_UNTOUCHED_LEASES = 1;

interface LocalFailure extends Omit<ReportedFailure, "node"> {
  readonly at: number;
  /** The other nodes know of it; if they no longer do, an operator wants another try. */
  noted: boolean;
}

export class ReplicaSet {
  readonly #options: ReplicaSetOptions;
  readonly #remote: RemoteReplicas;
  readonly #stops: (() => void)[];
  #host: ReplicaHost | undefined;
  /** Runs without a lease: only what may run any number of times, while NATS is away. */
  #unleased: LocalServer | undefined;
  #ending: Promise<void> | undefined;
  #failure: LocalFailure | undefined;
  /** Nodes that it was given away for, until one of them has it. */
  #offeredTo: readonly string[] = [];
  /** Those that did not take it. */
  readonly #declined = new Set<string>();
  #claiming = false;
  /** The one that ran here lost its lease. */
  #wasLost = false;
  #cancelClaim: (() => void) | undefined;
  #stopTimers = new Set<() => void>();
  #closed = false;

  constructor(options: ReplicaSetOptions) {
    this.#options = options;
    const { shared, token } = options;
    const { cluster } = shared;
    this.#remote = new RemoteReplicas({
      ...options,
      onChange: () => {
        this.#reviewUnleased();
        options.onChange();
      },
    });
    const prefix = leaseKey(token, 0).slice(0, -1);
    this.#stops = [
      cluster.leases.onChange((key) => {
        if (key.startsWith(prefix)) this.review();
      }),
      cluster.on("up", () => this.review()),
      cluster.on("down", () => this.review()),
      cluster.on("nodes", () => this.review()),
      shared.on(token, () => this.review()),
      shared.add(this),
    ];
  }

  /** Those that agree with this node on the spec, by slot; one that runs here first. */
  replicas(): Replica[] {
    const { node } = this.#options.shared.cluster;
    const here = this.#host?.server ?? this.#unleased;
    return [...(here === undefined ? [] : [new LocalReplica(node.id, here, this.#host)]), ...this.#remote.agreeing()];
  }

  /** Why it runs nowhere, where every node that could run it has given up. */
  failure(): Omit<ReportedFailure, "node"> | undefined {
    const failure = this.#failure;
    if (failure === undefined) return undefined;
    // Others get the time to try.
    const others = this.#others().length > 0 && this.#clock.now() - failure.at < this.#patience;
    return others ? undefined : failure;
  }

  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** It runs nowhere because its node gave it away in order: another one takes it. */
  get isHandedOver(): boolean {
    const { lastHolder } = this.#remote;
    return !this.#wasLost && this.#options.shared.cluster.nodes().some(({ id }) => id === lastHolder);
  }

  /** A connection before this one still has a slot at this node, and finishes its calls. */
  get isHeldByPredecessor(): boolean {
    const { cluster } = this.#options.shared;
    if (this.#host !== undefined || this.#claiming) return false;
    const leases = cluster.leases.all();
    return this.#slots.some((slot) => leases.get(leaseKey(this.#options.token, slot))?.holder === cluster.node.id);
  }

  /** Looks at everything again; safe to call at any time. */
  review(): void {
    if (this.#closed) return;
    const { shared, spec } = this.#options;
    shared.candidates.declare(this, spec().enabled ? specDigest(spec()) : undefined);
    this.#remote.follow(shared.cluster.leases.all(), this.#slots.length);
    if (this.#remote.all().length > 0) {
      this.#offeredTo = [];
      this.#wasLost = false;
    }
    this.#reviewFailure();
    if (!this.#options.isWanted() || this.#isSurplus()) this.#stopHere();
    this.#scheduleClaim();
    this.#reviewUnleased();
    this.#options.onChange();
  }

  /** Another try on this node. */
  retryHere(): void {
    this.#failure = undefined;
  }

  /** The program that runs here takes another spec over; resolves when it has. */
  async respec(spec: ServerSpec): Promise<void> {
    this.#declined.clear();
    await (this.#host?.server ?? this.#unleased)?.respec(spec);
  }

  /** Runs it here although it is unknown which other nodes do. */
  runWithoutLease(): void {
    if (this.#host !== undefined || this.#unleased !== undefined || this.#closed) return;
    this.#unleased = this.#start();
    this.#options.onChange();
  }

  async moveTo(nodes: readonly string[]): Promise<boolean> {
    const host = this.#host;
    const { leaseMs, candidates } = this.#options.shared;
    const able = this.#idle(candidates.thatRun(specDigest(this.#options.spec())));
    const takers = nodes.filter((node) => able.includes(node) && !this.#declined.has(node));
    if (host === undefined || takers.length === 0) return false;
    const minLeases = host.server.isUntouched ? MIN_UNTOUCHED_LEASES : MIN_IDLE_LEASES;
    if (!host.server.isUnusedFor(leaseMs * minLeases)) return false;
    this.#offeredTo = takers;
    await this.#handOver(host, { drainMs: 0 });
    return true;
  }

  /** @param keepMs How long the slot is kept from others after the program has ended. */
  async close(options: { readonly drainMs: number; readonly keepMs?: number }): Promise<void> {
    this.#closed = true;
    this.#options.shared.candidates.declare(this, undefined);
    for (const stop of [...this.#stops, ...this.#stopTimers]) stop();
    this.#cancelClaim?.();
    const unleased = this.#unleased;
    await Promise.all([this.#host?.handOver(options), unleased?.drained(options.drainMs).then(() => unleased.close())]);
    await this.#ending;
    this.#remote.end();
  }

  get #clock(): ConnectionDeps["clock"] {
    return this.#options.deps.clock;
  }

  get #slots(): number[] {
    return Array.from({ length: this.#options.spec().replicas ?? 1 }, (_, slot) => slot);
  }

  get #isStateless(): boolean {
    return (this.#options.spec().replicas ?? 1) > 1;
  }

  get #patience(): number {
    return CLAIM_TURN_MS * 2 + this.#options.shared.leaseMs;
  }

  #reviewFailure(): void {
    const { shared, token, spec } = this.#options;
    const failure = this.#failure;
    if (failure === undefined) return;
    const { id } = shared.cluster.node;
    const isKnown = shared.failures(token, failure.digest).some(({ node }) => node === id);
    if (failure.digest !== specDigest(spec()) || (failure.noted && !isKnown)) this.#failure = undefined;
  }

  #isSurplus(): boolean {
    return this.#host !== undefined && this.#host.slot >= this.#slots.length;
  }

  /** It is not meant to run here any more. */
  #stopHere(): void {
    const host = this.#host;
    const unleased = this.#unleased;
    this.#unleased = undefined;
    if (unleased !== undefined) void this.#awaitEnd(unleased.close());
    if (host !== undefined) void this.#handOver(host, { drainMs: 0 });
  }

  /** The program without a lease ends when other nodes run every replica. */
  #reviewUnleased(): void {
    const unleased = this.#unleased;
    if (unleased === undefined || !this.#options.shared.cluster.isUp) return;
    // Counted by node: neither the lease that this node is just getting nor one that its holder has lost is another replica.
    const holders = new Set(this.#remote.all().flatMap((slot) => (isUp(slot) ? [slot.node] : [])));
    if (holders.size < this.#slots.length) return;
    this.#unleased = undefined;
    void this.#awaitEnd(unleased.drained(this.#options.spec().toolTimeout).then(() => unleased.close()));
  }

  #openSlots(): number[] {
    const leases = this.#options.shared.cluster.leases.all();
    return this.#slots.filter((slot) => !leases.has(leaseKey(this.#options.token, slot)));
  }

  /** The other nodes that may take a slot, or are about to say whether they do. */
  #others(): string[] {
    return this.#idle(this.#options.shared.candidates.thatMayRun(specDigest(this.#options.spec())));
  }

  /** Those of them that have no slot, and have not failed. */
  #idle(nodes: readonly string[]): string[] {
    const { shared, token, spec } = this.#options;
    const busy = new Set(this.#remote.all().map(({ node }) => node));
    for (const { node } of shared.failures(token, specDigest(spec()))) busy.add(node);
    return nodes.filter((node) => !busy.has(node));
  }

  openServer(): OpenServer | undefined {
    const { shared, token, isWanted } = this.#options;
    const slots = this.#closed || !isWanted() ? 0 : this.#openSlots().length;
    if (slots === 0) return undefined;
    const here = this.#mayHost ? [shared.cluster.node.id] : [];
    return { token, slots, nodes: [...here, ...this.#others()] };
  }

  get #mayHost(): boolean {
    return this.#ending === undefined && this.#host === undefined && this.#failure === undefined;
  }

  /** Undefined where this node is to take none now. */
  #nextClaim(): ClaimTurn | undefined {
    const { shared } = this.#options;
    const { cluster } = shared;
    const server = cluster.isUp && this.#mayHost ? this.openServer() : undefined;
    return server && claimTurn(cluster.node.id, shared.claimOrder(server), this.#openSlots());
  }

  #scheduleClaim(): void {
    const turn = this.#nextClaim();
    if (turn === undefined) {
      this.#cancelClaim?.();
      this.#cancelClaim = undefined;
      return;
    }
    this.#cancelClaim ??= this.#clock.after(turn.after * CLAIM_TURN_MS, () => {
      this.#cancelClaim = undefined;
      // With what is known by now, others may come first after all.
      if ((this.#nextClaim()?.after ?? 0) > turn.after) this.#scheduleClaim();
      else void this.#claim();
    });
  }

  async #claim(): Promise<void> {
    const slot = this.#nextClaim()?.slot;
    if (slot === undefined || this.#claiming) return;
    const { shared, token, spec } = this.#options;
    const facts = { server: spec().id, digest: specDigest(spec()), generation: 0, revision: 0 };
    this.#claiming = true;
    const lease = await shared.cluster.leases.claim(leaseKey(token, slot), facts).catch(() => undefined);
    this.#claiming = false;
    if (lease === undefined) return this.#reviewIn(CLAIM_AGAIN_MS);
    const isNeeded = !this.#closed && this.#options.isWanted() && this.#host === undefined;
    if (isNeeded && this.#ending === undefined) this.#begin(lease, slot);
    else await lease.release().catch(() => {});
    this.review();
  }

  #begin(lease: Lease, slot: number): void {
    const { shared, token, deps } = this.#options;
    const server = this.#unleased ?? this.#start();
    this.#unleased = undefined;
    this.#wasLost = false;
    for (const node of this.#offeredTo) this.#declined.add(node);
    this.#offeredTo = [];
    const { clock, hubSession } = deps;
    const host: ReplicaHost = new ReplicaHost({
      cluster: shared.cluster,
      clock,
      leaseMs: shared.leaseMs,
      token,
      slot,
      lease,
      server,
      hubSession,
      onLost: () => this.#lost(host),
    });
    this.#host = host;
  }

  #start(): LocalServer {
    const server = new LocalServer(this.#options.spec(), this.#options.deps);
    server.on("state", (state) => {
      if (state.kind === "failed") this.#giveUp(server, state);
      else this.#options.onChange();
    });
    server.on("changed", () => this.#options.onChange());
    this.#options.onServer(server);
    void server.connection.connect();
    return server;
  }

  /** Another node may run it from now on. */
  #lost(host: ReplicaHost): void {
    // It may be about to be handed over, and still finish its calls.
    if (this.#host !== host) return void host.server.kill();
    this.#host = undefined;
    this.#wasLost = true;
    if (this.#isStateless && !this.#closed) this.#unleased = host.server;
    else void this.#awaitEnd(host.server.kill());
    void host.end();
    this.review();
  }

  /** It cannot run here: another node may try, and all hear why. */
  #giveUp(server: LocalServer, { reason, hint }: Extract<ServerState, { kind: "failed" }>): void {
    // A program that is being handed over does not count any more.
    if (this.#host?.server !== server && this.#unleased !== server) return;
    const { shared, token } = this.#options;
    const why = { digest: server.digest, reason, hint };
    const failure: LocalFailure = { ...why, at: this.#clock.now(), noted: false };
    this.#failure = failure;
    this.#reviewIn(this.#patience);
    const told = shared.noteFailure(token, why).then(
      () => void (failure.noted = true),
      () => {},
    );
    const host = this.#host;
    if (host?.server === server) void told.then(() => this.#handOver(host, { drainMs: 0 }));
    else if (this.#unleased === server) {
      this.#unleased = undefined;
      void this.#awaitEnd(server.close());
    }
    this.#options.onChange();
  }

  async #handOver(host: ReplicaHost, options: { readonly drainMs: number }): Promise<void> {
    if (this.#host !== host) return;
    this.#host = undefined;
    await this.#awaitEnd(host.handOver(options));
  }

  /** Nothing is started here before what ended has gone. */
  #awaitEnd(work: Promise<void>): Promise<void> {
    const ending: Promise<void> = Promise.all([this.#ending, work.catch(() => {})]).then(() => {
      if (this.#ending !== ending) return;
      this.#ending = undefined;
      this.review();
    });
    this.#ending = ending;
    return ending;
  }

  #reviewIn(ms: number): void {
    const stop = this.#clock.after(ms, () => {
      this.#stopTimers.delete(stop);
      this.review();
    });
    this.#stopTimers.add(stop);
  }
}
