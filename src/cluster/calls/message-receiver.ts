/** One direction of a call, on the side that takes: puts parts together, sees gaps, and says how far it has come. */
import { ToolcribError } from "../../model/errors.ts";
import { MESSAGE_LIMIT, tooLarge } from "./message-sender.ts";
import { decodeMessage, encodePacket, Kind, type Message, type Packet } from "./packets.ts";

/** Well below the window of the sender, so that it does not have to wait. */
const ACK_BYTES = 256 * 1024;
const ACK_PACKETS = 64;

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
    if (this.#size > MESSAGE_LIMIT) throw tooLarge();
    this.#parts.push(payload);
    if (kind === Kind.last) {
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
    this.#acknowledge(encodePacket(Kind.ack, number));
  }
}
