/**
 * What travels in one NATS message of a call: a byte for the kind, four for the number, then the payload. A message of the
 * call is one packet or several; each has the next number, so that a lost one is noticed.
 */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

export const Kind = {
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

const PREFIX = 5;
const NOTHING = new Uint8Array(0);

export function encodePacket(kind: number, number = 0, payload: Uint8Array = NOTHING): Uint8Array {
  return encodePart(kind, number, [payload], 0, payload.length);
}

/** A packet whose payload is `size` bytes from `start` on of what the pieces are together. */
export function encodePart(
  kind: number,
  number: number,
  pieces: readonly Uint8Array[],
  start: number,
  size: number,
): Uint8Array {
  const bytes = Buffer.allocUnsafe(PREFIX + size);
  bytes.writeUInt8(kind, 0);
  bytes.writeUInt32BE(number, 1);
  let from = start;
  let filled = 0;
  for (const piece of pieces) {
    const part = piece.subarray(Math.max(0, from), Math.max(0, from + size - filled));
    bytes.set(part, PREFIX + filled);
    filled += part.length;
    from = from + part.length - piece.length;
  }
  return bytes;
}

/** Undefined for what is none. */
export function decodePacket(bytes: Uint8Array): Packet | undefined {
  if (bytes.length < PREFIX) return undefined;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return { kind: view.readUInt8(0), number: view.readUInt32BE(1), payload: bytes.subarray(PREFIX) };
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
export function encodeHead(head: JsonObject, hasBody: boolean): Uint8Array {
  const text = JSON.stringify(head);
  const bytes = Buffer.allocUnsafe(PREFIX + Buffer.byteLength(text));
  bytes.writeUInt8(hasBody ? 1 : 0, 0);
  bytes.writeUInt32BE(bytes.length - PREFIX, 1);
  bytes.write(text, PREFIX);
  return bytes;
}

export function decodeMessage(bytes: Uint8Array): Message {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = PREFIX + view.readUInt32BE(1);
  const head: unknown = JSON.parse(view.toString("utf8", PREFIX, end));
  if (!isJsonObject(head)) throw new ToolcribError("internal", "A message between nodes has no head.");
  return { head, body: view.readUInt8(0) === 1 ? bytes.subarray(end) : undefined };
}
