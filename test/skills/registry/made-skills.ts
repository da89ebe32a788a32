/** Skill folders on disk for tests of the registry. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach } from "vitest";
import type { MissingNeeds } from "../../../src/model/skill.ts";
import { readSkill } from "../../../src/skills/read/read-skill.ts";
import type { SkillToPut } from "../../../src/skills/registry/skill-manifest.ts";

export const NOTHING: MissingNeeds = { bins: [], anyBins: [], env: [], config: [], os: [], servers: [] };

const made = new Set<string>();

afterEach(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
  made.clear();
});

/** Gone after the test. */
export function temporaryFolder(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-registry-")));
  made.add(dir);
  return dir;
}

export function writeFile(file: string, text: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
}

export function skillText(name: string, body = "Body.", more = ""): string {
  return `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n${body}\n`;
}

/** Writes `<root>/<folder>/SKILL.md`; the folder is called like the skill unless said. */
export function makeSkill(
  root: string,
  name: string,
  options: { body?: string; more?: string; folder?: string } = {},
): string {
  const dir = join(root, options.folder ?? name);
  writeFile(join(dir, "SKILL.md"), skillText(name, options.body, options.more));
  return dir;
}

export async function toPut(dir: string, source = dirname(dir), more: Partial<SkillToPut> = {}): Promise<SkillToPut> {
  return { skill: await readSkill(dir), source, findings: [], missing: NOTHING, ...more };
}
