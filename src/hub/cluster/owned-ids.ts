/**
 * Ids that clients hold and bring back to any node: of sessions, kept results and calls that wait for an answer. Such an id is
 * an encrypted token that names the node which has what it stands for. What belongs to a session upstream (connections of its
 * own, subscriptions, what it was granted) lives with that node and ends with it, so the owner is all that must be named.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Cluster } from "../../cluster/cluster.ts";
import type { SessionKey, SessionKeys } from "./session-keys.ts";

/** `mcp` and `sse`: old-era sessions; `rest`: opened by REST; `result`: kept results; `round`: calls that wait for input. */
export type IdKind = "mcp" | "sse" | "rest" | "result" | "round";

const ALGORITHM = "aes-256-gcm";
const KEY_ID = 4;
const NONCE = 12;
const TAG = 16;
const TOKEN = /^[A-Za-z0-9_-]{44,512}$/;

/** Where what an id stands for is: here, under this local name, or at another node that is alive as far as is known. */
type Whereabouts = { readonly here: string } | { readonly node: string };

type Nodes = Pick<Cluster, "node" | "nodes" | "isUp">;

export class OwnedIds {
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
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG });
    cipher.setAAD(boundTo(kind, key));
    const sealed = Buffer.concat([cipher.update(`${this.#nodes.node.id} ${local}`, "utf8"), cipher.final()]);
    return key.id + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
  }

  /** Undefined for what was forged, has another kind, is too old, or belongs to a node that has gone. */
  async find(kind: IdKind, id: string): Promise<Whereabouts | undefined> {
    return TOKEN.test(id) ? this.#placeOf(kind, id, await this.#keys.find(id.slice(0, KEY_ID))) : undefined;
  }

  /** The same by the keys that are in hand, among which is that of every id which this node gave out. */
  findAtOnce(kind: IdKind, id: string): Whereabouts | undefined {
    if (!TOKEN.test(id)) return undefined;
    const key = this.#keys.find(id.slice(0, KEY_ID));
    return key instanceof Promise ? undefined : this.#placeOf(kind, id, key);
  }

  #placeOf(kind: IdKind, id: string, key: SessionKey | undefined): Whereabouts | undefined {
    const text = key && open(kind, id, key);
    if (text === undefined) return undefined;
    const [owner = "", local = ""] = text.split(" ");
    if (owner === this.#nodes.node.id) return { here: local === "" ? id : local };
    // Without NATS nobody can say who is alive: the client must not give up a session that may be.
    const mayLive = !this.#nodes.isUp || this.#nodes.nodes().some((node) => node.id === owner);
    return mayLive ? { node: owner } : undefined;
  }
}

function open(kind: IdKind, id: string, key: SessionKey): string | undefined {
  const bytes = Buffer.from(id.slice(KEY_ID), "base64url");
  // Base64 can be written in several ways, and an id has one.
  if (bytes.length <= NONCE + TAG || bytes.toString("base64url") !== id.slice(KEY_ID)) return undefined;
  try {
    const decipher = createDecipheriv(ALGORITHM, key.bytes, bytes.subarray(0, NONCE), { authTagLength: TAG });
    decipher.setAAD(boundTo(kind, key));
    decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** So that an id of one kind is none of another. */
function boundTo(kind: IdKind, { id }: SessionKey): Buffer {
  return Buffer.from(`toolcrib ${kind} ${id}`, "utf8");
}
