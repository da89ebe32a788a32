/**
 * Ids that clients may bring back to any node: of sessions, kept results and calls that wait for an answer. Such an id is an
 * encrypted token that names the node which owns it. What belongs to a session upstream (connections of its
 * own, subscriptions, what it was granted) lives with that node and ends with it, so the owner is all that must be named.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { SealedSecrets, SealedText } from "../../secrets/sealed-secrets.ts";
import type { Settings, Store } from "../../store/store.ts";

/**
 * `mcp` and `sse`: old-era sessions; `rest`: opened by REST; `result`: kept results; `round`: calls that wait for input; `login`: the
 * states of logins at remote servers.
 */
export type IdKind = "mcp" | "sse" | "rest" | "result" | "round" | "login";

const ALGORITHM = "aes-256-gcm";
const KEY_ID_LENGTH = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{44,512}$/;

/** This node, under a local name, or another node that seems to be alive. */
type IdLocation = { readonly here: string } | { readonly node: string };

type Nodes = Pick<Cluster, "node" | "nodes" | "isUp">;

export class RoutableIds {
  readonly #keys: Pick<SessionKeys, "newest" | "find">;
  readonly #nodes: Nodes;

  constructor(keys: Pick<SessionKeys, "newest" | "find">, nodes: Nodes) {
    this.#keys = keys;
    this.#nodes = nodes;
  }

  /**
   * A new id that this node owns. Each is unlike any other and cannot be made up, so it can be the local name as well.
   * @param local What it is called here, if it has a name already.
   */
  issue(kind: IdKind, local = ""): string {
    const key = this.#keys.newest;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(tokenContext(kind, key));
    const sealed = Buffer.concat([cipher.update(`${this.#nodes.node.id} ${local}`, "utf8"), cipher.final()]);
    return key.id + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
  }

  /** Undefined for what was forged, has another kind, is too old, or belongs to a node that has gone. */
  async find(kind: IdKind, id: string): Promise<IdLocation | undefined> {
    return TOKEN_PATTERN.test(id)
      ? this.#placeOf(kind, id, await this.#keys.find(id.slice(0, KEY_ID_LENGTH)))
      : undefined;
  }

  /** The same by the keys that are in hand, among which is that of every id which this node gave out. */
  findAtOnce(kind: IdKind, id: string): IdLocation | undefined {
    if (!TOKEN_PATTERN.test(id)) return undefined;
    const key = this.#keys.find(id.slice(0, KEY_ID_LENGTH));
    return key instanceof Promise ? undefined : this.#placeOf(kind, id, key);
  }

  #placeOf(kind: IdKind, id: string, key: SessionKey | undefined): IdLocation | undefined {
    const text = key && openToken(kind, id, key);
    if (text === undefined) return undefined;
    const [owner = "", local = ""] = text.split(" ");
    if (owner === this.#nodes.node.id) return { here: local === "" ? id : local };
    // Without NATS it is unknown which nodes are alive, and the client must not give up a living session.
    const mayLive = !this.#nodes.isUp || this.#nodes.nodes().some((node) => node.id === owner);
    return mayLive ? { node: owner } : undefined;
  }
}

