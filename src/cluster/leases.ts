/**
 * Leases on a JetStream bucket whose entries run out after `leaseMs`.
 *
 * Why there is one holder at a time: an entry is made only where none is (`create`), and NATS drops it not before `leaseMs`
 * after it *stored* the last write. The holder counts from the moment *before it sent* that write, which is earlier, and
 * stops an eighth sooner still, for clocks that do not run alike. So it has always stopped before anybody else can begin.
 * It counts with clocks that go on while the process is paused, and asks them whenever `holds` is read; a process that wakes
 * up does not have to wait for its timers to learn that it lost. A write that NATS makes late, after a freeze, can only
 * lengthen the entry, never shorten it.
 *
 * A NATS that has lost everything knows of no holder, while one that it has forgotten trusts its clock. So in a new bucket
 * nobody gets anything for the first `leaseMs`: whoever held something wrote it before the bucket was made, and has stopped by
 * then. That holds for the very first start too, because a node cannot tell it from a loss: those who held something
 * may not have come back yet.
 *
 * What this rests on: all nodes agree on `leaseMs` (a node that differs is not let in), the clock of the NATS server
 * does not jump forward (several servers: their clocks do not differ by an eighth of `leaseMs`), and NATS loses all or nothing.
 * One that loses only its last writes, as it may when its machine loses power and there is no other copy, gives away what is
 * held until its holder renews it. Whoever acts in the name of a lease outside of this process passes its term along, so that
 * what was begun under an old term is refused.
 */
import type { Clock } from "../model/clock.ts";
import { Emitter } from "../model/emitter.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { Bucket } from "./bucket.ts";
import type { Lease, Leases, LeaseState } from "./cluster.ts";
import { HeldLease, moment } from "./held-lease.ts";
import type { NatsLink } from "./nats-link.ts";
import { Pulse } from "./pulse.ts";

interface LeasesOptions {
  readonly link: NatsLink;
  readonly bucketName: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly copies: number;
  readonly nodeId: string;
  warn(message: string): void;
}

interface Heard {
  readonly state: LeaseState;
  readonly revision: number;
  at: number;
}

export class BucketLeases implements Leases {
  readonly #options: LeasesOptions;
  readonly #bucket: Bucket;
  readonly #held = new Map<string, HeldLease>();
  readonly #heard = new Map<string, Heard>();
  readonly #events = new Emitter<{ change: string }>();
  readonly #pulse: Pulse;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#bucket = new Bucket(
      { ...options, name: options.bucketName, ttlMs: options.leaseMs, ripeMs: options.leaseMs },
      {
        onEntry: (key, value, revision) => this.#hear(key, value, revision),
        onRemoved: (key, revision) => this.#forget(key, revision),
        onKeys: (keys) => {
          for (const key of [...this.#heard.keys()]) if (!keys.has(key)) this.#forget(key, Infinity);
        },
      },
    );
    this.#pulse = new Pulse(options.clock, options.leaseMs / 8, (pausedMs) => this.#beat(pausedMs));
  }

  async open(): Promise<void> {
    await this.#bucket.open();
  }

  all(): ReadonlyMap<string, LeaseState> {
    const states = new Map<string, LeaseState>();
    for (const [key, { state }] of this.#heard) states.set(key, state);
    for (const [key, lease] of this.#held) {
      if (lease.holds) states.set(key, { key, holder: lease.holder, term: lease.term, value: lease.value });
    }
    return states;
  }

  onChange(listener: (key: string) => void): () => void {
    return this.#events.on("change", listener);
  }

  async claim(key: string, value: JsonObject): Promise<Lease | undefined> {
    const { clock, leaseMs, nodeId } = this.#options;
    const sentAt = moment();
    const revision = await this.#bucket.create(key, { holder: nodeId, value });
    if (revision === undefined) return undefined;
    const lease: HeldLease = new HeldLease({
      ...{ key, holder: nodeId, revision, value, sentAt, clock, leaseMs },
      term: this.#bucket.era + revision,
      bucket: this.#bucket,
      onChange: () => {
        if (this.#held.get(key) === lease && lease.lost.aborted) this.#held.delete(key);
        this.#changed(key);
      },
    });
    if (!lease.holds) return undefined;
    this.#held.set(key, lease);
    this.#heard.delete(key);
    this.#changed(key);
    return lease;
  }

  async close(): Promise<void> {
    this.#pulse.stop();
    await Promise.all([...this.#held.values()].map((lease) => lease.release()));
    this.#bucket.close();
    this.#events.clear();
  }

  #hear(key: string, entry: JsonObject, revision: number): void {
    const holder = String(entry["holder"]);
    // Of its own it knows more than NATS says, and what it has lost it has lost.
    if (holder === this.#options.nodeId) return void this.#heard.delete(key);
    const before = this.#heard.get(key);
    const term = typeof entry["term"] === "number" ? entry["term"] : this.#bucket.era + revision;
    const state = { key, holder, term, value: isJsonObject(entry["value"]) ? entry["value"] : {} };
    this.#heard.set(key, { state, revision, at: performance.now() });
    if (before === undefined || JSON.stringify(before.state) !== JSON.stringify(state)) this.#changed(key);
  }

  #forget(key: string, revision: number): void {
    const heard = this.#heard.get(key);
    if (heard === undefined || heard.revision > revision) return;
    this.#heard.delete(key);
    this.#changed(key);
  }

  #beat(pausedMs: number): void {
    const oldest = performance.now() - this.#options.leaseMs;
    for (const [key, heard] of this.#heard) {
      heard.at += pausedMs;
      if (heard.at < oldest) this.#forget(key, Infinity);
    }
  }

  #changed(key: string): void {
    this.#events.emit("change", key);
  }
}
