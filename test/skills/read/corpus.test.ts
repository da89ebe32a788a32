/** Real skills, if they are there. They are read and counted; nothing in them is followed. */
import { existsSync } from "node:fs";
import { glob, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { Skill } from "../../../src/model/skill.ts";
import { readSimpleYaml } from "../../../src/skills/read/simple-yaml.ts";
import { readSkill } from "../../../src/skills/read/read-skill.ts";

const CORPUS = resolve(import.meta.dirname, "../../../../shared/corpus/skills");
const there = existsSync(CORPUS);
if (!there) console.log(`No corpus of skills at ${CORPUS}: the tests over it are left out.`);

const STANDARD = new Set(["name", "description", "license", "compatibility", "metadata", "allowed-tools"]);

/** The frontmatter, if the file keeps to the standard by the letter; an own small check, not the reader's. */
function conforms(text: string, folder: string): boolean {
  const yaml = /^---\n([\s\S]*?)\n---\n/.exec(text.replaceAll("\r\n", "\n"))?.[1];
  if (yaml === undefined) return false;
  const document = parseDocument(yaml, { prettyErrors: false });
  if (document.errors.length > 0 || document.warnings.length > 0) return false;
  const value: unknown = document.toJS();
  if (typeof value !== "object" || value === null || Object.keys(value).some((key) => !STANDARD.has(key))) return false;
  const { name, description, metadata = {} } = value as Record<string, unknown>;
  if (typeof name !== "string" || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) || name.length > 64) return false;
  if (name !== folder.replace(/~\d+$/, "") || typeof metadata !== "object" || metadata === null) return false;
  return typeof description === "string" && description.trim() !== "" && description.length <= 1024;
}

describe.skipIf(!there)("a corpus of real skills", () => {
  const skills = new Map<string, Skill>();
  const refused: string[] = [];
  const crashed: unknown[] = [];
  const files: string[] = [];

  beforeAll(async () => {
    for await (const file of glob("*/*/SKILL.md", { cwd: CORPUS })) files.push(join(CORPUS, file));
    for (const file of files) {
      try {
        skills.set(file, await readSkill(dirname(file)));
      } catch (thrown) {
        if (thrown instanceof ToolcribError) refused.push(file);
        else crashed.push(thrown);
      }
    }
  }, 120_000);

  it("[skill-16a] none crashes the reader and 99.5 % are usable", () => {
    expect(files.length).toBeGreaterThan(100);
    expect(crashed).toEqual([]);
    const usable = [...skills.values()].filter(
      ({ name, description, body }) => name !== "" && description !== "" && body.trim() !== "",
    );
    expect(usable.length / files.length).toBeGreaterThanOrEqual(0.995);
  });

  it("[skill-09c] those that conform to the standard give no warning", async () => {
    let count = 0;
    for (const [file, skill] of skills) {
      if (!conforms(await readFile(file, "utf8"), basename(dirname(file)))) continue;
      count += 1;
      expect(skill.warnings, file).toEqual([]);
    }
    expect(count).toBeGreaterThan(files.length / 4);
  });

  it("[skill-01a] what could be read needed no guess: names and descriptions are those that YAML finds", async () => {
    for (const [file, skill] of skills) {
      if (skill.warnings.length > 0) continue;
      const yaml = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---/.exec(await readFile(file, "utf8"))?.[1] ?? "";
      const value = parseDocument(yaml).toJS() as Record<string, unknown>;
      expect(skill.frontmatter, file).toEqual(value);
      const simple = readSimpleYaml(yaml);
      if (simple !== undefined) expect(simple.value, file).toEqual(value);
    }
  });
});
