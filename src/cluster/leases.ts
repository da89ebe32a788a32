/**
 * Leases on a JetStream bucket whose entries run out after `leaseMs`.
 *
 * Why there is one holder at a time: an entry is made only where none is (`create`), and NATS drops it not before `leaseMs`
 * after it *stored* the last write. The holder counts from the moment *before it sent* that write, which is earlier, and
 * stops an eighth sooner still, for clocks that do not run alike. So it has always stopped before another node can begin.
 * It counts with clocks that go on while the process is paused, and asks them whenever `holds` is read; a process that wakes
 * up does not have to wait for its timers to learn that it lost. A write that NATS makes late, after a freeze, can only
 * lengthen the entry, never shorten it.
 *
 * A NATS that has lost everything knows of no holder, while one that it has forgotten trusts its clock. So in a new bucket
 * no lease is granted for the first `leaseMs`: a node that held one wrote it before the bucket was made, and has stopped by
 * then. That holds for the very first start too, because a node cannot tell it from a loss: those who held something
 * may not have come back yet.
 *
 * Assumptions: all nodes agree on `leaseMs` (a node that differs is not let in), the clock of the NATS server
 * does not jump forward (several servers: their clocks do not differ by an eighth of `leaseMs`), and NATS loses all or nothing.
 * One that loses only its last writes, as it may when its machine loses power and there is no other copy, gives away what is
 * held until its holder renews it. Whoever acts in the name of a lease outside of this process passes its term along, so that
 * what was begun under an old term is refused.
 */
import { Queue } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { Emitter } from "../base/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { Bucket, type BucketParts } from "./bucket.ts";
import type { Lease, Leases, LeaseState } from "./cluster.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

interface LeasesOptions extends BucketParts {
  readonly leaseMs: number;
  readonly nodeId: string;
}

interface HeardLease {
  readonly state: LeaseState;
  readonly revision: number;
  at: number;
}

export class BucketLeases implements Leases {
  readonly #options: LeasesOptions;
  readonly #bucket: Bucket;
  readonly #held = new Map<string, HeldLease>();
  readonly #heard = new Map<string, HeardLease>();
  readonly #events = new Emitter<{ change: string }>();
  readonly #pulse: PauseAwareTimer;

