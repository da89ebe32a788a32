/** Skills for the scan's tests, from texts; nothing is written to disk. */
import type { Skill, SkillFinding } from "../../../src/model/skill.ts";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";
import { scanSkill } from "../../../src/skills/scan/scan-skill.ts";

export interface Sample {
  readonly name: string;
  /** The code that the worst finding must have; any will do without. */
  readonly code?: string;
  /** SKILL.md after the frontmatter; or all of it, if it starts with one. */
  readonly body: string;
  readonly description?: string;
  readonly skillName?: string;
  /** Further lines of the frontmatter. */
  readonly extra?: string;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly executable?: readonly string[];
}

export function skillOf(sample: Sample): { skill: Skill; readFile: (path: string) => Promise<Uint8Array> } {
  const {
    skillName = "pdf-notes",
    description = "Takes notes from PDF files. Use when the user wants notes of a paper.",
    extra = "",
  } = sample;
  const text = sample.body.startsWith("---\n")
    ? sample.body
    : `---\nname: ${skillName}\ndescription: ${description}\n${extra}---\n\n${sample.body}\n`;
  const parsed = parseSkill(Buffer.from(text), skillName);
  const files = new Map<string, Uint8Array>();
  for (const [path, content] of Object.entries(sample.files ?? {}))
    files.set(path, typeof content === "string" ? Buffer.from(content) : content);
  const skill: Skill = {
    ...parsed,
    dir: "/nowhere",
    files: [
      ...parsed.files,
      ...[...files].map(([path, bytes]) => ({
        path,
        size: bytes.length,
        digest: `sha256:${"0".repeat(64)}`,
        executable: sample.executable?.includes(path) ?? false,
      })),
    ],
  };
  const readFile = (path: string): Promise<Uint8Array> => {
    const bytes = files.get(path);
    return bytes === undefined ? Promise.reject(new Error(`no ${path}`)) : Promise.resolve(bytes);
  };
  return { skill, readFile };
}

export function scanSample(sample: Sample): Promise<SkillFinding[]> {
  const { skill, readFile } = skillOf(sample);
  return scanSkill(skill, readFile);
}
