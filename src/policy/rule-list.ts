import type { Rule } from "../model/decision.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import type { Matchable } from "./pattern.ts";
import { PatternList } from "./pattern-list.ts";

/** The rules of one level. */
export class RuleList {
  readonly #level: Rule["level"];
  readonly #where: string;
  readonly #lists: { readonly allow: PatternList | null; readonly deny: PatternList; readonly ask: PatternList };
  readonly #allowText: string;

  constructor(level: Rule["level"], { allow, deny = [], ask = [] }: ToolRules, where: string) {
    this.#level = level;
    this.#where = where;
    this.#lists = {
      allow: allow === undefined ? null : new PatternList(allow),
      deny: new PatternList(deny),
      ask: new PatternList(ask),
    };
    this.#allowText = (allow ?? []).join(", ");
  }

  denying(subject: Matchable): Rule | undefined {
    return this.#rule("deny", this.#lists.deny.match(subject));
  }

  asking(subject: Matchable): Rule | undefined {
    return this.#rule("ask", this.#lists.ask.match(subject));
  }

  allowing(subject: Matchable): Rule | undefined {
    return this.#rule("allow", this.#lists.allow?.match(subject));
  }

  /**
   * The allow list as one rule, if there is a list and nothing of it matches. An empty list allows nothing.
   * What an `ask` entry names is allowed once somebody says yes, so it need not stand in `allow` as well.
   */
  notAllowing(subject: Matchable): Rule | undefined {
    const { allow, ask } = this.#lists;
    if (allow === null || allow.match(subject) !== undefined || ask.match(subject) !== undefined) return undefined;
    return this.#rule("allow", this.#allowText);
  }

  #rule(list: "allow" | "deny" | "ask", pattern: string | undefined): Rule | undefined {
    return pattern === undefined ? undefined : { level: this.#level, list, pattern, where: this.#where };
  }
}