  constructor(options: LeasesOptions) {
    this.#options = options;
    const { leaseMs } = options;
    this.#bucket = new Bucket(
      { ...options, ttlMs: leaseMs, ripeMs: leaseMs },
      {
        onEntry: (key, value, revision) => this.#hear(key, value, revision),
        onRemoved: (key, revision) => this.#forget(key, revision),
        onKeys: (keys) => {
          for (const key of [...this.#heard.keys()]) if (!keys.has(key)) this.#forget(key, Infinity);
        },
      },
    );
    this.#pulse = new PauseAwareTimer(options.clock, leaseMs / 8, (pausedMs) => this.#beat(pausedMs));
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
    const sentAt = currentMoment();
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

/** By both clocks: the steady one may stop while the machine sleeps, and the wall clock may be set back. */
interface Moment {
  readonly steady: number;
  readonly wall: number;
}

function currentMoment(): Moment {
  return { steady: performance.now(), wall: Date.now() };
}

function elapsedSince({ steady, wall }: Moment): number {
  return Math.max(performance.now() - steady, Date.now() - wall);
}

const TRUSTED_SHARE = 7 / 8;

interface HeldLeaseOptions {
  readonly key: string;
  readonly holder: string;
  readonly term: number;
  readonly revision: number;
  readonly value: JsonObject;
  /** Before the claim was sent. */
  readonly sentAt: Moment;
  readonly bucket: Bucket;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** It is not held any more, or its value is another. */
  onChange(): void;
}

/** A lease that this node holds: renewed until it is released or lost. */
class HeldLease implements Lease {
  readonly key: string;
  readonly holder: string;
  readonly term: number;
  readonly #options: HeldLeaseOptions;
  readonly #lost = new AbortController();
  #value: JsonObject;
  #revision: number;
  /** Before the last write that NATS took was sent. */
  #since: Moment;
  #cancelEnd: () => void;
  #cancelRenewal: () => void;
  /** One write at a time, because each needs the revision of the one before. */
  readonly #queue = new Queue();

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
    this.key = options.key;
    this.holder = options.holder;
    this.term = options.term;
    this.#value = options.value;
    this.#revision = options.revision;
    this.#since = options.sentAt;
    this.#cancelEnd = this.#endLater();
    this.#cancelRenewal = this.#renewAfter(options.leaseMs / 3);
  }

  get value(): JsonObject {
    return this.#value;
  }

  get lost(): AbortSignal {
    // Whoever asks after a pause must not get the answer of before it.
    if (this.#left <= 0) this.end();
    return this.#lost.signal;
  }

  get holds(): boolean {
    if (this.#left <= 0) this.end();
    return !this.#lost.signal.aborted;
  }

  async setValue(value: JsonObject): Promise<void> {
    await this.#queue.run(async () => {
      if (!this.holds) throw lostError(this.key);
      this.#value = value;
      this.#options.onChange();
      if (!(await this.#write())) throw lostError(this.key);
    });
  }

  async release(): Promise<void> {
    const wasHeld = this.holds;
    this.end();
    if (!wasHeld) return;
    // If NATS does not answer, it runs out.
    await this.#queue.run(() => this.#options.bucket.remove(this.key, this.#revision)).catch(() => {});
  }

  /** From now on nothing is done in its name. */
  end(): void {
    if (this.#lost.signal.aborted) return;
    this.#cancelEnd();
    this.#cancelRenewal();
    this.#lost.abort();
    this.#options.onChange();
  }

  /** Milliseconds for which it can be trusted. */
  get #left(): number {
    return this.#options.leaseMs * TRUSTED_SHARE - elapsedSince(this.#since);
  }

  #endLater(): () => void {
    return this.#options.clock.after(Math.max(0, this.#left), () => {
      if (this.#left <= 0) this.end();
      else this.#cancelEnd = this.#endLater();
    });
  }

  #renewAfter(ms: number): () => void {
    return this.#options.clock.after(ms, () => void this.#queue.run(() => this.#renew()));
  }

  async #renew(): Promise<void> {
    const { leaseMs } = this.#options;
    if (!this.holds) return;
    try {
      await this.#write();
      if (this.holds) this.#cancelRenewal = this.#renewAfter(leaseMs / 3);
    } catch {
      if (this.holds) this.#cancelRenewal = this.#renewAfter(leaseMs / 12);
    }
  }

  /** False if the lease is lost. */
  async #write(): Promise<boolean> {
    const { bucket, leaseMs } = this.#options;
    const entry = { holder: this.holder, term: this.term, value: this.#value };
    let sentAt = currentMoment();
    let revision = await bucket.update(this.key, entry, this.#revision, leaseMs / 4);
    if (revision === undefined && (await this.#ownLateWrite())) {
      sentAt = currentMoment();
      revision = await bucket.update(this.key, entry, this.#revision, leaseMs / 4);
    }
    if (revision === undefined) {
      this.end();
      return false;
    }
    this.#revision = revision;
    if (!this.holds) return false;
    this.#since = sentAt;
    return true;
  }

  /** A write that got no answer in time may have been made all the same; then the revision is another, and still ours. */
  async #ownLateWrite(): Promise<boolean> {
    const found = await this.#options.bucket.get(this.key);
    if (found?.value["holder"] !== this.holder || found.value["term"] !== this.term) return false;
    this.#revision = found.revision;
    return true;
  }
}

function lostError(key: string): ToolcribError {
  return new ToolcribError("conflict", `The lease ${key} is no longer held.`);
}
