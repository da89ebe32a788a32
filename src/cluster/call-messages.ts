/**
 * One NATS message of a call: a byte for the kind, four for the number, then the payload. A message of the
 * call is one packet or several; each has the next number, so that a lost one is noticed.
 */
import type { Clock } from "../base/clock.ts";
import { CHECK_BEFORE_RETRY, OUTCOME_UNKNOWN, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { decodeError, encodeError } from "./cluster.ts";
import type { NatsLink } from "./nats-link.ts";
import type { NodeList } from "./node-list.ts";

export const PacketKind = {
  /** More of the same message follows. */
  part: 0,
  /** The last, or only, packet of a message. */
  last: 1,
  /** Everything up to this number has arrived and was taken. */
  ack: 2,
  /** The caller gave up. Not numbered, because it overtakes what waits. */
  cancel: 3,
  /** The handler's side gave up; the payload is the error. Not numbered either. */
  abort: 4,
} as const;

export interface Packet {
  readonly kind: number;
  readonly number: number;
  readonly payload: Uint8Array;
}

const PREFIX_BYTES = 5;
const NO_BYTES = new Uint8Array(0);

export function encodePacket(kind: number, number = 0, payload: Uint8Array = NO_BYTES): Uint8Array {
  return encodePart(kind, number, [payload], 0, payload.length);
}

/** A packet whose payload is `size` bytes from `start` on of what the pieces are together. */
function encodePart(
  kind: number,
  number: number,
  pieces: readonly Uint8Array[],
  start: number,
  size: number,
): Uint8Array {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + size);
  bytes.writeUInt8(kind, 0);
  bytes.writeUInt32BE(number, 1);
  let from = start;
  let filled = 0;
  for (const piece of pieces) {
    const part = piece.subarray(Math.max(0, from), Math.max(0, from + size - filled));
    bytes.set(part, PREFIX_BYTES + filled);
    filled += part.length;
    from = from + part.length - piece.length;
  }
  return bytes;
}

/** Undefined for what is none. */
export function decodePacket(bytes: Uint8Array): Packet | undefined {
  if (bytes.length < PREFIX_BYTES) return undefined;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return { kind: view.readUInt8(0), number: view.readUInt32BE(1), payload: bytes.subarray(PREFIX_BYTES) };
}

/** One message: a JSON head, and a body if there is one. */
export interface Message {
  readonly head: JsonObject;
  readonly body: Uint8Array | undefined;
}

export function encodeMessage(head: JsonObject, body?: Uint8Array): Uint8Array {
  const start = encodeHead(head, body !== undefined);
  return body === undefined || body.length === 0 ? start : Buffer.concat([start, body]);
}

/** The beginning of a message, which its body follows if it has one. */
function encodeHead(head: JsonObject, hasBody: boolean): Uint8Array {
  const text = JSON.stringify(head);
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + Buffer.byteLength(text));
  bytes.writeUInt8(hasBody ? 1 : 0, 0);
  bytes.writeUInt32BE(bytes.length - PREFIX_BYTES, 1);
  bytes.write(text, PREFIX_BYTES);
  return bytes;
}

export function decodeMessage(bytes: Uint8Array): Message {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = PREFIX_BYTES + view.readUInt32BE(1);
  const head: unknown = JSON.parse(view.toString("utf8", PREFIX_BYTES, end));
  if (!isJsonObject(head)) throw new ToolcribError("internal", "A message between nodes has no head.");
  return { head, body: view.readUInt8(0) === 1 ? bytes.subarray(end) : undefined };
}

/** A larger message is refused, so that no node has to keep more of one. */
export const MAX_MESSAGE_BYTES = 128 * 1024 * 1024;
const WINDOW_BYTES = 1024 * 1024;
const WINDOW_PACKETS = 256;
const MAX_PART_BYTES = 128 * 1024;
/** For what NATS and we put around a part. */
const HEADROOM_BYTES = 1024;

interface QueuedMessage {
  readonly pieces: readonly Uint8Array[];
  readonly size: number;
  sent: number;
  readonly done: () => void;
  readonly failed: (reason: ToolcribError) => void;
}

/**
 * One direction of a call, on the side that sends. Large messages go in parts, and no more is in flight than the other side
 * has room for: NATS cuts off a client for which 64 MiB wait, and many calls may go to one node.
 */
export class MessageSender {
  readonly #send: (packet: Uint8Array) => void;
  readonly #partBytes: number;
  readonly #waiting: QueuedMessage[] = [];
  /** Sizes of the packets that were not acknowledged, oldest first. */
  readonly #inFlight: number[] = [];
  #inFlightBytes = 0;
  #next = 0;
  #acknowledged = -1;
  #closed = false;

  constructor(send: (packet: Uint8Array) => void, maxPayload: number) {
    this.#send = send;
    this.#partBytes = maxPartBytes(maxPayload);
  }

