/** Folders are swapped by renames, so that a reader sees the old one or the new one; the old one waits until the end. */
import { createHash, randomUUID } from "node:crypto";
import { cp, lstat, readdir, readFile, readlink, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { isThere } from "./file-state.ts";
import type { Journal } from "./journal.ts";
import { makeFolder } from "./make-folder.ts";
import type { FolderStep } from "./steps.ts";

export async function placeFolder(journal: Journal, target: string, from: string): Promise<void> {
  const path = resolve(target);
  const source = await realpath(from);
  const digest = await treeDigest(source);
  await makeFolder(journal, dirname(path));
  const fresh = { path: besideOf(path, "new"), digest };
  const old = (await isThere(path)) ? besideOf(path, "old") : null;
  await journal.begin({ kind: "folder", path, fresh, old });
  await cp(source, fresh.path, { recursive: true, verbatimSymlinks: true, errorOnExist: true, force: false });
  if ((await treeDigest(fresh.path)) !== digest) {
    throw new ToolcribError("conflict", `${from} changed while it was being copied`, { hint: "Try again." });
  }
  if (old !== null) await rename(path, old);
  await rename(fresh.path, path);
}

export async function removeFolder(journal: Journal, target: string): Promise<void> {
  const path = resolve(target);
  if (!(await isThere(path))) return;
  const old = besideOf(path, "old");
  await journal.begin({ kind: "folder", path, fresh: null, old });
  await rename(path, old);
}

/** Puts back what was there, from wherever the step got to; it may be called again after it was cut off itself. */
export async function undoFolder({ path, fresh, old }: FolderStep): Promise<"restored" | "kept" | "same"> {
  const isOldThere = old !== null && (await isThere(old));
  if (fresh !== null && !(await isThere(fresh.path)) && (await isThere(path)) && (old === null || isOldThere)) {
    if ((await treeDigest(path)) !== fresh.digest) return "kept";
    await rename(path, fresh.path);
  }
  if (old !== null && isOldThere) {
    if (await isThere(path)) return "kept";
    await rename(old, path);
  }
  const isFreshThere = fresh !== null && (await isThere(fresh.path));
  if (isFreshThere) await rm(fresh.path, { recursive: true, force: true });
  return isOldThere || isFreshThere ? "restored" : "same";
}

/** Hidden, so that programs that look for skills in the folder around it pass over it. */
function besideOf(path: string, what: "new" | "old"): string {
  return join(dirname(path), `.${basename(path)}.toolcrib-${what}-${randomUUID().slice(0, 8)}`);
}

/** One text for everything below a folder: names, kinds, contents, and whether a file may be run. */
async function treeDigest(folder: string): Promise<string> {
  const hash = createHash("sha256");
  const visit = async (path: string, name: string): Promise<void> => {
    const stats = await lstat(path);
    const add = (kind: string, contents: string | Uint8Array): void => {
      hash.update(JSON.stringify([name, kind, contents.length])).update(contents);
    };
    if (stats.isSymbolicLink()) add("link", await readlink(path));
    else if (stats.isDirectory()) {
      add("folder", "");
      for (const child of (await readdir(path)).toSorted()) await visit(join(path, child), `${name}/${child}`);
    } else if (stats.isFile()) add((stats.mode & 0o100) === 0 ? "file" : "program", await readFile(path));
    else throw new ToolcribError("invalid_config", `${path} is neither a file nor a folder`);
  };
  await visit(folder, "");
  return hash.digest("hex");
}
