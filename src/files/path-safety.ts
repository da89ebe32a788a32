/**
 * Refuses unsafe paths: files of Toolcrib that belong to another user, that others can write to, or that are dangling
 * links, and files of a project that links lead out of it. The error has the command that corrects it. Windows has no such
 * permissions, so owners and modes are not checked there.
 */
import {
  chmodSync,
  lstatSync,
  readlinkSync,
  realpathSync,
  realpath as realpathOf,
  type Stats,
  statSync,
} from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { promisify } from "node:util";
import { ToolcribError } from "../model/errors.ts";

/** Toolcrib's files in its home. Other files there are the user's own. */
const HOME_ENTRIES = [
  "toolcrib.json",
  "toolcrib.jsonc",
  "audit",
  "cache",
  "changes",
  "clients.json",
  "cluster",
  "etc",
  "hubs",
  "install",
  "installed.json",
  "installing.json",
  "locks",
  "replaced",
  "run",
  "skills",
  "store.json",
];
/** Private to the user. */
const SECRET_ENTRIES = ["auth", "secrets", "store.key", "toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm"];

const [GROUP_WRITE, OTHERS_WRITE, OTHERS_ANY, SECRET_MODE] = [0o020, 0o002, 0o077, 0o700];

/** Throws `invalid_config`. Secrets of the user that others can read are made private instead. */
export function assertSafeHome(home: string, env: NodeJS.ProcessEnv): void {
  const user = process.geteuid?.();
  if (user === undefined) return;
  if (assertSafe(home, { user, env }) === undefined) return;
  for (const name of HOME_ENTRIES) assertSafe(join(home, name), { user, env });
  for (const name of SECRET_ENTRIES) {
    const path = join(home, name);
    const stat = assertSafe(path, { user, env });
    if (stat !== undefined && stat.uid === user && (stat.mode & OTHERS_ANY) !== 0) {
      chmodSync(path, stat.mode & SECRET_MODE);
    }
  }
}

/** The same of one file that people share, such as a lock file beside a config: its group may write to it. */
export function assertSafeFile(file: string): void {
  const user = process.geteuid?.();
  if (user !== undefined) assertSafe(file, { user, env: process.env, isShared: true });
}

interface SafetyCheck {
  readonly user: number;
  readonly env: NodeJS.ProcessEnv;
  readonly isShared?: boolean;
}

/** Undefined where there is nothing. */
function assertSafe(path: string, judge: SafetyCheck): Stats | undefined {
  const isThere = statIfAllowed(() => lstatSync(path, { throwIfNoEntry: false })) !== undefined;
  const stat = statIfAllowed(() => statSync(path, { throwIfNoEntry: false }));
  if (!isThere) return undefined;
  if (stat === undefined) {
    throw unsafePath(`${path} is a link to ${readlinkSync(path)}, which does not exist.`, `rm ${shellQuoted(path)}`);
  }
  const { user, env } = judge;
  const isOwn = stat.uid === user || stat.uid === 0 || (user === 0 && String(stat.uid) === env["SUDO_UID"]);
  if (!isOwn) {
    throw unsafePath(
      `${path} belongs to another user (uid ${stat.uid}, you are ${user}), who could use it to act as you.`,
      `chown -R ${user} ${shellQuoted(path)}`,
    );
  }
  if ((stat.mode & OTHERS_WRITE) !== 0) throw writableByOthers(path, "every user of this machine", stat, judge);
  // A group that has the user's own number is the user's alone; who is in the groups of root's folders is up to root.
  const isGroupSafe = judge.isShared === true || stat.uid === 0 || stat.gid === stat.uid;
  if ((stat.mode & GROUP_WRITE) !== 0 && !isGroupSafe) throw writableByOthers(path, "its group", stat, judge);
  return stat;
}

/** Undefined also without permission: the code that needs the file reports it. */
function statIfAllowed(at: () => Stats | undefined): Stats | undefined {
  try {
    return at();
  } catch {
    return undefined;
  }
}

function writableByOthers(path: string, who: string, stat: Stats, { isShared = false }: SafetyCheck): ToolcribError {
  const mode = isShared ? "o-w" : stat.isDirectory() ? "700" : "600";
  return unsafePath(
    `${path} can be changed by ${who}, so its contents may not be yours.`,
    `chmod ${mode} ${shellQuoted(path)}`,
  );
}

function unsafePath(message: string, command: string): ToolcribError {
  return new ToolcribError("invalid_config", message, { hint: `Check its contents, then run: ${command}` });
}

/** For a shell. */
function shellQuoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The system's own: Node's resolves `..` before links. */
const realpath = promisify(realpathOf.native);

/** As the systems have it. */
const MAX_LINKS = 40;

/**
 * Throws `denied` if writing to the target, which need not exist, would write outside of the root: by `..`, or through a
 * link on the way, also one that points at nothing yet.
 */
export function assertInside(root: string, target: string): void {
  const real = realPathOf(resolve(target), MAX_LINKS);
  if (real !== undefined && isInside(realPathOf(resolve(root), MAX_LINKS) ?? resolve(root), real)) return;
  const where = real === undefined ? "a link that leads nowhere" : real;
  throw new ToolcribError("denied", `${target} leads out of the project ${root} to ${where}.`, {
    hint: "Nothing was written. Remove the link if you do not want it, or work in the folder it leads to.",
    details: { root, target },
  });
}

/** The real path of what would be written; undefined for links in a circle. */
function realPathOf(path: string, links: number): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    if (links === 0) return undefined;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) {
    const above = realPathOf(parent, links);
    return above === undefined ? undefined : join(above, basename(path));
  }
  // A relative link is resolved from the real path of its folder.
  const above = realPathOf(parent, links);
  return above === undefined ? undefined : realPathOf(resolve(above, readlinkSync(path)), links - 1);
}

/**
 * The file that an absolute path leads to, which need not exist: links are followed as the system does it, also those that point at
 * nothing yet, before `..` goes up. Null if that cannot be told, as where it leads elsewhere for each process.
 */
export async function followLinks(path: string): Promise<string | null> {
  const real = await realpath(path).catch(() => undefined);
  // Without a link on the way there is nothing that another process would see otherwise.
  if (real === path) return real;
  const stepped = await followSteps(path).catch(() => null);
  return stepped === null ? null : (real ?? stepped);
}

/** Links that each process has of its own: its folder, its root and its open files. */
const OF_PROCESS = /^\/proc\/(?:self|thread-self|\d+)\/(?:task\/\d+\/)?(?:cwd|root|fd|exe|map_files)(?:\/|$)/;

async function followSteps(path: string): Promise<string | null> {
  let { root: current } = parse(path);
  let steps = path.slice(current.length).split(/[\\/]/);
  for (let links = 0, at = 0; at < steps.length; at += 1) {
    const step = steps[at] ?? "";
    if (step === "" || step === ".") continue;
    if (step === "..") {
      current = dirname(current);
      continue;
    }
    const next = join(current, step);
    if (OF_PROCESS.test(next)) return null;
    const stat = await lstat(next).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (stat?.isSymbolicLink() !== true) {
      current = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return null;
    const target = await readlink(next);
    if (isAbsolute(target)) current = parse(target).root;
    steps = [...target.slice(isAbsolute(target) ? current.length : 0).split(/[\\/]/), ...steps.slice(at + 1)];
    at = -1;
  }
  return current;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

/** Whether a path is the folder or lies below it; both are absolute and without links. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  // On Windows the way to another drive is an absolute path.
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
