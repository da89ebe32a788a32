/**
 * One direction of a call, on the side that sends. Large messages go in parts, and no more is under way than the other side
 * has room for: NATS cuts off a client for which 64 MiB wait, and many calls may be under way to one node.
 */
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { cancelled } from "./call-errors.ts";
import { encodeHead, encodePart, Kind } from "./packets.ts";

/** Above it a message is refused, so that nobody has to hold more of one. */
export const MESSAGE_LIMIT = 128 * 1024 * 1024;
const WINDOW_BYTES = 1024 * 1024;
const WINDOW_PACKETS = 256;
const PART_BYTES = 128 * 1024;
/** For what NATS and we put around a part. */
const HEADROOM = 1024;

interface Waiting {
  readonly pieces: readonly Uint8Array[];
  readonly size: number;
  sent: number;
  readonly done: () => void;
  readonly failed: (reason: ToolcribError) => void;
}

export class MessageSender {
  readonly #send: (packet: Uint8Array) => void;
  readonly #partBytes: number;
  readonly #waiting: Waiting[] = [];
  /** Sizes of the packets that were not acknowledged, oldest first. */
  readonly #underWay: number[] = [];
  #underWayBytes = 0;
  #next = 0;
  #acknowledged = -1;
  #closed = false;

  constructor(send: (packet: Uint8Array) => void, maxPayload: number) {
    this.#send = send;
    this.#partBytes = partBytes(maxPayload);
  }

  /** Resolves when the link has taken all of it; messages keep their order. */
  send(head: JsonObject, body?: Uint8Array): Promise<void> {
    if (this.#closed) return Promise.reject(cancelled());
    const start = encodeHead(head, body !== undefined);
    const size = start.length + (body?.length ?? 0);
    if (size > MESSAGE_LIMIT) return Promise.reject(tooLarge());
    return new Promise((done, failed) => {
      this.#waiting.push({ pieces: body === undefined ? [start] : [start, body], size, sent: 0, done, failed });
      this.#pump();
    });
  }

  acknowledge(number: number): void {
    while (this.#acknowledged < number && this.#underWay.length > 0) {
      this.#acknowledged += 1;
      this.#underWayBytes -= this.#underWay.shift() ?? 0;
    }
    this.#pump();
  }

  /** What waits is given up. */
  close(): void {
    this.#closed = true;
    for (const { failed } of this.#waiting.splice(0)) failed(cancelled());
  }

  #pump(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      do {
        if (this.#underWayBytes >= WINDOW_BYTES || this.#underWay.length >= WINDOW_PACKETS) return;
        const { pieces, size, sent } = first;
        const partSize = Math.min(this.#partBytes, size - sent);
        first.sent += partSize;
        this.#underWay.push(partSize);
        this.#underWayBytes += partSize;
        const kind = first.sent === size ? Kind.last : Kind.part;
        this.#send(encodePart(kind, this.#next++, pieces, sent, partSize));
      } while (first.sent < first.size);
      this.#waiting.shift();
      first.done();
    }
  }
}

/** What fits into one packet. */
export function partBytes(maxPayload: number): number {
  return Math.max(HEADROOM, Math.min(PART_BYTES, maxPayload - HEADROOM));
}

export function tooLarge(): ToolcribError {
  return new ToolcribError("too_large", `More than ${MESSAGE_LIMIT / 1024 / 1024} MiB for one message between nodes.`, {
    hint: "Ask for less at a time.",
  });
}
