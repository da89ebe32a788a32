/**
 * Everything that a node sends over NATS is signed with a key that only the nodes of the cluster have: whoever may publish on
 * NATS and lacks the key can speak for no node, and so for no caller.
 *
 * A message is signed together with its subject, so that it cannot be sent to another address, and has the number that its
 * sender gave it, so that it is taken once. No clocks are compared. An entry of a bucket is signed together with its bucket and
 * key. It has no number: whoever may write to NATS can put an older entry of the same key back, or remove it.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";

const MAC_BYTES = 16;
const SENDER_BYTES = 8;
const NUMBER_BYTES = 6;
/** A message begins with the sender, its number and the signature. */
const NUMBER_AT = SENDER_BYTES;
const MAC_AT = NUMBER_AT + NUMBER_BYTES;
export const SIGNATURE_BYTES = MAC_AT + MAC_BYTES;
/** NATS keeps the order of a sender's messages; a detour over several NATS servers may change it a little. */
const REPLAY_WINDOW = 2048;
/** Each start of a node is a sender of its own. Whoever was silent for longest is forgotten first. */
const MAX_SENDERS = 256;

const KINDS = { message: 1, entry: 2 } as const;

export interface OpenedMessage {
  readonly sender: string;
  /** Grows with each message of the sender. */
  readonly number: number;
  readonly payload: Uint8Array;
}

export class MessageSigner {
  readonly #key: KeyObject;
  readonly #sender = randomBytes(SENDER_BYTES);
  #count = 0;

  /** @param secret The same on all nodes. */
  constructor(secret: Uint8Array) {
    this.#key = createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", "toolcrib cluster messages", 32)));
  }

  sign(subject: string, reply: string, payload: Uint8Array): Uint8Array {
    const bytes = Buffer.allocUnsafe(SIGNATURE_BYTES + payload.length);
    bytes.set(this.#sender, 0);
    bytes.writeUIntBE(++this.#count, NUMBER_AT, NUMBER_BYTES);
    bytes.set(this.#messageMac(bytes.subarray(0, MAC_AT), subject, reply, payload), MAC_AT);
    bytes.set(payload, SIGNATURE_BYTES);
    return bytes;
  }

  /** Undefined for what no node has signed for this subject. */
  open(subject: string, reply: string, message: Uint8Array): OpenedMessage | undefined {
    if (message.length < SIGNATURE_BYTES) return undefined;
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.length);
    const payload = message.subarray(SIGNATURE_BYTES);
    const expected = this.#messageMac(bytes.subarray(0, MAC_AT), subject, reply, payload);
    if (!timingSafeEqual(expected, bytes.subarray(MAC_AT, SIGNATURE_BYTES))) return undefined;
    const [sender, number] = [bytes.toString("hex", 0, SENDER_BYTES), bytes.readUIntBE(NUMBER_AT, NUMBER_BYTES)];
    return { sender, number, payload };
  }

  signEntry(bucket: string, key: string, text: string): string {
    return `${this.#entryMac(bucket, key, text).toString("hex")}\n${text}`;
  }

  /** The text; undefined for what no node has signed for this bucket and key. */
  openEntry(bucket: string, key: string, entry: string): string | undefined {
    const [stated, text] = [entry.slice(0, 2 * MAC_BYTES), entry.slice(2 * MAC_BYTES + 1)];
    if (!/^[0-9a-f]{32}$/.test(stated) || entry[2 * MAC_BYTES] !== "\n") return undefined;
    return timingSafeEqual(this.#entryMac(bucket, key, text), Buffer.from(stated, "hex")) ? text : undefined;
  }

  #messageMac(head: Uint8Array, subject: string, reply: string, payload: Uint8Array): Buffer {
    return this.#mac(KINDS.message, head, Buffer.from(subject), Buffer.from(reply), payload);
  }

  #entryMac(bucket: string, key: string, text: string): Buffer {
    return this.#mac(KINDS.entry, Buffer.from(bucket), Buffer.from(key), Buffer.from(text));
  }

  /** Each part with its length before it, so that no two lists of parts are the same bytes. */
  #mac(kind: number, ...parts: readonly Uint8Array[]): Buffer {
    const mac = createHmac("sha256", this.#key).update(Buffer.of(kind));
    for (const part of parts) {
      const length = Buffer.allocUnsafe(4);
      length.writeUInt32BE(part.length);
      mac.update(length).update(part);
    }
    return mac.digest().subarray(0, MAC_BYTES);
  }
}

/** Remembers the messages of one subscription, so that none is accepted twice. */
export class ReplayGuard {
  readonly #senders = new Map<string, { readonly numbers: Set<number>; highest: number }>();

  /** False for one that came before, and for one that is too old to tell. */
  add(sender: string, number: number): boolean {
    const known = this.#senders.get(sender) ?? { numbers: new Set(), highest: 0 };
    if (number <= known.highest - REPLAY_WINDOW || known.numbers.has(number)) return false;
    known.numbers.add(number);
    known.highest = Math.max(known.highest, number);
    for (const oldest of known.numbers) {
      if (oldest > known.highest - REPLAY_WINDOW) break;
      known.numbers.delete(oldest);
    }
    // The last in the order is the one that was heard last.
    this.#senders.delete(sender);
    this.#senders.set(sender, known);
    const [silent] = this.#senders.size > MAX_SENDERS ? this.#senders.keys() : [];
    if (silent !== undefined) this.#senders.delete(silent);
    return true;
  }
}
