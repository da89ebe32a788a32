import { StringDecoder } from "node:string_decoder";
import type { Writable } from "node:stream";

/**
 * Bytes to lines. Splits on the byte `\n` alone: `node:readline` also splits at U+2028, which is legal inside JSON.
 * Parts of an unfinished line are kept as a list, decoded as they come: put together as bytes first, a large line would take
 * twice the memory, outside the heap, where it makes V8 collect all the time. A line above the limit is skipped up to its end
 * without being kept.
 */
const NEWLINE = 0x0a;
const RETURN = 0x0d;

interface LineSplitterOptions {
  readonly maxBytes: number;
  /** Without its line end; never empty. */
  readonly onLine: (line: string) => void;
  /** Once per line that is too long, when its end was seen. */
  readonly onOversize: (bytes: number) => void;
}

export class LineSplitter {
  readonly #options: LineSplitterOptions;
  #parts: string[] = [];
  readonly #decoder = new StringDecoder("utf8");
  /** Bytes of the unfinished line, those skipped included. */
  #bytes = 0;

  constructor(options: LineSplitterOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#bytes === 0 && end - start <= this.#options.maxBytes) this.#tell(chunk, start, end);
      else {
        this.#keep(chunk, start, end);
        this.#finish();
      }
      start = end + 1;
    }
    this.#keep(chunk, start, chunk.length);
  }

  /** The stream is over: what has no line end yet counts as a line. */
  end(): void {
    this.#finish();
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.#bytes += end - start;
    if (this.#bytes > this.#options.maxBytes) this.#parts = [];
    else this.#parts.push(this.#decoder.write(chunk.subarray(start, end)));
  }

  #finish(): void {
    const parts = this.#parts;
    const bytes = this.#bytes;
    this.#parts = [];
    this.#bytes = 0;
    if (bytes === 0) return;
    // The start of a character that the line did not finish, and nothing for the next line.
    const rest = this.#decoder.end();
    if (bytes > this.#options.maxBytes) {
      this.#options.onOversize(bytes);
      return;
    }
    const line = parts.join("") + rest;
    const plain = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (plain !== "") this.#options.onLine(plain);
  }

  #tell(bytes: Buffer, start: number, end: number): void {
    const last = end > start && bytes[end - 1] === RETURN ? end - 1 : end;
    if (last > start) this.#options.onLine(bytes.toString("utf8", start, last));
  }
}

/** A write of this size goes out whole or not at all, so that a failed one says that no line in it was read. */
const MAX_ATOMIC_LENGTH = 4096;

/**
 * Writes lines to a pipe. With much to write, all lines of a turn of the event loop go out together at its end: a write costs
 * more than making the line, and each may wake the other process.
 */
export class LineWriter {
  readonly #stream: Writable;
  readonly #failure: (cause: Error) => Error;
  #waiting = "";
  #batch: PromiseWithResolvers<void> | undefined;
  #turn: NodeJS.Immediate | undefined;

  /** @param failure What the promise of a line rejects with that could not be written. */
  constructor(stream: Writable, failure: (cause: Error) => Error) {
    this.#stream = stream;
    this.#failure = failure;
  }

  /**
   * Resolves when the line, which ends with a line break, has been handed over.
   * @param more Whether further lines are likely to follow soon. Waiting for them has a cost of its own.
   */
  write(line: string, more: boolean): Promise<void> {
    if (this.#turn === undefined && !more) return this.#send(line, Promise.withResolvers());
    this.#turn ??= setImmediate(() => this.flush());
    if (this.#waiting.length + line.length > MAX_ATOMIC_LENGTH) this.#sendWaiting();
    this.#waiting += line;
    this.#batch ??= Promise.withResolvers();
    return this.#batch.promise;
  }

  flush(): void {
    if (this.#turn !== undefined) clearImmediate(this.#turn);
    this.#turn = undefined;
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    if (this.#batch === undefined) return;
    const lines = this.#waiting;
    const batch = this.#batch;
    this.#waiting = "";
    this.#batch = undefined;
    void this.#send(lines, batch);
  }

  #send(lines: string, { promise, resolve, reject }: PromiseWithResolvers<void>): Promise<void> {
    this.#stream.write(lines, (error) => {
      if (error !== null && error !== undefined) reject(this.#failure(error));
      else resolve();
    });
    return promise;
  }
}
