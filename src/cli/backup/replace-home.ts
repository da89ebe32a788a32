/** Puts what was unpacked in the place of a home's state. What was there is moved aside, never deleted. */
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CONFIG, DATABASE_FILES, KEY, STATE } from "./home-state.ts";
import { MANIFEST } from "./manifest.ts";

/** Names in the home that a restore of these would move aside. */
export async function inTheWay(home: string, restored: readonly string[]): Promise<string[]> {
  const names = [...DATABASE_FILES, ...STATE, ...[...CONFIG, KEY].filter((name) => restored.includes(name))];
  const found = await Promise.all(names.map(async (name) => ((await hasContent(join(home, name))) ? [name] : [])));
  return found.flat();
}

/**
 * All by renames within the home, undone if one fails. `staged` is a folder of the home; `aside` is made if it is needed.
 */
export async function replaceHome(
  home: string,
  staged: string,
  aside: string,
  moved: readonly string[],
): Promise<void> {
  const done: { from: string; to: string }[] = [];
  const move = async (from: string, to: string): Promise<void> => {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await rename(from, to);
    done.push({ from, to });
  };
  try {
    for (const name of moved) await move(join(home, name), join(aside, name));
    for (const name of await readdir(staged)) {
      if (name === MANIFEST) continue;
      // What is left of that name is an empty folder or file.
      await rm(join(home, name), { recursive: true, force: true });
      await move(join(staged, name), join(home, name));
    }
  } catch (error) {
    for (const { from, to } of done.toReversed()) await rename(to, from);
    throw error;
  }
}

async function hasContent(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return false;
  return found.isDirectory() ? (await readdir(path)).length > 0 : found.size > 0;
}
