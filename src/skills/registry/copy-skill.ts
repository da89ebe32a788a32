/** Copies the files of a skill into a folder of the registry. */
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { isSafePath } from "./safe-path.ts";
import { readBack } from "./skill-file.ts";

/**
 * Into a folder that does not exist yet. Only files that are as they were when the skill was read are taken. Nothing
 * is synced: a power cut may lose a copy, and reading finds out, because everything read back is checked.
 */
export async function copySkill({ dir, files }: Pick<Skill, "dir" | "files">, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await mkdir(to, { mode: 0o700 });
  const made = new Set([to]);
  for (const file of files) {
    if (!isSafePath(file.path)) {
      throw new ToolcribError(
        "invalid_config",
        `A file of the skill has an unusable path: ${JSON.stringify(file.path)}.`,
      );
    }
    const read = await readBack(join(dir, file.path), file);
    if (read.bytes === undefined) {
      throw new ToolcribError("conflict", `${file.path} was changed while the skill was copied; import it again.`);
    }
    const target = join(to, file.path);
    const folder = dirname(target);
    if (!made.has(folder)) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      made.add(folder);
    }
    // Never over another: names that differ in case only are one file on some systems.
    const handle = await open(target, "wx", file.executable ? 0o700 : 0o600);
    try {
      await handle.writeFile(read.bytes);
    } finally {
      await handle.close();
    }
  }
}
