/** Changes the lists of one level so that they say allow, ask or deny of a pattern. */
import type { ToolRules } from "../model/tool-rules.ts";
import { type Matchable, PatternList } from "./pattern.ts";

/** `none`: no entry of its own, so that others decide. */
export type WantedVerdict = "allow" | "ask" | "deny" | "none";

type RuleLists = Pick<ToolRules, "allow" | "ask" | "deny">;

/**
 * Entries that say the same or the opposite of this pattern are replaced. Where wider entries of the level decide otherwise, it
 * becomes an exception to them. Rules with conditions stay as they are.
 * @param subject What the pattern names, if that is one thing; only then wider entries are found.
 */
export function withVerdict(
  rules: RuleLists,
  pattern: string,
  verdict: WantedVerdict,
  subject: Matchable | undefined,
): RuleLists {
  const without = (list: readonly string[] = []): string[] =>
    list.filter((entry) => entry !== pattern && entry !== `!${pattern}`);
  const excepted = (list: readonly string[]): string[] =>
    subject !== undefined && new PatternList(list).match(subject) !== undefined ? [...list, `!${pattern}`] : [...list];
  const [deny, ask] = [without(rules.deny), without(rules.ask)];
  // An empty list would deny everything, so one that is there stays.
  const { allow } = rules;
  switch (verdict) {
    case "none":
      return { allow: allow && without(allow), ask, deny };
    case "deny":
      return { allow, ask, deny: [...deny, pattern] };
    case "ask":
      return { allow, ask: [...ask, pattern], deny: excepted(deny) };
    case "allow":
      return { allow: allow && allowing(allow, pattern, subject), ask: excepted(ask), deny: excepted(deny) };
  }
}

function allowing(allow: readonly string[], pattern: string, subject: Matchable | undefined): string[] {
  const rest = allow.filter((entry) => entry !== `!${pattern}`);
  const isGranted = subject === undefined ? rest.includes(pattern) : new PatternList(rest).match(subject) !== undefined;
  return isGranted ? rest : [...rest, pattern];
}
