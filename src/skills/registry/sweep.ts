/**
 * Removes copies that no manifest speaks of, such as those of a process that was killed in the middle. A home may serve
 * several stores, and one does not know what another names; so the name of a copy says whose it is. Only under the lock.
 */
import { readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SkillManifest } from "../../model/skill.ts";
import { inParallel } from "../find/in-parallel.ts";

/** The name of a folder with a copy: of what, and of which store. */
export function copyName(digest: string, owner: string): string {
  return `${digest.replace(/^sha256:/, "").slice(0, 16)}-${owner}`;
}

/** Those of an earlier version say nothing: then the digest is followed by nothing or by a short number. */
function ownerOf(copy: string): string | undefined {
  const [, owner = ""] = copy.split("-");
  return owner.length < 8 ? undefined : owner;
}

export interface Sweeping {
  /** Whose copies go. */
  readonly owner: string;
  /** Folders that a manifest of this store spoke of until now, relative to `dir`. */
  readonly named: Iterable<string>;
}

/** @param dir The registry's folder. */
export async function sweep(
  dir: string,
  manifests: readonly Pick<SkillManifest, "dir">[],
  { owner, named }: Sweeping,
): Promise<void> {
  const kept = new Set(manifests.map((manifest) => manifest.dir));
  const before = new Set(named);
  const ids = await readdir(join(dir, "files")).catch(() => []);
  await inParallel(ids, 16, async (id) => {
    const copies = await readdir(join(dir, "files", id)).catch(() => []);
    for (const copy of copies) {
      const place = `files/${id}/${copy}`;
      const whose = ownerOf(copy);
      if (!kept.has(place) && (whose === owner || (whose === undefined && before.has(place))))
        await discard(join(dir, place));
    }
  });
}

/** A copy that the manifests of a store spoke of, unless it is another store's: one that was restored names those too. */
export async function discardNamed(
  dir: string,
  { dir: place }: Pick<SkillManifest, "dir">,
  owner: string,
): Promise<void> {
  const whose = ownerOf(place.split("/").at(-1) ?? "");
  if (whose === undefined || whose === owner) await discard(join(dir, place));
}

/** What cannot be removed now, because somebody reads it on Windows, is removed by the next sweep. */
export async function discard(copy: string): Promise<void> {
  await rm(copy, { recursive: true, force: true }).catch(() => undefined);
  // The folder of the id, if that was the last copy in it.
  await rmdir(dirname(copy)).catch(() => undefined);
}
