/** Reads one file of a skill and makes sure that it is the one that is on record. */
import { hash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolcribError } from "../model/errors.ts";
import type { Skill, SkillFile, SkillManifest } from "../model/skill.ts";
import type { Store } from "../store/store.ts";

/** Why a file is not what it was; undefined bytes go with it. */
export type VerifiedRead =
  | { readonly bytes: Buffer }
  | { readonly bytes: undefined; readonly reason: "gone" | "changed" };

export async function readIfUnchanged(
  path: string,
  { size, digest }: Pick<SkillFile, "size" | "digest">,
): Promise<VerifiedRead> {
  let handle;
  try {
    // Without waiting: a named pipe put in the file's place would never open.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return { bytes: undefined, reason: "gone" };
    throw error;
  }
  try {
    const found = await handle.stat();
    // Looked at first, so that a file that grew without bounds is not read.
    if (!found.isFile() || found.size !== size) return { bytes: undefined, reason: "changed" };
    const bytes = await handle.readFile();
    return bytesDigest(bytes) === digest ? { bytes } : { bytes: undefined, reason: "changed" };
  } finally {
    await handle.close();
  }
}

export async function readSkillFile(dir: string, files: readonly SkillFile[], path: string): Promise<Uint8Array> {
  const known = files.find((file) => file.path === path);
  if (known === undefined) throw new ToolcribError("not_found", `The skill has no file ${JSON.stringify(path)}.`);
  const read = await readIfUnchanged(join(dir, ...path.split("/")), known);
  if (read.bytes !== undefined) return read.bytes;
  if (read.reason === "gone") throw new ToolcribError("not_found", `The file ${path} in ${dir} is gone.`);
  throw new ToolcribError("blocked", `The file ${path} in ${dir} has changed since the skill was read.`, {
    hint: "A hub that watches its config picks the change up by itself. hub.skills.refresh() does it at once.",
  });
}

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
        `A file of the skill has an invalid path: ${JSON.stringify(file.path)}.`,
      );
    }
    const read = await readIfUnchanged(join(dir, file.path), file);
    if (read.bytes === undefined) {
      throw new ToolcribError("conflict", `${file.path} changed while the skill was being copied. Import it again.`);
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

// Files of imported skills in a store that several machines share: each unpacks what its home lacks.

/** Of all files of one skill; a larger one is only at the node that imported it. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024;
/** Files that were put and not spoken of for so long belong to nothing. */
const UNREFERENCED_MS = 60 * 60_000;

type Files = Store["skillFiles"];

export function isTooLarge({ facts }: SkillManifest): boolean {
  return facts.files.reduce((sum, { size }) => sum + size, 0) > MAX_SHARED_BYTES;
}

/** Before the manifest is entered, so that whoever reads it finds them. */
export async function publishFiles(files: Files, manifest: SkillManifest, folder: string): Promise<void> {
  for (const file of manifest.facts.files) {
    const read = await readIfUnchanged(join(folder, ...file.path.split("/")), file);
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
  await files.prune(kept, new Date(now - UNREFERENCED_MS).toISOString());
}

/**
 * Whether a path with `/`, of a file inside a skill, stays inside on every platform: a registry may be written on one
 * and read on another.
 */
export function isSafePath(path: string): boolean {
  if (path === "" || path.length > 4096 || path.includes("\0")) return false;
  // A backslash is a separator and a colon a drive or a stream on Windows; elsewhere both are letters.
  if (process.platform === "win32" && /[\\:]/.test(path)) return false;
  return path.split("/").every((step) => step !== "" && step !== "." && step !== "..");
}

export function bytesDigest(bytes: Uint8Array): string {
  return `sha256:${hash("sha256", bytes, "hex")}`;
}

/** Of all files together. The order of the list does not matter, and neither do modes, which not every system has. */
export function skillDigest(files: readonly SkillFile[]): string {
  const pairs = files.map(({ path, digest }) => [path, digest] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `sha256:${hash("sha256", JSON.stringify(pairs), "hex")}`;
}
