import type { Rule } from "../model/decision.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import { compilePattern, type Matchable, type Pattern } from "./pattern.ts";

interface Entry {
  readonly matches: Pattern;
  readonly rule: Rule;
}

type ListName = "allow" | "deny" | "ask";

/** One list, compiled once. An entry that begins with `!` takes out what the others matched. */
class CompiledList {
  readonly #entries: readonly Entry[];
  readonly #exceptions: readonly Pattern[];

  constructor(level: Rule["level"], list: ListName, patterns: readonly string[], where: string) {
    this.#entries = patterns
      .filter((pattern) => !pattern.startsWith("!"))
      .map((pattern) => ({ matches: compilePattern(pattern), rule: { level, list, pattern, where } }));
    this.#exceptions = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => compilePattern(pattern.slice(1)));
  }

  match(subject: Matchable): Rule | undefined {
    const found = this.#entries.find((entry) => entry.matches(subject))?.rule;
    return found === undefined || this.#exceptions.some((excepts) => excepts(subject)) ? undefined : found;
  }
}

/** The rules of one level. */
export class RuleList {
  readonly #allow: CompiledList | null;
  readonly #deny: CompiledList;
  readonly #ask: CompiledList;
  readonly #unmatched: Rule;

  constructor(level: Rule["level"], rules: ToolRules, where: string) {
    this.#allow = rules.allow === undefined ? null : new CompiledList(level, "allow", rules.allow, where);
    this.#deny = new CompiledList(level, "deny", rules.deny ?? [], where);
    this.#ask = new CompiledList(level, "ask", rules.ask ?? [], where);
    this.#unmatched = { level, list: "allow", pattern: (rules.allow ?? []).join(", "), where };
  }

  denying(subject: Matchable): Rule | undefined {
    return this.#deny.match(subject);
  }

  asking(subject: Matchable): Rule | undefined {
    return this.#ask.match(subject);
  }

  allowing(subject: Matchable): Rule | undefined {
    return this.#allow?.match(subject);
  }

  /**
   * The allow list as one rule, if there is a list and nothing of it matches. An empty list allows nothing.
   * What an `ask` entry names is allowed once somebody says yes, so it need not stand in `allow` as well.
   */
  notAllowing(subject: Matchable): Rule | undefined {
    if (this.#allow === null || this.#allow.match(subject) !== undefined) return undefined;
    return this.#ask.match(subject) === undefined ? this.#unmatched : undefined;
  }
}
