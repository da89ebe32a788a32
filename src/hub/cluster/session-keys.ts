/**
 * The keys with which the nodes of a cluster seal the ids that they give out. All nodes share one ring, kept in the store; a
 * new key joins it each day, so that what one key could open is bounded.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { SealedText } from "../../secrets/sealed/sealed-secrets.ts";
import type { Settings, Store } from "../../store/store.ts";
import { type Box, isBox, plainBoxes, type RingBoxes, sealedBoxes } from "./ring-boxes.ts";

const DAY_MS = 24 * 3_600_000;
/** A session in use outlives any idle time; one that is older begins anew when it lands on a node that is not its owner. */
const KEPT_MS = 30 * DAY_MS;
const KEY_BYTES = 32;
const ID_BYTES = 3;
/** An id that nobody knows may be that of a key which another node has just made; whoever invents ids must not keep the store busy. */
const LOOK_AGAIN_MS = 1000;
/** After a failure to make a new key the old one goes on. */
const RETRY_MS = 60_000;
const MOST_TRIES = 5;

export interface SessionKey {
  /** Four characters, in the clear before what the key has sealed. */
  readonly id: string;
  readonly bytes: Buffer;
  readonly madeAt: number;
}

interface Ring {
  readonly secret: Buffer;
  /** Oldest first. */
  readonly keys: readonly SessionKey[];
}

interface KeptKey {
  readonly id: string;
  readonly madeAt: number;
  readonly key: Box;
}

interface KeptRing {
  readonly secret: Box;
  readonly keys: readonly KeptKey[];
}

export interface SessionKeysOptions {
  /** Name of the cluster. */
  readonly cluster: string;
  readonly store: Pick<Store, "follow"> & { readonly settings: Pick<Settings, "get" | "exchange"> };
  readonly clock: Clock;
  /** What `secrets.key` seals; without it the ring lies in the store as it is. */
  readonly sealed?:
    | {
        seal(name: string, text: string): Promise<SealedText>;
        unseal(name: string, entry: SealedText): Promise<string>;
      }
    | undefined;
  /** The longest time that a session may rest. */
  readonly idleMs: number;
  readonly warn: (message: string) => void;
}

export class SessionKeys {
  readonly #options: SessionKeysOptions;
  readonly #name: string;
  readonly #boxes: RingBoxes;
  readonly #stopFollowing: () => void;
  #ring: Ring;
  #readAt: number;
  #looking: Promise<void> | undefined;
  #renewAt = 0;

  private constructor(options: SessionKeysOptions, name: string, boxes: RingBoxes, ring: Ring) {
    this.#options = options;
    this.#name = name;
    this.#boxes = boxes;
    this.#ring = ring;
    this.#readAt = options.clock.now();
    this.#stopFollowing = options.store.follow(({ topic, subject }) => {
      if (topic === "settings" && subject === name) void this.#look();
    });
  }

  /** Makes the ring if there is none. Rejects with `invalid_config` where it cannot be opened with this node's `secrets.key`. */
  static async open(options: SessionKeysOptions): Promise<SessionKeys> {
    const name = `cluster.${options.cluster}.session-keys`;
    const boxes = options.sealed === undefined ? plainBoxes : sealedBoxes(name, options.sealed);
    return new SessionKeys(options, name, boxes, await currentRing(options, name, boxes));
  }

  /** The same on all nodes for as long as the cluster lives. */
  get secret(): Uint8Array {
    return this.#ring.secret;
  }

  /** The one to seal with. */
  get newest(): SessionKey {
    const newest = this.#ring.keys.at(-1);
    // A ring is never empty: it is made with a key, and the newest is never dropped.
    if (newest === undefined) throw new Error("a ring without keys");
    const now = this.#options.clock.now();
    if (now - newest.madeAt >= DAY_MS && now >= this.#renewAt) void this.#renew(now);
    return newest;
  }

  /** Reads the ring again if the id is not known, and not too often. */
  find(id: string): SessionKey | undefined | Promise<SessionKey | undefined> {
    const known = this.#known(id);
    if (known !== undefined) return known;
    if (this.#looking === undefined && this.#options.clock.now() - this.#readAt < LOOK_AGAIN_MS) return undefined;
    return this.#look().then(() => this.#known(id));
  }

  close(): void {
    this.#stopFollowing();
  }

  #known(id: string): SessionKey | undefined {
    const key = this.#ring.keys.find((each) => each.id === id);
    return key !== undefined && isAccepted(key, this.#options) ? key : undefined;
  }

  /** Never rejects: without the store the keys that are known go on. */
  #look(): Promise<void> {
    const { store, clock } = this.#options;
    this.#looking ??= (async () => {
      try {
        const text = await store.settings.get(this.#name);
        const ring = text === undefined ? undefined : await openRing(text, this.#boxes);
        if (ring !== undefined) this.#ring = ring;
      } catch {
        // The next unknown id asks again.
      } finally {
        this.#readAt = clock.now();
        this.#looking = undefined;
      }
    })();
    return this.#looking;
  }

  async #renew(now: number): Promise<void> {
    this.#renewAt = now + RETRY_MS;
    try {
      this.#ring = await currentRing(this.#options, this.#name, this.#boxes);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#options.warn(`The cluster's session keys could not be renewed; those of before go on. ${why}`);
    }
  }
}