function openToken(kind: IdKind, id: string, key: SessionKey): string | undefined {
  const bytes = Buffer.from(id.slice(KEY_ID_LENGTH), "base64url");
  // Base64 can be written in several ways, and an id has one.
  if (bytes.length <= NONCE_BYTES + TAG_BYTES || bytes.toString("base64url") !== id.slice(KEY_ID_LENGTH))
    return undefined;
  try {
    const decipher = createDecipheriv(ALGORITHM, key.bytes, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(tokenContext(kind, key));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** An id of one kind is not valid for another. */
function tokenContext(kind: IdKind, { id }: SessionKey): Buffer {
  return Buffer.from(`toolcrib ${kind} ${id}`, "utf8");
}

export interface NodeIds {
  readonly cluster: Cluster;
  readonly ids: RoutableIds;
  /** The same on all nodes. */
  readonly secret: Uint8Array;
  close(): void;
}

interface IdsHub {
  readonly internals: {
    readonly cluster: Cluster | undefined;
    readonly store: Store | undefined;
    readonly sealed: SealedSecrets | undefined;
  };
  readonly config: { readonly config: { readonly secrets: { readonly key?: string | undefined } } };
}

interface NodeIdsOptions {
  /** The longest time that a session may rest. */
  readonly idleMs: number;
  readonly warn: (message: string) => void;
  readonly clock?: Clock;
}

/** Undefined for a hub that is not a node. */
export async function openNodeIds(
  { internals: { cluster, store, sealed }, config }: IdsHub,
  { idleMs, warn, clock = systemClock }: NodeIdsOptions,
): Promise<NodeIds | undefined> {
  if (cluster === undefined || store === undefined) return undefined;
  const place = { cluster: cluster.name, store, sealed: sealedByConfig(config.config, sealed) };
  const keys = await SessionKeys.open({ ...place, idleMs, warn, clock });
  return { cluster, ids: new RoutableIds(keys, cluster), secret: keys.secret, close: () => keys.close() };
}

/** Without `secrets.key` each machine has a key of its own, which the others lack. */
export function sealedByConfig<Sealed>(config: IdsHub["config"]["config"], sealed: Sealed): Sealed | undefined {
  return config.secrets.key === undefined ? undefined : sealed;
}

const DAY_MS = 24 * 3_600_000;
/** A session in use outlives any idle time. An older one starts again when it reaches a node that is not its owner. */
const KEEP_KEYS_MS = 30 * DAY_MS;
const KEY_BYTES = 32;
const ID_BYTES = 3;
/** Another node may have just made an unknown key. Invented ids must not keep the store busy. */
const RELOAD_AFTER_MS = 1000;
/** After a failure to make a new key, the old one stays in use. */
const RETRY_MS = 60_000;
const MAX_TRIES = 5;

interface SessionKey {
  /** Four characters, in the clear before what the key has sealed. */
  readonly id: string;
  readonly bytes: Buffer;
  readonly madeAt: number;
}

interface KeyRing {
  readonly secret: Buffer;
  /** Oldest first. */
  readonly keys: readonly SessionKey[];
}

interface StoredKey {
  readonly id: string;
  readonly madeAt: number;
  readonly key: SealedKey;
}

interface StoredRing {
  readonly secret: SealedKey;
  readonly keys: readonly StoredKey[];
}

export interface SessionKeysOptions {
  /** Name of the cluster. */
  readonly cluster: string;
  readonly store: Pick<Store, "follow"> & { readonly settings: Pick<Settings, "get" | "exchange"> };
  readonly clock: Clock;
  /** Seals with `secrets.key`; without it the ring is stored in plain text. */
  readonly sealed?: Pick<SealedSecrets, "seal" | "unseal"> | undefined;
  /** The longest time that a session may rest. */
  readonly idleMs: number;
  readonly warn: (message: string) => void;
}

/** A ring of keys that all nodes share through the store. A new key is added each day, which bounds what one key can open. */
export class SessionKeys {
  readonly #options: SessionKeysOptions;
  readonly #name: string;
  readonly #stopFollowing: () => void;
  #ring: KeyRing;
  #readAt: number;
  #looking: Promise<void> | undefined;
  #renewAt = 0;

  private constructor(options: SessionKeysOptions, name: string, ring: KeyRing) {
    this.#options = options;
    this.#name = name;
    this.#ring = ring;
    this.#readAt = options.clock.now();
    this.#stopFollowing = options.store.follow(({ topic, subject }) => {
      if (topic === "settings" && subject === name) void this.#look();
    });
  }

  /** Makes the ring if there is none. Rejects with `invalid_config` where it cannot be opened with this node's `secrets.key`. */
  static async open(options: SessionKeysOptions): Promise<SessionKeys> {
    const name = `cluster.${options.cluster}.session-keys`;
    return new SessionKeys(options, name, await currentRing(options, name));
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
    if (this.#looking === undefined && this.#options.clock.now() - this.#readAt < RELOAD_AFTER_MS) return undefined;
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
        const stored = text === undefined ? undefined : parseRing(text);
        if (stored !== undefined) this.#ring = await unsealRing(stored, this.#options, this.#name);
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
      this.#ring = await currentRing(this.#options, this.#name);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#options.warn(`The cluster's session keys could not be renewed; the old keys stay in use. ${why}`);
    }
  }
}

/** The ring in the store. If it has no key of today, one is added and expired keys are removed. */
async function currentRing(options: SessionKeysOptions, name: string): Promise<KeyRing> {
  const { store, clock } = options;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = await store.settings.get(name);
    const kept = before === undefined ? undefined : parseRing(before);
    const now = clock.now();
    if (kept !== undefined && kept.keys.some(({ madeAt }) => now - madeAt < DAY_MS))
      return unsealRing(kept, options, name);
    // Opened first: a node with another `secrets.key` must not add to a ring that it cannot read.
    if (kept !== undefined) await unsealRing(kept, options, name);
    const after: StoredRing = {
      secret: kept?.secret ?? (await sealKey(options, name, randomBytes(KEY_BYTES))),
      keys: [
        ...(kept?.keys.filter((key) => isAccepted(key, options)) ?? []),
        {
          id: randomBytes(ID_BYTES).toString("base64url"),
          madeAt: now,
          key: await sealKey(options, name, randomBytes(KEY_BYTES)),
        },
      ],
    };
    if (await store.settings.exchange(name, before, JSON.stringify(after))) return unsealRing(after, options, name);
  }
  throw new ToolcribError("conflict", "Other nodes keep changing the cluster's session keys.");
}

