import type { SkillInfo } from "../../hub/skills/hub-skills.ts";

const MOST = 20;
/** As long as the name of a tool can be, and in its letters. */
const PLAIN = /^[A-Za-z0-9_*?:()./-]{1,64}$/;

/**
 * The tools that a skill allows, for a model. They are words of whoever wrote the skill and stand where ours do: of what is no
 * plain name, and of all that comes from a server, it says how many there are, since words in a row are a sentence.
 */
export function shownPatterns({ dir, facts }: Pick<SkillInfo, "dir" | "facts">): string {
  const { allowedTools } = facts;
  const shown = dir === undefined ? [] : allowedTools.filter((pattern) => PLAIN.test(pattern)).slice(0, MOST);
  const rest = allowedTools.length - shown.length;
  if (shown.length === 0) return `what its ${rest} patterns name`;
  return `${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
