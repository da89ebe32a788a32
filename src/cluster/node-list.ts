/** Who is there. Each node writes its own entry again and again; NATS does not say when one runs out, so each node counts. */
import { Emitter } from "../base/emitter.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { Bucket, type BucketParts } from "./bucket.ts";
import type { ClusterNode } from "./cluster.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

interface NodeListOptions extends BucketParts {
  readonly leaseMs: number;
  readonly self: ClusterNode;
}

export interface NodeListEvents {
  nodes: undefined;
  gone: { readonly node: string };
  /** The own entry was written: NATS keeps things. */
  written: undefined;
  /** It could not be written for such a long time that the others count this node as gone. */
  unwritten: undefined;
}

interface HeardNode {
  readonly node: ClusterNode;
  readonly leaseMs: number;
  at: number;
}

export class NodeList {
  readonly events = new Emitter<NodeListEvents>();
  readonly #options: NodeListOptions;
  readonly #bucket: Bucket;
  readonly #others = new Map<string, HeardNode>();
  /** The last of those that have gone, so that what they sent before is known to be late. */
  readonly #gone = new Set<string>();
  #writtenAt = 0;
  #facts: JsonObject;
  #pulse: PauseAwareTimer | undefined;
  #cancelRenewal = (): void => {};
  #closed = false;

  constructor(options: NodeListOptions) {
    this.#options = options;
    this.#facts = options.self.facts;
    this.#bucket = new Bucket(
      { ...options, ttlMs: options.leaseMs },
      {
        onEntry: (key, value) => this.#hear(key, value),
        onRemoved: (key) => this.#remove(key),
        // Opened again. Who wrote nothing since NATS came back runs out by itself.
        onKeys: () => void (this.#pulse !== undefined && this.#renew()),
      },
    );
  }

  async open(): Promise<void> {
    await this.#bucket.open();
  }

  /** A node of the same cluster that counts leases otherwise: with it a lease could have two holders. */
  withOtherLease(): ClusterNode | undefined {
    return [...this.#others.values()].find(({ leaseMs }) => leaseMs !== this.#options.leaseMs)?.node;
  }

  async join(): Promise<void> {
    const { clock, leaseMs } = this.#options;
    await this.#write();
    this.#pulse = new PauseAwareTimer(clock, leaseMs / 8, (pausedMs) => this.#beat(pausedMs));
    this.#scheduleRenewal();
  }

  get self(): ClusterNode {
    return { ...this.#options.self, facts: this.#facts };
  }

  all(): readonly ClusterNode[] {
    const nodes = [this.self, ...[...this.#others.values()].map(({ node }) => node)];
    return nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  isAlive(id: string): boolean {
    return id === this.#options.self.id || this.#others.has(id);
  }

  isGone(id: string): boolean {
    return this.#gone.has(id);
  }

  setFacts(facts: JsonObject): void {
    this.#facts = facts;
    this.events.emit("nodes", undefined);
    void this.#renew();
  }

  /** NATS was away, perhaps for every node: each gets the time to be heard again. */
  linkUp(): void {
    const now = performance.now();
    for (const heard of this.#others.values()) heard.at = now;
  }

  async leave(): Promise<void> {
    this.#closed = true;
    this.#pulse?.stop();
    this.#cancelRenewal();
    const entry = await this.#bucket.get(this.#options.self.id).catch(() => undefined);
    if (entry !== undefined) await this.#bucket.remove(this.#options.self.id, entry.revision).catch(() => {});
    this.#bucket.close();
    this.events.clear();
  }

  #scheduleRenewal(): void {
    const { clock, leaseMs } = this.#options;
    this.#cancelRenewal = clock.after(leaseMs / 3, () => {
      this.#scheduleRenewal();
      void this.#renew();
    });
  }

  async #renew(): Promise<void> {
    // A failure is retried with the next renewal.
    await this.#write().catch(() => {});
  }

  async #write(): Promise<void> {
    if (this.#closed || !this.#options.link.isUp) return;
    const { self, leaseMs } = this.#options;
    await this.#bucket.put(self.id, { name: self.name, facts: this.#facts, leaseMs });
    this.#writtenAt = performance.now();
    this.events.emit("written", undefined);
  }

  #hear(id: string, value: JsonObject): void {
    if (id === this.#options.self.id) return;
    const facts = isJsonObject(value["facts"]) ? value["facts"] : {};
    const node = { id, name: String(value["name"]), facts };
    const before = this.#others.get(id)?.node;
    this.#gone.delete(id);
    this.#others.set(id, { node, leaseMs: Number(value["leaseMs"]), at: performance.now() });
    if (before === undefined || JSON.stringify(before) !== JSON.stringify(node)) this.events.emit("nodes", undefined);
  }

  #remove(id: string): void {
    if (!this.#others.delete(id)) return;
    this.#gone.add(id);
    for (const oldest of this.#gone) if (this.#gone.size > 256) this.#gone.delete(oldest);
    this.events.emit("gone", { node: id });
    this.events.emit("nodes", undefined);
  }

  #beat(pausedMs: number): void {
    for (const heard of this.#others.values()) heard.at += pausedMs;
    this.#writtenAt += pausedMs;
    // Without NATS no node can be heard.
    if (!this.#options.link.isUp) return;
    const oldest = performance.now() - this.#options.leaseMs;
    for (const [id, { at }] of this.#others) if (at < oldest) this.#remove(id);
    if (this.#writtenAt < oldest) this.events.emit("unwritten", undefined);
  }
}
