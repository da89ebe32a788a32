/** A skill that is always in the prompt, and uses that. By itself the flag is a feature of its dialect. */
import type { Skill, SkillFinding } from "../../../model/skill.ts";

const GREEDY =
  /\b(?:every|all|any|each)\s{1,3}(?:single )?(?:user )?(?:requests?|tasks?|messages?|conversations?|questions?|prompts?|sessions?|quer(?:y|ies)|interactions?|responses?|situations?|turns?|tool calls?|commands?|outputs?)\b|\balways (?:use|load|run|invoke|activate|apply|call|follow)\b|\bbefore (?:any|every|each|all)\b|\bfor everything\b|\bno matter what\b|\bregardless of\b|\bwhatever the\b/i;

export function alwaysOn(skill: Skill, findings: readonly SkillFinding[]): SkillFinding | undefined {
  if (!skill.always) return undefined;
  const greedy = GREEDY.test(skill.description);
  const suspicious = findings.some(({ severity, code }) => severity !== "note" && code !== "undeclared_env");
  if (!greedy && !suspicious) return undefined;
  return {
    code: "always_on",
    severity: greedy && suspicious ? "refuse" : "warn",
    message: suspicious
      ? "The skill is always active, which gives what else was found here every chance."
      : "The skill is always active and claims every request for itself.",
    file: "SKILL.md",
    line: lineOfAlways(skill),
    excerpt: skill.description.replace(/\s+/g, " ").slice(0, 160),
  };
}

function lineOfAlways({ bytes }: Skill): number {
  const lines = Buffer.from(bytes.subarray(0, 64 * 1024))
    .toString("utf8")
    .split("\n", 400);
  return Math.max(1, lines.findIndex((line) => /\balways\b["']?\s{0,3}:/.test(line)) + 1);
}
