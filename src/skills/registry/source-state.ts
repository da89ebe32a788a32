/** Whether a skill has changed where it was imported from. */
import { stat } from "node:fs/promises";
import { isAbsolute, join, posix } from "node:path";
import type { SkillManifest } from "../../model/skill.ts";
import { isInside } from "../../files/path-safety.ts";
import { readSkill } from "../read/read-skill.ts";

/** `unchecked`: it is not a folder of this machine and would have to be fetched. */
export type SourceState = "same" | "changed" | "gone" | "unchecked";

/** Clocks of file systems are coarse: a change this shortly before the import may have come after it. */
const MARGIN_MS = 2500;

export function isFolderSource({ from, sourcePath }: SkillManifest): boolean {
  // An archive's skill was read in a temporary folder, which is not below the archive.
  return isAbsolute(from) && isAbsolute(sourcePath) && isInside(from, sourcePath);
}

export async function sourceState(manifest: SkillManifest): Promise<SourceState> {
  if (!isFolderSource(manifest)) return "unchecked";
  const touched = await lastChange(manifest);
  if (touched === undefined) return "gone";
  if (touched < Date.parse(manifest.importedAt) - MARGIN_MS) return "same";
  try {
    return (await readSkill(manifest.sourcePath)).digest === manifest.digest ? "same" : "changed";
  } catch {
    return "changed";
  }
}

/**
 * When anything of the skill was last changed, as far as one can tell without reading it: a file that came or went
 * changes its folder, and the time of change, unlike that of writing, cannot be set back. Undefined without SKILL.md.
 */
async function lastChange({ sourcePath, facts }: SkillManifest): Promise<number | undefined> {
  const files = facts.files.map(({ path }) => path);
  const folders = new Set(files.map((path) => posix.dirname(path)));
  let latest = 0;
  for (const path of [...files, ...folders]) {
    const found = await stat(join(sourcePath, path)).catch(() => undefined);
    if (found === undefined && path === files[0]) return undefined;
    latest = Math.max(latest, found?.ctimeMs ?? Infinity);
  }
  return latest;
}
