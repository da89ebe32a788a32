/** The last words of each server's programs, over restarts. They may hold secrets: whoever shows them masks them. */
import { StderrTail } from "./stderr-tail.ts";

const LINES_KEPT = 50;
const NEW_LINE = Buffer.from("\n");

export class StderrLog {
  readonly #tails = new Map<string, StderrTail>();

  /** Another program of that server: it begins on a line of its own. */
  begin(server: string): void {
    this.#tails.get(server)?.push(NEW_LINE);
  }

  push(server: string, chunk: Buffer): void {
    let tail = this.#tails.get(server);
    if (tail === undefined) this.#tails.set(server, (tail = new StderrTail(LINES_KEPT)));
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
