/** Writes skills for tests. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface SkillText {
  readonly description?: string;
  /** Further lines of the frontmatter. */
  readonly more?: readonly string[];
  readonly body?: string;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

export function skillText(name: string, { description, more = [], body }: SkillText = {}): string {
  const lines = ["---", `name: ${name}`, `description: ${description ?? `Knows all about ${name}.`}`, ...more, "---"];
  return `${lines.join("\n")}\n\n${body ?? `# ${name}\n\nDo it with care.`}\n`;
}

/** The skill's own folder. */
export function writeSkill(parent: string, name: string, text: SkillText = {}): string {
  const dir = join(parent, name);
  const files = { "SKILL.md": skillText(name, text), ...text.files };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  }
  return dir;
}
