import { compileException, compilePattern, type Matchable, type Pattern } from "./pattern.ts";

/** A list of patterns, compiled once. An entry that begins with `!` takes out what the others matched. */
export class PatternList {
  readonly #entries: readonly { readonly text: string; readonly matches: Pattern }[];
  readonly #exceptions: readonly Pattern[];

  constructor(patterns: readonly string[]) {
    this.#entries = patterns
      .filter((text) => !text.startsWith("!"))
      .map((text) => ({ text, matches: compilePattern(text) }));
    this.#exceptions = patterns.filter((text) => text.startsWith("!")).map((text) => compileException(text.slice(1)));
  }

  /** The first entry that matches, unless an exception does too. */
  match(subject: Matchable): string | undefined {
    const found = this.#entries.find((entry) => entry.matches(subject))?.text;
    return found === undefined || this.excepts(subject) ? undefined : found;
  }

  excepts(subject: Matchable): boolean {
    return this.#exceptions.some((matches) => matches(subject));
  }
}
