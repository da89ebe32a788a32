/** One open answer that carries server-sent events. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Encoded } from "../encoded.ts";
import { textOf } from "./exchange.ts";
import { whenClosed } from "./when-closed.ts";

/** More than this may not wait for a client that does not read. One message may come on top. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

const HEADERS: OutgoingHttpHeaders = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

export class SseConnection {
  readonly #response: ServerResponse;
  readonly #maxBuffered: number;
  #quiet = false;

  constructor(response: ServerResponse, headers?: Readonly<OutgoingHttpHeaders>, maxBuffered = MAX_BUFFERED_BYTES) {
    this.#response = response;
    this.#maxBuffered = maxBuffered;
    response.writeHead(200, headers === undefined ? HEADERS : { ...HEADERS, ...headers });
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  onClose(listener: () => void): void {
    whenClosed(this.#response, listener);
  }

  /** For a stream that begins with nothing to say: the client learns at once that it is open. */
  open(): void {
    this.#response.flushHeaders();
  }

  /** False if it could not even be put on the way. */
  send(message: Encoded, id?: string): boolean {
    const head = id === undefined ? "event: message\ndata: " : `id: ${id}\nevent: message\ndata: `;
    return this.#write(head, message);
  }

  /** An event without data: the client can resume from here, and knows how long to wait before it does. */
  prime(id: string, retryMs: number): void {
    this.#write(`id: ${id}\nretry: ${retryMs}\ndata: `, []);
  }

  named(event: string, data: string): void {
    this.#write(`event: ${event}\ndata: `, [data]);
  }

  comment(text: string): void {
    this.#write(`: ${text}`, []);
  }

  /**
   * Keeps the connection alive. While something waits for the client nothing is added: the listener's timeout must be able
   * to see that nobody reads, and each write begins it anew.
   */
  beat(): void {
    if (this.#quiet && this.#response.writableLength === 0) this.#write(":", []);
    this.#quiet = true;
  }

  end(): void {
    this.#response.end();
  }

  #write(head: string, message: Encoded): boolean {
    const response = this.#response;
    if (!this.isOpen) return false;
    if (response.writableLength > this.#maxBuffered) {
      response.destroy();
      return false;
    }
    this.#quiet = false;
    const text = textOf(message);
    if (text !== undefined) {
      response.write(`${head}${text}\n\n`);
      return true;
    }
    response.cork();
    response.write(head);
    for (const part of message) response.write(part);
    response.write("\n\n");
    response.uncork();
    return true;
  }
}
