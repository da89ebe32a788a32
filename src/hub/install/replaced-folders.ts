/** What stood where `--force` puts a skill is kept; what was the user's own comes back when the skill goes. */
import { randomUUID } from "node:crypto";
import { lstat, readlink, rmdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import type { Installed } from "./installed-file.ts";
import { type FolderRecord, folderState, recordOf } from "./skill-copies.ts";

type Replaced = NonNullable<FolderRecord["replaced"]>;

export interface KeptFolder {
  readonly path: string;
  readonly replaced: Replaced;
  /** false for a copy of the skill itself that somebody edited: it would bring back what is to go. */
  readonly comesBack: boolean;
}

export interface Restoration {
  readonly path: string;
  readonly replaced: Replaced;
}

/** Where the copies are. */
function replacedDir(home: string): string {
  return join(home, "replaced");
}

/** What putting the skill `id` there would take away; undefined if that is nothing, or what an install put there. */
export async function replacedAt(
  path: string,
  { home, id, installed }: { readonly home: string; readonly id: string; readonly installed: Installed },
): Promise<KeptFolder | undefined> {
  const state = await folderState(path, recordOf(path, id, installed)?.digest);
  if (state === "absent" || state === "unchanged") return undefined;
  const isLink = (await lstat(path)).isSymbolicLink();
  const replaced = isLink
    ? { link: await readlink(path) }
    : { copy: join(replacedDir(home), `${basename(path)}-${randomUUID().slice(0, 8)}`) };
  return { path, replaced, comesBack: state === "foreign" };
}

export async function keep(changes: ChangeSet, { path, replaced }: KeptFolder): Promise<void> {
  if ("copy" in replaced) await changes.placeFolder(replaced.copy, path);
}

/** Puts them where the skill was. Links come last, with `restoreLinks`. */
export async function restore(changes: ChangeSet, restored: readonly Restoration[]): Promise<void> {
  for (const { path, replaced } of restored) {
    if ("link" in replaced) {
      await changes.removeFolder(path);
      continue;
    }
    await changes.placeFolder(path, replaced.copy);
    await changes.removeFolder(replaced.copy);
  }
}

/** After the change set is done, which has no step for a link. What it leads to was never touched. */
export async function restoreLinks(home: string, restored: readonly Restoration[]): Promise<void> {
  for (const { path, replaced } of restored) if ("link" in replaced) await symlink(replaced.link, path);
  // Only if it is empty.
  await rmdir(replacedDir(home)).catch(() => undefined);
}
