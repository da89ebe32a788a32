import type { Clock } from "../base/clock.ts";
import { Emitter } from "../base/emitter.ts";
import type { JsonObject } from "../model/json.ts";
import { Bucket } from "./bucket.ts";
import type { SharedMap } from "./cluster.ts";
import type { NatsLink } from "./nats-link.ts";
import { PauseAwareTimer } from "./pause-aware-timer.ts";

interface SharedMapDeps {
  readonly link: NatsLink;
  readonly bucketName: string;
  readonly clock: Clock;
  readonly ttlMs: number | undefined;
  readonly copies: number;
  warn(message: string): void;
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

  constructor(deps: SharedMapDeps) {
    this.#bucket = new Bucket(
      { ...deps, name: deps.bucketName },
      {
        onEntry: (key, value, revision) => this.#set(key, value, this.#bucket.era + revision),
        onRemoved: (key, revision) => this.#delete(key, this.#bucket.era + revision),
        onKeys: (keys) => {
          for (const key of [...this.#entries.keys()]) if (!keys.has(key)) this.#delete(key, Infinity);
        },
      },
    );
    const { ttlMs } = deps;
    if (ttlMs === undefined) return;
    // NATS does not say when an entry runs out.
    this.#pulse = new PauseAwareTimer(deps.clock, Math.min(ttlMs / 4, 60_000), () => {
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
    this.#changed(key);
  }

  #delete(key: string, order: number): void {
    const before = this.#entries.get(key);
    if (before === undefined || before.order > order) return;
    this.#entries.delete(key);
    this.#changed(key);
  }

  #changed(key: string): void {
    this.#events.emit("change", key);
  }
}
