/** The files of imported skills in a store that hubs on several machines share: each unpacks what its home lacks. */
import { randomUUID } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SkillManifest } from "../../model/skill.ts";
import type { Store } from "../../store/store.ts";
import { bytesDigest } from "../read/digest.ts";
import { isSafePath } from "./safe-path.ts";
import { readBack } from "./skill-file.ts";

/** Of all files of one skill; a larger one is only at the node that imported it. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Files that were put and not spoken of for so long belong to nothing. */
const UNNAMED_MS = 60 * 60_000;

type Files = Store["skillFiles"];

export function isTooLarge({ facts }: SkillManifest): boolean {
  return facts.files.reduce((sum, { size }) => sum + size, 0) > MOST_BYTES;
}

/** Before the manifest is entered, so that whoever reads it finds them. */
export async function publishFiles(files: Files, manifest: SkillManifest, folder: string): Promise<void> {
  for (const file of manifest.facts.files) {
    const read = await readBack(join(folder, ...file.path.split("/")), file);
    if (read.bytes !== undefined) await files.put(file.digest, read.bytes);
  }
}

/** True if the folder has all of them now. The folder appears whole or not at all. */
export async function unpackFiles(files: Files, manifest: SkillManifest, folder: string): Promise<boolean> {
  const draft = join(dirname(folder), `.${randomUUID()}`);
  try {
    for (const { path, digest, executable } of manifest.facts.files) {
      const bytes = isSafePath(path) ? await files.get(digest) : undefined;
      if (bytes === undefined || bytesDigest(bytes) !== digest) return false;
      const target = join(draft, ...path.split("/"));
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(target, bytes, { flag: "wx", mode: executable ? 0o700 : 0o600 });
    }
    await rename(draft, folder);
    return true;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

export async function pruneFiles(files: Files, manifests: readonly SkillManifest[], now: number): Promise<void> {
  const kept = new Set(manifests.flatMap(({ facts }) => facts.files.map(({ digest }) => digest)));
  await files.prune(kept, new Date(now - UNNAMED_MS).toISOString());
}
