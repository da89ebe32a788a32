import { join } from "node:path";
import type { Skill } from "../../../src/model/skill.ts";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";

export const FIXTURES = join(import.meta.dirname, "../../fixtures/skills");

/** A SKILL.md in a folder `harbour`. */
export function parse(text: string | Uint8Array): Omit<Skill, "dir"> {
  return parseSkill(typeof text === "string" ? new TextEncoder().encode(text) : text, "harbour");
}

export function codes(skill: Pick<Skill, "warnings">): string[] {
  return skill.warnings.map(({ code }) => code);
}
