/**
 * One JetStream key-value bucket, kept open whatever happens to NATS: made again if NATS has forgotten it, watched again
 * after each loss of the connection. Keys may be any text.
 */
import type { KV, KvEntry, KvStatus, KvWatchEntry } from "@nats-io/kv";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Clock } from "../base/clock.ts";
import { endsWithin, pause } from "../base/async.ts";
import { Emitter } from "../base/emitter.ts";
import { type SharedMap, subjectToken, textOfToken } from "./cluster.ts";
import type { NatsLink } from "./nats-link.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

/** The options that every user of a bucket passes on to it. */
export interface BucketParts {
  readonly bucketName: string;
  /** On how many servers NATS keeps it, if it is made here. */
  readonly copies: number;
  readonly link: NatsLink;
  readonly clock: Clock;
  warn(message: string): void;
}

export interface BucketOptions extends BucketParts {
  /** Entries that were not written for this long disappear. */
  readonly ttlMs: number | undefined;
  /** `create` makes nothing before the bucket is this old. */
  readonly ripeMs?: number;
}

export interface BucketListener {
  onEntry(key: string, value: JsonObject, revision: number): void;
  onRemoved(key: string, revision: number): void;
  /** After each new watch: keys that are not there count as removed. */
  onKeys(keys: ReadonlySet<string>): void;
}

const RETRY_MS = 250;
const WAIT_MS = 1000;
const OPEN_ATTEMPTS = 3;
/** By then every node that is there has heard of a removal. */
const MARKER_MS = 60_000;

export class Bucket {
  readonly #options: BucketOptions;
  readonly #listener: BucketListener;
  readonly #offLink: (() => void)[];
  #kv: KV | undefined;
  #era = 0;
  /** By the steady clock of this process. */
  #ripeAt = Infinity;
  #watch: (AsyncIterable<KvWatchEntry> & { stop(): void }) | undefined;
  #healing = false;
  /** The link was lost since it was opened. */
  #stale = false;
  #closed = false;
  /** Keys heard since the present watch began. */
  #heard = new Set<string>();
  #onHeard: (() => void) | undefined;
  #onOpened: (() => void)[] = [];

