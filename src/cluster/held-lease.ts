/** A lease that this node holds: renewed until it is released or lost. */
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Bucket } from "./bucket.ts";
import type { Lease } from "./cluster.ts";

/** By both clocks: the one that nobody sets may stand still while the machine sleeps, and the other may be set back. */
export interface Moment {
  readonly steady: number;
  readonly wall: number;
}

export function moment(): Moment {
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

export class HeldLease implements Lease {
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
  #turn: Promise<unknown> = Promise.resolve();

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
    await this.#inTurn(async () => {
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
    await this.#inTurn(() => this.#options.bucket.remove(this.key, this.#revision)).catch(() => {});
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
    return this.#options.clock.after(ms, () => void this.#inTurn(() => this.#renew()));
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
    let sentAt = moment();
    let revision = await bucket.update(this.key, entry, this.#revision, leaseMs / 4);
    if (revision === undefined && (await this.#ownLateWrite())) {
      sentAt = moment();
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

  async #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(act, act);
    this.#turn = turn.catch(() => {});
    return await turn;
  }
}

function lostError(key: string): ToolcribError {
  return new ToolcribError("conflict", `The lease ${key} is not held any more.`);
}
