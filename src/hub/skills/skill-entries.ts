/** Skills as the MCP skills extension tells of them: with a digest for every file, and only those that a client can verify. */
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ResourceDefinition } from "../../model/protocol.ts";
import { inParallel } from "../../skills/find/in-parallel.ts";
import { mimeTypeOf } from "../../skills/offer/file-content.ts";
import { fileUri, MAIN_FILE, mainFile, type OfferedSkill } from "../../skills/offer/offered-skill.ts";

export interface SkillEntry extends JsonObject {
  /** Of SKILL.md. */
  readonly uri: string;
  /** As SKILL.md has it. */
  readonly frontmatter: JsonObject;
  readonly resources: readonly { readonly uri: string; readonly digest: string; readonly size: number }[];
}

const AT_ONCE = 16;
const DIRECTORY_TYPE = "inode/directory";

export class SkillEntries {
  readonly #known = new WeakMap<OfferedSkill, Promise<SkillEntry | undefined>>();

  async list(skills: readonly OfferedSkill[]): Promise<SkillEntry[]> {
    const entries = await inParallel(skills, AT_ONCE, (skill) => this.of(skill));
    return entries.filter((entry) => entry !== undefined);
  }

  /** Undefined for a skill that is not to the letter of the standard: clients would refuse it. */
  of(skill: OfferedSkill): Promise<SkillEntry | undefined> {
    let entry = this.#known.get(skill);
    if (entry === undefined) {
      entry = entryOf(skill).catch(() => {
        // Its file could not be read now; it may be later.
        this.#known.delete(skill);
        return undefined;
      });
      this.#known.set(skill, entry);
    }
    return entry;
  }
}

async function entryOf(skill: OfferedSkill): Promise<SkillEntry | undefined> {
  // The SDK's own rules and its own reading of YAML: what passes here passes in the SDK's client.
  const { skillEntry, SKILL_LIMITS } = await import("@modelcontextprotocol/server/ext/skills");
  const { files, name } = skill.facts;
  // As of two skills of one name: only one of them can be called so.
  if (!skill.base.endsWith(`/${name}/`) || mainFile(skill) !== MAIN_FILE) return undefined;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (files.length > SKILL_LIMITS.files || bytes > SKILL_LIMITS.bytes) return undefined;
  const main = await skill.read(MAIN_FILE);
  const checked = await skillEntry(name, { [MAIN_FILE]: main }).catch(() => undefined);
  if (checked === undefined) return undefined;
  const resources = files.map(({ path, digest, size }) => ({ uri: fileUri(skill, path), digest, size }));
  return { uri: fileUri(skill, MAIN_FILE), frontmatter: checked.frontmatter, resources };
}

/** The direct children of a folder of a skill, by the folder's URI. */
export function directoryOf(skills: readonly OfferedSkill[], uri: string): ResourceDefinition[] {
  const folder = uri.endsWith("/") ? uri : `${uri}/`;
  const children = new Map<string, ResourceDefinition>();
  for (const skill of skills) {
    if (!folder.startsWith(skill.base)) continue;
    for (const { path, size } of skill.facts.files) {
      const file = fileUri(skill, path);
      if (!file.startsWith(folder)) continue;
      const [name = "", ...below] = file.slice(folder.length).split("/");
      const child = folder + name;
      if (below.length > 0)
        children.set(child, { uri: child, name: decodeURIComponent(name), mimeType: DIRECTORY_TYPE });
      else children.set(child, { uri: child, name: decodeURIComponent(name), ...typeOf(path), size });
    }
  }
  if (children.size > 0) return [...children.values()];
  throw new ToolcribError("not_found", `No skill has a folder ${uri}.`);
}

function typeOf(path: string): { mimeType?: string } {
  const mimeType = mimeTypeOf(path);
  return mimeType === undefined ? {} : { mimeType };
}
