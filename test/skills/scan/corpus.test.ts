import { describe, expect, it } from "vitest";
import { readSkill } from "../../../src/skills/read/read-skill.ts";
import { scanSkill, worstSeverity } from "../../../src/skills/scan/scan-skill.ts";
import { corpusSkills, type CorpusSkill, filledIn, HARMLESS_GROUPS } from "../corpus.ts";

const byName = (skills: readonly CorpusSkill[]): [string, CorpusSkill][] =>
  skills.map((skill) => [`${skill.group}/${skill.name}`, skill]);

describe("the corpus of skills", () => {
  it.each(byName(corpusSkills(HARMLESS_GROUPS)))("[skill-09b] [skill-09c] finds nothing in %s", async (_, { dir }) => {
    expect(await scanSkill(await readSkill(dir))).toEqual([]);
  });

  it.each(byName(corpusSkills(["malicious"])))("[skill-09a] refuses %s", async (_, malicious) => {
    const { skill, readFile } = await filledIn(malicious);
    expect(worstSeverity(await scanSkill(skill, readFile))).toBe("refuse");
  });
});
