import { compilePattern, type Matchable, type Pattern } from "./pattern.ts";

/**
 * A list of patterns, compiled once. An entry that begins with `!` takes out what the others matched. In doubt about what a
 * URI means an entry applies and an exception does not.
 */
export class PatternList {
  readonly #entries: readonly { readonly text: string; readonly pattern: Pattern }[];
  readonly #exceptions: readonly Pattern[];

  constructor(patterns: readonly string[]) {
    this.#entries = patterns
      .filter((text) => !text.startsWith("!"))
      .map((text) => ({ text, pattern: compilePattern(text) }));
    this.#exceptions = patterns.filter((text) => text.startsWith("!")).map((text) => compilePattern(text.slice(1)));
  }

  /** The first entry that matches, unless an exception does too. */
  match(subject: Matchable): string | undefined {
    const found = this.#entries.find((entry) => entry.pattern.names(subject))?.text;
    return found === undefined || this.excepts(subject) ? undefined : found;
  }

  excepts(subject: Matchable): boolean {
    return this.#exceptions.some((pattern) => pattern.namesSurely(subject));
  }
}
