/** From offsets of a text to numbers of its lines. */
import { lastAtOrBefore } from "../../guard/detect/sorted.ts";

export class LineNumbers {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  /** From 1. */
  of(offset: number): number {
    return lastAtOrBefore(this.#starts, offset) + 1;
  }
}
