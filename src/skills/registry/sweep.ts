/** Removes what no manifest speaks of: copies of a process that was killed in the middle. Only under the lock. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SkillManifest } from "../../model/skill.ts";
import { inParallel } from "../find/in-parallel.ts";

export async function sweep(dir: string, manifests: readonly SkillManifest[]): Promise<void> {
  const files = join(dir, "files");
  const kept = new Map(manifests.map(({ id, dir: place }) => [id, place.split("/").at(-1)]));
  const ids = await readdir(files).catch(() => []);
  await inParallel(ids, 16, async (id) => {
    const keep = kept.get(id);
    if (keep === undefined) return discard(join(files, id));
    const copies = await readdir(join(files, id)).catch(() => []);
    for (const copy of copies) if (copy !== keep) await discard(join(files, id, copy));
  });
}

/** What cannot be removed now, because somebody reads it on Windows, is removed by the next sweep. */
export async function discard(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => undefined);
}