/** The ring in the store, with a key of today: if there is none, one is added, and what is too old is taken out. */
async function currentRing(options: SessionKeysOptions, name: string, boxes: RingBoxes): Promise<Ring> {
  const { store, clock } = options;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const before = await store.settings.get(name);
    const kept = before === undefined ? undefined : parseRing(before);
    const now = clock.now();
    if (kept !== undefined && kept.keys.some(({ madeAt }) => now - madeAt < DAY_MS)) return unboxed(kept, boxes);
    // Opened first: a node with another `secrets.key` must not add to a ring that it cannot read.
    if (kept !== undefined) await unboxed(kept, boxes);
    const after: KeptRing = {
      secret: kept?.secret ?? (await boxes.close(randomBytes(KEY_BYTES))),
      keys: [
        ...(kept?.keys.filter((key) => isAccepted(key, options)) ?? []),
        {
          id: randomBytes(ID_BYTES).toString("base64url"),
          madeAt: now,
          key: await boxes.close(randomBytes(KEY_BYTES)),
        },
      ],
    };
    if (await store.settings.exchange(name, before, JSON.stringify(after))) return unboxed(after, boxes);
  }
  throw new ToolcribError("conflict", "The cluster's session keys were changed by others again and again.");
}

function isAccepted({ madeAt }: { readonly madeAt: number }, { clock, idleMs }: SessionKeysOptions): boolean {
  return clock.now() - madeAt < DAY_MS + Math.max(idleMs, KEPT_MS);
}

async function openRing(text: string, boxes: RingBoxes): Promise<Ring | undefined> {
  const kept = parseRing(text);
  return kept === undefined ? undefined : unboxed(kept, boxes);
}

async function unboxed({ secret, keys }: KeptRing, boxes: RingBoxes): Promise<Ring> {
  return {
    secret: await boxes.open(secret),
    keys: await Promise.all(keys.map(async ({ id, madeAt, key }) => ({ id, madeAt, bytes: await boxes.open(key) }))),
  };
}

/** Undefined for what is no ring: it is replaced. */
function parseRing(text: string): KeptRing | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || !isBox(value["secret"]) || !Array.isArray(value["keys"])) return undefined;
  const keys = value["keys"].flatMap((each): KeptKey[] => {
    if (!isJsonObject(each)) return [];
    const { id, madeAt, key } = each;
    return typeof id === "string" && typeof madeAt === "number" && isBox(key) ? [{ id, madeAt, key }] : [];
  });
  return { secret: value["secret"], keys: keys.toSorted((a, b) => a.madeAt - b.madeAt) };
}
