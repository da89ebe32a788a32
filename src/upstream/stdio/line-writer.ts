/**
 * Writes lines to a pipe. With much to write, the first line of a turn of the event loop goes out at once and those that
 * follow in the same turn go together, because each write costs more than making the line.
 */
import type { Writable } from "node:stream";

/** A write of this size goes out whole or not at all, so that a failed one says that no line in it was read. */
const WHOLE_CHARS = 4096;

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
    if (this.#turn === undefined) {
      if (more) this.#turn = setImmediate(() => this.flush());
      return this.#send(line, Promise.withResolvers());
    }
    if (this.#waiting.length + line.length > WHOLE_CHARS) this.#sendWaiting();
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