  constructor(options: BucketOptions, listener: BucketListener) {
    this.#options = options;
    this.#listener = listener;
    const { events } = options.link;
    this.#offLink = [
      // The bucket that comes back may be another one of the same name.
      events.on("down", () => (this.#kv = undefined)),
      events.on("up", () => this.heal()),
    ];
  }

  /**
   * Revisions begin at 1 again when NATS has lost the bucket. Added to a revision, this gives a number that still grows: the
   * microseconds at which the bucket was made. It would take a million writes a second to catch up with it.
   */
  get era(): number {
    return this.#era;
  }

  /** Resolves when everything that is in it has been heard. */
  async open(): Promise<void> {
    const { TimeoutError } = this.#options.link.packages.transport;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#open();
      } catch (error) {
        // Several NATS servers first agree on who leads a new bucket.
        if (attempt === OPEN_ATTEMPTS || !(error instanceof TimeoutError || isAlreadyCreated(error))) throw error;
        await this.#after(RETRY_MS);
      }
    }
  }

  async put(key: string, value: JsonObject): Promise<number> {
    return await this.#ask((kv) => kv.put(subjectToken(key), this.#signed(key, value)));
  }

  /**
   * Undefined if it is there already, or the bucket is too young. That is said when it is old enough: so all nodes try again
   * from the same moment on, in whatever order they have agreed on.
   */
  async create(key: string, value: JsonObject): Promise<number | undefined> {
    return await this.#unlessChanged(async (kv) => {
      // Asked here, because the bucket may be another one since the call began.
      const youngMs = this.#ripeAt - performance.now();
      if (youngMs > 0) return await this.#after(youngMs);
      return await kv.create(subjectToken(key), this.#signed(key, value));
    });
  }

  /** Undefined if it is not at that revision. */
  async update(key: string, value: JsonObject, revision: number, timeoutMs?: number): Promise<number | undefined> {
    return await this.#unlessChanged((kv) =>
      kv.update(subjectToken(key), this.#signed(key, value), revision, timeoutMs),
    );
  }

  /** Undefined if it is not at that revision. */
  async remove(key: string, revision: number): Promise<true | undefined> {
    return await this.#unlessChanged(async (kv) => {
      await kv.delete(subjectToken(key), { previousSeq: revision });
      return true as const;
    });
  }

  async get(key: string): Promise<{ readonly value: JsonObject; readonly revision: number } | undefined> {
    const entry = await this.#ask((kv) => kv.get(subjectToken(key)));
    const value = entry === null ? undefined : this.#valueOf(key, entry);
    if (entry === null || value === undefined || value === "forged") return undefined;
    return { value, revision: entry.revision };
  }

  /** Opens it again, and goes on trying until that works or the link is down. */
  heal(): void {
    this.#stale = true;
    if (!this.#healing) void this.#tryUntilOpen();
  }

  close(): void {
    this.#closed = true;
    for (const off of this.#offLink) off();
    this.#watch?.stop();
  }

  async #tryUntilOpen(): Promise<void> {
    const { link } = this.#options;
    this.#healing = true;
    while (this.#stale && !this.#closed && link.isUp) {
      this.#stale = false;
      try {
        await this.#open();
      } catch {
        this.#stale = true;
        await this.#after(RETRY_MS);
      }
    }
    this.#healing = false;
  }

  async #open(): Promise<void> {
    const { link, bucketName: name, ttlMs, copies } = this.#options;
    const old = this.#watch;
    // Whoever follows it would take its end for a loss, and open again.
    this.#watch = undefined;
    old?.stop();
    const kv = await link.kvm.create(name, {
      ttl: ttlMs,
      replicas: copies,
      // Read from the server that takes the writes: another copy may be behind.
      allow_direct: false,
    });
    const status = await kv.status();
    await this.#keepTtl(status);
    this.#enter(status);
    this.#kv = kv;
    for (const opened of this.#onOpened.splice(0)) opened();
    this.#heard = new Set();
    const watch = await kv.watch();
    this.#watch = watch;
    void this.#follow(watch);
    const keys = await this.#keys(kv);
    await this.#allHeard(keys);
    if (this.#watch === watch) this.#listener.onKeys(new Set([...keys, ...this.#heard]));
  }

  async #keys(kv: KV): Promise<Set<string>> {
    const keys = new Set<string>();
    const words = await kv.keys();
    // Without it the list waits for seconds if its last entry runs out while it is made.
    const cancel = this.#options.clock.after(WAIT_MS, () => words.stop());
    for await (const word of words) keys.add(textOfToken(word));
    cancel();
    return keys;
  }

  /** It may be another bucket than before. How old it is is known by times of the NATS server alone, and not exactly. */
  #enter({ replicas, streamInfo: { config, created, state, ts } }: KvStatus): void {
    const madeAt = Date.parse(created);
    if (this.#era === madeAt * 1000) return;
    const { copies, warn } = this.#options;
    // Not changed from here: a bucket that is given more copies does not answer for a while, and leases would be lost.
    if (replicas < copies) warn(`NATS has ${replicas} of ${copies} copies of ${config.name}: see nats stream edit.`);
    this.#era = madeAt * 1000;
    // Some servers do not say what time it is: then it is at least that of the last write.
    const oldMs = Math.max(0, ...[state.last_ts, ts ?? created].map((time) => (Date.parse(time) || 0) - madeAt));
    this.#ripeAt = performance.now() + (this.#options.ripeMs ?? 0) - oldMs;
  }

  /** A bucket that is there keeps its own TTL, and leases would be safe for another time than the nodes believe. */
  async #keepTtl({ ttl, streamInfo }: KvStatus): Promise<void> {
    const { link, bucketName: name, ttlMs = 0, warn } = this.#options;
    if (ttl === ttlMs) return;
    warn(`The bucket ${name} kept entries for ${ttl} ms; now for ${ttlMs} ms.`);
    const nanoseconds = ttlMs * 1_000_000;
    const twoMinutes = 120_000_000_000;
    await link.streams.update(streamInfo.config.name, {
      max_age: nanoseconds,
      duplicate_window: nanoseconds === 0 ? twoMinutes : Math.min(nanoseconds, twoMinutes),
    });
  }

  async #follow(watch: AsyncIterable<KvWatchEntry>): Promise<void> {
    try {
      for await (const entry of watch) {
        if (this.#watch !== watch) return;
        this.#hear(entry);
      }
    } catch (error) {
      this.#options.warn(`The watch of ${this.#options.bucketName} ended: ${String(error)}`);
    }
    if (this.#watch === watch && !this.#closed) this.heal();
  }

  #hear(entry: KvWatchEntry): void {
    const key = textOfToken(entry.key);
    const value = this.#valueOf(key, entry);
    this.#heard.add(key);
    // As if it had not been written: what was there before goes on, as far as this node knows it.
    if (value === "forged") return this.#onHeard?.();
    if (value === undefined) {
      this.#listener.onRemoved(key, entry.revision);
      this.#clearAway(entry.revision);
    } else this.#listener.onEntry(key, value, entry.revision);
    this.#onHeard?.();
  }

  /** NATS keeps a mark of each key that was removed, for as long as its entries live: for ever, where they do not run out. */
  #clearAway(revision: number): void {
    const { link, bucketName: name, clock, ttlMs } = this.#options;
    if (ttlMs !== undefined) return;
    const era = this.#era;
    clock.after(MARKER_MS, () => {
      // In another bucket the number may be that of an entry. Most often a node was faster, or the key is there again.
      if (this.#era === era && link.isUp && !this.#closed)
        link.streams.deleteMessage(`KV_${name}`, revision, false).catch(() => {});
    });
  }

  /** An entry can run out before it is heard, so this does not wait for ever. */
  async #allHeard(keys: ReadonlySet<string>): Promise<void> {
    const isThere = (): boolean => [...keys].every((key) => this.#heard.has(key));
    if (isThere()) return;
    const heard = new Promise<void>((resolve) => {
      this.#onHeard = () => void (isThere() && resolve());
    });
    await endsWithin(heard, { ms: WAIT_MS, clock: this.#options.clock });
    this.#onHeard = undefined;
  }

  async #unlessChanged<Result>(act: (kv: KV) => Promise<Result>): Promise<Result | undefined> {
    const { JetStreamApiError, JetStreamApiCodes } = this.#options.link.packages.jetstream;
    return await this.#ask(async (kv) => {
      try {
        return await act(kv);
      } catch (error) {
        const { StreamWrongLastSequence, StreamWrongLastSequenceUnknown } = JetStreamApiCodes;
        const changed: readonly number[] = [StreamWrongLastSequence, StreamWrongLastSequenceUnknown];
        if (error instanceof JetStreamApiError && changed.includes(error.code)) return undefined;
        throw error;
      }
    });
  }

  async #ask<Result>(act: (kv: KV) => Promise<Result>): Promise<Result> {
    const { link, bucketName: name } = this.#options;
    if (link.isUp && !this.#closed && this.#kv === undefined) await this.#opened();
    const kv = this.#kv;
    if (!link.isUp || kv === undefined || this.#closed) throw bucketUnavailable(name, undefined);
    try {
      return await act(kv);
    } catch (error) {
      // For example when NATS was wiped: then the bucket does not exist until a node creates it again.
      if (link.isUp && !this.#closed) void this.#healIfMissing();
      throw bucketUnavailable(name, error);
    }
  }

  #signed(key: string, value: JsonObject): string {
    const { link, bucketName: name } = this.#options;
    return link.signer.signEntry(name, key, JSON.stringify(value));
  }

  /** Undefined for the mark of a removal. */
  #valueOf(key: string, entry: KvEntry): JsonObject | "forged" | undefined {
    if (entry.operation !== "PUT") return undefined;
    const { link, bucketName: name } = this.#options;
    const text = link.signer.openEntry(name, key, entry.string());
    if (text === undefined) {
      link.events.emit("forged", { subject: `${name} ${key}` });
      return "forged";
    }
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  }

  async #after(ms: number): Promise<undefined> {
    await pause(ms, { clock: this.#options.clock });
  }

  /** NATS has just come back: soon it is open again, or not. */
  async #opened(): Promise<void> {
    const opened = new Promise<void>((resolve) => this.#onOpened.push(resolve));
    await endsWithin(opened, { ms: WAIT_MS, clock: this.#options.clock });
  }

  async #healIfMissing(): Promise<void> {
    try {
      await this.#options.link.streams.info(`KV_${this.#options.bucketName}`);
    } catch (error) {
      const { JetStreamApiError, JetStreamApiCodes } = this.#options.link.packages.jetstream;
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) this.heal();
    }
  }
}

