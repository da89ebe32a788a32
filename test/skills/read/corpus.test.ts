import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { readSkill } from "../../../src/skills/read/read-skill.ts";
import { corpusSkills, type CorpusSkill, HARMLESS_GROUPS } from "../corpus.ts";

const byName = (skills: readonly CorpusSkill[]): [string, CorpusSkill][] =>
  skills.map((skill) => [`${skill.group}/${skill.name}`, skill]);

describe("the corpus of skills", () => {
  it.each(byName(corpusSkills(HARMLESS_GROUPS)))("[skill-16a] %s is usable", async (_, { dir }) => {
    const { name, description, body } = await readSkill(dir);
    for (const text of [name, description, body.trim()]) expect(text).not.toBe("");
  });

  it.each(byName(corpusSkills(["standard"])))("[skill-09c] %s gives no warning", async (_, { dir }) => {
    expect((await readSkill(dir)).warnings).toEqual([]);
  });

  it.each(byName(corpusSkills(["damaged"])))("[skill-09c] %s gives a warning", async (_, { dir }) => {
    expect((await readSkill(dir)).warnings).not.toEqual([]);
  });

  it.each(byName(corpusSkills(["standard", "dialects"])))("[skill-01a] %s says what YAML finds", async (_, { dir }) => {
    const skill = await readSkill(dir);
    if (skill.warnings.length > 0) return;
    const text = await readFile(join(dir, "SKILL.md"), "utf8");
    const yaml = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---/.exec(text)?.[1] ?? "";
    expect(skill.frontmatter).toEqual(parseDocument(yaml).toJS());
  });
});