  /** Resolves when the link has taken all of it; messages keep their order. */
  send(head: JsonObject, body?: Uint8Array): Promise<void> {
    if (this.#closed) return Promise.reject(cancelled());
    const start = encodeHead(head, body !== undefined);
    const size = start.length + (body?.length ?? 0);
    if (size > MAX_MESSAGE_BYTES) return Promise.reject(messageTooLarge());
    return new Promise((done, failed) => {
      this.#waiting.push({ pieces: body === undefined ? [start] : [start, body], size, sent: 0, done, failed });
      this.#pump();
    });
  }

  acknowledge(number: number): void {
    while (this.#acknowledged < number && this.#inFlight.length > 0) {
      this.#acknowledged += 1;
      this.#inFlightBytes -= this.#inFlight.shift() ?? 0;
    }
    this.#pump();
  }

  /** Gives up what waits. */
  close(): void {
    this.#closed = true;
    for (const { failed } of this.#waiting.splice(0)) failed(cancelled());
  }

  #pump(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      do {
        if (this.#inFlightBytes >= WINDOW_BYTES || this.#inFlight.length >= WINDOW_PACKETS) return;
        const { pieces, size, sent } = first;
        const partSize = Math.min(this.#partBytes, size - sent);
        first.sent += partSize;
        this.#inFlight.push(partSize);
        this.#inFlightBytes += partSize;
        const kind = first.sent === size ? PacketKind.last : PacketKind.part;
        this.#send(encodePart(kind, this.#next++, pieces, sent, partSize));
      } while (first.sent < first.size);
      this.#waiting.shift();
      first.done();
    }
  }
}

/** The most that fits into one packet. */
export function maxPartBytes(maxPayload: number): number {
  return Math.max(HEADROOM_BYTES, Math.min(MAX_PART_BYTES, maxPayload - HEADROOM_BYTES));
}

export function messageTooLarge(): ToolcribError {
  const message = `More than ${MAX_MESSAGE_BYTES / 1024 / 1024} MiB for one message between nodes.`;
  return new ToolcribError("too_large", message, { hint: "Ask for less at a time." });
}

/** Well below the window of the sender, so that it does not have to wait. */
const ACK_BYTES = 256 * 1024;
const ACK_PACKETS = 64;

/** One direction of a call, on the side that takes: puts parts together, sees gaps, and says how far it has come. */
export class MessageReceiver {
  readonly #acknowledge: (packet: Uint8Array) => void;
  readonly #deliver: (message: Message) => void;
  #parts: Uint8Array[] = [];
  #size = 0;
  #expected = 0;
  #silentBytes = 0;
  #silentPackets = 0;

  constructor(acknowledge: (packet: Uint8Array) => void, deliver: (message: Message) => void) {
    this.#acknowledge = acknowledge;
    this.#deliver = deliver;
  }

  /** Throws ToolcribError when the call cannot go on: something is missing, or it is too much. */
  take({ kind, number, payload }: Packet): void {
    if (number !== this.#expected) {
      throw new ToolcribError("server_unavailable", "A part of a call between nodes was lost on its way.");
    }
    this.#expected += 1;
    this.#size += payload.length;
    if (this.#size > MAX_MESSAGE_BYTES) throw messageTooLarge();
    this.#parts.push(payload);
    if (kind === PacketKind.last) {
      const bytes = this.#parts.length === 1 ? payload : Buffer.concat(this.#parts, this.#size);
      this.#parts = [];
      this.#size = 0;
      this.#deliver(decodeMessage(bytes));
    }
    this.#silentBytes += payload.length;
    this.#silentPackets += 1;
    if (this.#silentBytes < ACK_BYTES && this.#silentPackets < ACK_PACKETS) return;
    this.#silentBytes = 0;
    this.#silentPackets = 0;
    this.#acknowledge(encodePacket(PacketKind.ack, number));
  }
}

/** The call cannot have begun: it may be sent again. */
export function notSent(message: string, hint?: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { hint, details: { sent: false } });
}

/** Whether it ran is not known: it must not be sent again. */
export function outcomeUnknown(why: string): ToolcribError {
  return new ToolcribError("server_unavailable", `${why} ${OUTCOME_UNKNOWN}`, { hint: CHECK_BEFORE_RETRY });
}

export function cancelled(): ToolcribError {
  return new ToolcribError("cancelled", "The caller gave up.");
}

/** The packet by which the handler's side ends a call. */
export function encodeAbort(error: ToolcribError): Uint8Array {
  return encodePacket(PacketKind.abort, 0, Buffer.from(JSON.stringify(encodeError(error))));
}

export function decodeAbort(payload: Uint8Array): ToolcribError {
  return decodeError(JSON.parse(Buffer.from(payload).toString("utf8")));
}

/** The parts of a node that its incoming and outgoing calls work with. */
export interface CallParts {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly nodes: Pick<NodeList, "isAlive" | "isGone">;
}

/** The subjects of one cluster. */
export interface Subjects {
  readonly prefix: string;
  /** Requests. */
  call(address: string): string;
  /** From the handler to the node that called. */
  reply(node: string, call: string): string;
  /** From the caller to the node that handles the call, once that is known. */
  control(node: string, from: string, call: string): string;
  topic(name: string): string;
  /** Where nodes say that calls of an earlier connection of theirs are over. */
  readonly epochs: string;
}

export function subjectsOf(cluster: string): Subjects {
  const prefix = `toolcrib.${cluster}`;
  return {
    prefix,
    call: (address) => `${prefix}.call.${address}`,
    reply: (node, call) => `${prefix}.reply.${node}.${call}`,
    control: (node, from, call) => `${prefix}.control.${node}.${from}.${call}`,
    topic: (name) => `${prefix}.topic.${name}`,
    epochs: `${prefix}.epochs`,
  };
}