function bucketUnavailable(name: string, cause: unknown): ToolcribError {
  return new ToolcribError("server_unavailable", `NATS does not answer for ${name}.`, {
    hint: "It is retried as soon as NATS is back.",
    cause,
  });
}

/** Two nodes made the bucket at the same moment; NATS tells the second that the name or its subjects are taken. */
function isAlreadyCreated(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === 10_058 || error.code === 10_065);
}

interface Entry {
  readonly value: JsonObject;
  /** Its revision, on top of the era of the bucket: what was kept before NATS lost everything is older than all of it. */
  readonly order: number;
  readonly at: number;
}

/** A JetStream bucket with a copy in memory. */
export class BucketMap implements SharedMap {
  readonly #bucket: Bucket;
  readonly #entries = new Map<string, Entry>();
  readonly #events = new Emitter<{ change: string }>();
  readonly #pulse: PauseAwareTimer | undefined;

  constructor(options: BucketOptions) {
    this.#bucket = new Bucket(options, {
      onEntry: (key, value, revision) => this.#set(key, value, this.#bucket.era + revision),
      onRemoved: (key, revision) => this.#delete(key, this.#bucket.era + revision),
      onKeys: (keys) => {
        for (const key of [...this.#entries.keys()]) if (!keys.has(key)) this.#delete(key, Infinity);
      },
    });
    const { ttlMs } = options;
    if (ttlMs === undefined) return;
    // NATS does not say when an entry runs out.
    this.#pulse = new PauseAwareTimer(options.clock, Math.min(ttlMs / 4, 60_000), () => {
      const oldest = performance.now() - ttlMs;
      for (const [key, { at }] of this.#entries) if (at < oldest) this.#delete(key, Infinity);
    });
  }

  async open(): Promise<void> {
    await this.#bucket.open();
  }

  get(key: string): JsonObject | undefined {
    return this.#entries.get(key)?.value;
  }

  entries(): ReadonlyMap<string, JsonObject> {
    return new Map([...this.#entries].map(([key, { value }]) => [key, value]));
  }

  async put(key: string, value: JsonObject): Promise<void> {
    const revision = await this.#bucket.put(key, value);
    this.#set(key, value, this.#bucket.era + revision);
  }

  async renew(key: string, value: JsonObject): Promise<boolean> {
    // As a rule this node has heard of the last write; if not, NATS is asked for it.
    let revision = (this.#entries.get(key)?.order ?? 0) - this.#bucket.era;
    for (;;) {
      const written = revision > 0 ? await this.#bucket.update(key, value, revision) : undefined;
      if (written !== undefined) {
        this.#set(key, value, this.#bucket.era + written);
        return true;
      }
      const found = await this.#bucket.get(key);
      if (found === undefined) {
        this.#delete(key, Infinity);
        return false;
      }
      ({ revision } = found);
    }
  }

  async take(key: string): Promise<boolean> {
    return (await this.takeOut(key)) !== undefined;
  }

  async takeOut(key: string): Promise<JsonObject | undefined> {
    for (;;) {
      const found = await this.#bucket.get(key);
      if (found === undefined) {
        this.#delete(key, Infinity);
        return undefined;
      }
      const taken = await this.#bucket.remove(key, found.revision);
      if (taken === undefined) continue;
      this.#delete(key, this.#bucket.era + found.revision);
      return found.value;
    }
  }

  onChange(listener: (key: string) => void): () => void {
    return this.#events.on("change", listener);
  }

  close(): void {
    this.#pulse?.stop();
    this.#bucket.close();
    this.#events.clear();
  }

  #set(key: string, value: JsonObject, order: number): void {
    const before = this.#entries.get(key);
    if (before !== undefined && before.order >= order) return;
    this.#entries.set(key, { value, order, at: performance.now() });
    this.#events.emit("change", key);
  }

  #delete(key: string, order: number): void {
    const before = this.#entries.get(key);
    if (before === undefined || before.order > order) return;
    this.#entries.delete(key);
    this.#events.emit("change", key);
  }
}
