/** The files of skills: read only if they match their digests, copied, and shared between machines. */
import { hash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolcribError, systemErrorCode } from "../model/errors.ts";
import type { Skill, SkillFile, SkillManifest } from "../model/skill.ts";
import type { Store } from "../store/store.ts";

/** The bytes, or why the file is not the one on record. */
type VerifiedRead = { readonly bytes: Buffer } | { readonly bytes: undefined; readonly reason: "gone" | "changed" };

export async function readIfUnchanged(
  path: string,
  { size, digest }: Pick<SkillFile, "size" | "digest">,
): Promise<VerifiedRead> {
  let handle;
  try {
    // Non-blocking: a named pipe in the file's place would never open.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return { bytes: undefined, reason: "gone" };
    throw error;
  }
  try {
    const found = await handle.stat();
    // Checked first, so that a file that has grown without bounds is not read.
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
 * Copies a skill into a folder that does not exist yet. A file that has changed since the skill was read fails the copy.
 * Nothing is synced: after a power cut, reading finds out, because every file is checked.
 */
export async function copySkill({ dir, files }: Pick<Skill, "dir" | "files">, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await mkdir(to, { mode: 0o700 });
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
    await writeSkillFile(to, file, read.bytes);
  }
}

/** Never replaces a file: names that differ only in case are one file on some systems. */
async function writeSkillFile(folder: string, { path, executable }: SkillFile, bytes: Uint8Array): Promise<void> {
  const target = join(folder, ...path.split("/"));
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await writeFile(target, bytes, { flag: "wx", mode: executable ? 0o700 : 0o600 });
}

// Files of imported skills in a store that several machines share: each unpacks what its home lacks.

/** Of all files of one skill. A larger skill is only on the machine that imported it. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024;
/** Files without a manifest are removed after this time. */
const UNREFERENCED_MS = 60 * 60_000;

type Files = Store["skillFiles"];

export function isTooLarge({ facts }: SkillManifest): boolean {
  return facts.files.reduce((sum, { size }) => sum + size, 0) > MAX_SHARED_BYTES;
}

/** Called before the manifest is stored, so that its readers find the files. */
export async function publishFiles(files: Files, manifest: SkillManifest, folder: string): Promise<void> {
  for (const file of manifest.facts.files) {
    const read = await readIfUnchanged(join(folder, ...file.path.split("/")), file);
    if (read.bytes !== undefined) await files.put(file.digest, read.bytes);
  }
}

/** True if the folder now has all files. It appears complete or not at all. */
export async function unpackFiles(files: Files, manifest: SkillManifest, folder: string): Promise<boolean> {
  const draft = join(dirname(folder), `.${randomUUID()}`);
  try {
    for (const file of manifest.facts.files) {
      const bytes = isSafePath(file.path) ? await files.get(file.digest) : undefined;
      if (bytes === undefined || bytesDigest(bytes) !== file.digest) return false;
      await writeSkillFile(draft, file, bytes);
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

/** The digest of all files together. It depends neither on their order nor on modes, which not every system has. */
export function skillDigest(files: readonly SkillFile[]): string {
  const pairs = files.map(({ path, digest }) => [path, digest] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `sha256:${hash("sha256", JSON.stringify(pairs), "hex")}`;
}
