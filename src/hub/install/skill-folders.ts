/**
 * Copies of a skill outside of the registry: in the folders of clients, and where its own servers run from. Folders that
 * `--force` replaces are kept, and the user's own are restored when the skill is removed.
 */
import { randomUUID } from "node:crypto";
import { chmod, lstat, mkdtemp, readdir, readlink, rm, rmdir, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { AgentClient, ClientEnvironment, ClientScope } from "../../clients/agent-client.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { assertInside } from "../../files/path-safety.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { readSkill } from "../../skills/read/read-skill.ts";
import { skillId } from "../../skills/registry/skill-id.ts";
import { copySkill } from "../../skills/verified-files.ts";
import { type Installed, type InstalledSkill, recordOf } from "./installed-skills.ts";

export type FolderRecord = InstalledSkill["folders"][number];

/** A name is untrusted text; as a folder name it must be harmless. */
export function folderName({ name, dialect }: Pick<Skill, "name" | "dialect">): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name) && !name.endsWith(".")) return name;
  return skillId(name, dialect).replace(/^(?:openclaw-)?skill-/, "");
}

/** Where servers of a skill run from: a place that stays when the skill is updated. */
export function skillHome(home: string, skill: Skill): string {
  return join(home, "skills", "homes", skillId(skill.name, skill.dialect));
}

/** One folder for clients that share it; clients without one are left out. */
export function clientFolders(
  skill: Skill,
  clients: readonly AgentClient[],
  place: ClientEnvironment,
  scope: ClientScope,
): FolderRecord[] {
  return sharedDirs(clients, place, scope).map(([dir, readers]) => {
    const path = join(dir, folderName(skill));
    // A link in a repository must not redirect a project's skill.
    if (scope === "project") assertInside(place.projectDir, path);
    return { clients: readers.map(({ id }) => id), path, digest: skill.digest };
  });
}

/**
 * Folders with the clients that each is for: as few as possible, because a client lists a second copy as a second skill. So
 * the one comes first that most of them read, then one that those who have a copy do not read.
 */
function sharedDirs(
  clients: readonly AgentClient[],
  place: ClientEnvironment,
  scope: ClientScope,
): [dir: string, readers: AgentClient[]][] {
  const dirsOf = new Map(clients.map((client) => [client, client.skillDirs(place, scope)]));
  const chosen: [string, AgentClient[]][] = [];
  let left = clients.filter((client) => dirsOf.get(client)?.length !== 0);
  while (left.length > 0) {
    const readers = (dir: string, of: readonly AgentClient[]): AgentClient[] =>
      of.filter((client) => dirsOf.get(client)?.includes(dir));
    const served = clients.filter((client) => !left.includes(client));
    const dirs = left.flatMap((client) => dirsOf.get(client) ?? []);
    const rank = (dir: string): number => readers(dir, left).length * clients.length - readers(dir, served).length;
    const [best = ""] = dirs.toSorted((a, b) => rank(b) - rank(a));
    const own = readers(best, left);
    chosen.push([best, own]);
    left = left.filter((client) => !own.includes(client));
  }
  return chosen;
}

/** Throws `conflict` if something is there that no install of this skill put there, or that was changed since. */
export async function assertReplaceable(path: string, id: string, installed: Installed): Promise<void> {
  const state = await folderState(path, folderRecord(path, id, installed)?.digest);
  if (state === "absent" || state === "unchanged") return;
  throw new ToolcribError(
    "conflict",
    state === "foreign"
      ? `${path} exists, and Toolcrib did not put it there.`
      : `${path} was changed since it was installed.`,
    { hint: "--force replaces it. Nothing was changed." },
  );
}

function folderRecord(path: string, id: string, installed: Installed): FolderRecord | undefined {
  return recordOf(installed, id)?.folders.find((folder) => folder.path === path);
}

export async function folderState(
  path: string,
  digest: string | undefined,
): Promise<"absent" | "unchanged" | "changed" | "foreign"> {
  const entries = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    // A file or a broken link is in the way.
    return [""];
  });
  if (entries === undefined || entries.length === 0) return "absent";
  const now = await readSkill(path).catch(() => undefined);
  if (digest === undefined) return "foreign";
  return now?.digest === digest ? "unchanged" : "changed";
}

/** Copies only the files that were read and scanned. */
export async function placeSkillCopies(
  changes: ChangeSet,
  skill: Pick<Skill, "dir" | "files">,
  targets: readonly string[],
): Promise<void> {
  if (targets.length === 0) return;
  const staging = await mkdtemp(join(tmpdir(), "toolcrib-place-"));
  try {
    const copy = join(staging, "skill");
    await copySkill(skill, copy);
    await makeReadable(copy);
    for (const target of targets) await changes.placeFolder(target, copy);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** The registry's copies are their owner's alone; a project's folder is shared like its other files. */
async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    else await chmod(path, ((await stat(path)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

export interface Restoration {
  readonly path: string;
  readonly replaced: NonNullable<FolderRecord["replaced"]>;
}

export interface ReplacedFolder extends Restoration {
  /** False for an edited copy of the skill itself: it would bring back what is being removed. */
  readonly comesBack: boolean;
}

/** Where the copies are. */
function replacedDir(home: string): string {
  return join(home, "replaced");
}

/** The folder that the skill `id` would replace; undefined if there is none, or an install put it there. */
export async function findReplacedFolder(
  path: string,
  { home, id, installed }: { readonly home: string; readonly id: string; readonly installed: Installed },
): Promise<ReplacedFolder | undefined> {
  const state = await folderState(path, folderRecord(path, id, installed)?.digest);
  if (state === "absent" || state === "unchanged") return undefined;
  const isLink = (await lstat(path)).isSymbolicLink();
  const replaced = isLink
    ? { link: await readlink(path) }
    : { copy: join(replacedDir(home), `${basename(path)}-${randomUUID().slice(0, 8)}`) };
  return { path, replaced, comesBack: state === "foreign" };
}

export async function keepReplaced(changes: ChangeSet, { path, replaced }: ReplacedFolder): Promise<void> {
  if ("copy" in replaced) await changes.placeFolder(replaced.copy, path);
}

/** Puts them where the skill was. Links come last, with `restoreLinks`. */
export async function restoreFolders(changes: ChangeSet, restored: readonly Restoration[]): Promise<void> {
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
