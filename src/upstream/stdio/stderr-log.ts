import { stripVTControlCharacters } from "node:util";

const MAX_LOG_LINES = 50;
const NEW_LINE = Buffer.from("\n");

/** The last words of each server's programs, over restarts. They may hold secrets: whoever shows them masks them. */
export class StderrLog {
  readonly #tails = new Map<string, StderrTail>();

  /** Another program of that server: it begins on a line of its own. */
  begin(server: string): void {
    this.#tails.get(server)?.push(NEW_LINE);
  }

  push(server: string, chunk: Buffer): void {
    let tail = this.#tails.get(server);
    if (tail === undefined) this.#tails.set(server, (tail = new StderrTail(MAX_LOG_LINES)));
    tail.push(chunk);
  }

  lines(server: string): string[] {
    const text = this.#tails.get(server)?.text() ?? "";
    return text === "" ? [] : text.split("\n");
  }

  forget(server: string): void {
    this.#tails.delete(server);
  }
}

const MAX_BYTES = 8 * 1024;
const MAX_LINES = 20;
// oxlint-disable-next-line no-control-regex -- control characters are what it is there to remove
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

const ERROR = /^(?:Uncaught )?[\w.]*(?:Error|Exception)\b.*:/;

/** The end of what a child wrote to stderr, however much that was: it is what explains an exit to a person. */
export class StderrTail {
  readonly #maxLines: number;
  #parts: Buffer[] = [];
  #bytes = 0;
  #cut = false;

  constructor(maxLines: number = MAX_LINES) {
    this.#maxLines = maxLines;
  }

  push(chunk: Buffer): void {
    // Copied, because a view would keep the whole pooled chunk in memory.
    this.#parts.push(Buffer.from(chunk.length > MAX_BYTES ? chunk.subarray(-MAX_BYTES) : chunk));
    if (chunk.length > MAX_BYTES) this.#cut = true;
    this.#bytes += Math.min(chunk.length, MAX_BYTES);
    // Joined only now and then: a flood of tiny writes must not cost a copy each.
    if (this.#bytes > 2 * MAX_BYTES || this.#parts.length > 256) this.#compact();
  }

  /** Free of terminal control sequences: it is shown to people. */
  text(maxLines: number = this.#maxLines): string {
    this.#compact();
    const lines = (this.#parts[0] ?? Buffer.alloc(0)).toString("utf8").split(/\r?\n/);
    // The first line has lost its beginning.
    if (this.#cut && lines.length > 1) lines.shift();
    const kept = lines
      .map((line) => stripVTControlCharacters(line).replace(CONTROL, "").trimEnd())
      .filter((line) => line !== "")
      .slice(-this.#maxLines);
    const last = kept.slice(-maxLines);
    // Before its stack a program says what went wrong; without that line the stack explains little.
    const error = kept.slice(0, kept.length - last.length).findLast((line) => ERROR.test(line));
    return [...(error === undefined || last.some((line) => ERROR.test(line)) ? [] : [error]), ...last].join("\n");
  }

  #compact(): void {
    const all = Buffer.concat(this.#parts);
    if (all.length > MAX_BYTES) this.#cut = true;
    this.#parts = [all.length > MAX_BYTES ? Buffer.from(all.subarray(-MAX_BYTES)) : all];
    this.#bytes = this.#parts[0]?.length ?? 0;
  }
}