function isAccepted({ madeAt }: { readonly madeAt: number }, { clock, idleMs }: SessionKeysOptions): boolean {
  return clock.now() - madeAt < DAY_MS + Math.max(idleMs, KEEP_KEYS_MS);
}

async function unsealRing({ secret, keys }: StoredRing, options: SessionKeysOptions, name: string): Promise<KeyRing> {
  const open = (stored: SealedKey): Promise<Buffer> => openKey(options, name, stored);
  return {
    secret: await open(secret),
    keys: await Promise.all(keys.map(async ({ id, madeAt, key }) => ({ id, madeAt, bytes: await open(key) }))),
  };
}

/** Undefined for an invalid ring, which is replaced. */
function parseRing(text: string): StoredRing | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || !isSealedKey(value["secret"]) || !Array.isArray(value["keys"])) return undefined;
  const keys = value["keys"].flatMap((each): StoredKey[] => {
    if (!isJsonObject(each)) return [];
    const { id, madeAt, key } = each;
    return typeof id === "string" && typeof madeAt === "number" && isSealedKey(key) ? [{ id, madeAt, key }] : [];
  });
  return { secret: value["secret"], keys: keys.toSorted((a, b) => a.madeAt - b.madeAt) };
}

/** Base64, or sealed base64. */
type SealedKey = string | SealedText;

async function sealKey({ sealed }: SessionKeysOptions, name: string, bytes: Buffer): Promise<SealedKey> {
  const text = bytes.toString("base64");
  return sealed === undefined ? text : sealed.seal(name, text);
}

/** Rejects with `invalid_config`. */
async function openKey({ sealed }: SessionKeysOptions, name: string, stored: SealedKey): Promise<Buffer> {
  // From before `secrets.key` was set; the next key is sealed.
  if (typeof stored === "string") return Buffer.from(stored, "base64");
  if (sealed === undefined) throw wrongSecretsKey("were sealed with `secrets.key`, which this node does not have");
  try {
    return Buffer.from(await sealed.unseal(name, stored), "base64");
  } catch (cause) {
    throw wrongSecretsKey("were sealed with another `secrets.key` than this node has", cause);
  }
}

function isSealedKey(value: unknown): value is SealedKey {
  if (typeof value === "string") return true;
  return isJsonObject(value) && ["nonce", "ciphertext", "tag", "keyId"].every((key) => typeof value[key] === "string");
}

function wrongSecretsKey(how: string, cause?: unknown): ToolcribError {
  return new ToolcribError("invalid_config", `The session keys of the cluster ${how}.`, {
    hint: "Set the same `secrets.key` on all nodes.",
    cause,
  });
}
