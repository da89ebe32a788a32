import type { Rule } from "../model/decision.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import { compileGlob, type Glob } from "./glob.ts";

interface Entry {
  readonly glob: Glob;
  readonly rule: Rule;
}

/** The allow and deny globs of one level, compiled once. */
export class RuleList {
  readonly #allow: readonly Entry[] | null;
  readonly #deny: readonly Entry[];
  readonly #unmatched: Rule;

  constructor(level: Rule["level"], rules: ToolRules, where: string) {
    const entries = (list: "allow" | "deny", patterns: readonly string[]): Entry[] =>
      patterns.map((pattern) => ({ glob: compileGlob(pattern), rule: { level, list, pattern, where } }));
    this.#allow = rules.allow === undefined ? null : entries("allow", rules.allow);
    this.#deny = entries("deny", rules.deny ?? []);
    this.#unmatched = { level, list: "allow", pattern: (rules.allow ?? []).join(", "), where };
  }

  /** The first deny rule that matches any of the names. */
  denying(names: readonly string[]): Rule | undefined {
    return firstMatch(this.#deny, names);
  }

  /** The first allow rule that matches any of the names. */
  allowing(names: readonly string[]): Rule | undefined {
    return firstMatch(this.#allow ?? [], names);
  }

  /** The allow list as one rule, if there is a list and none of it matches. An empty list allows nothing. */
  notAllowing(names: readonly string[]): Rule | undefined {
    return this.#allow !== null && firstMatch(this.#allow, names) === undefined ? this.#unmatched : undefined;
  }
}

function firstMatch(entries: readonly Entry[], names: readonly string[]): Rule | undefined {
  return entries.find((entry) => names.some((name) => entry.glob(name)))?.rule;
}
