/**
 * The user that a bubblewrap sandbox of a root hub runs its program as. Root without capabilities still owns the machine's
 * files: what it leaves in a writable path may be setuid root, and every file that root owns opens for it. So such a
 * program gets another user id on this machine, not only in a namespace.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { notSent } from "../wire.ts";
import { findCommand, isReadableByAll, isWithin, NOBODY_ID, realPath, type UserMount } from "./named-mounts.ts";
import { runProgram } from "../../base/programs.ts";

export interface SandboxUser {
  readonly uid: number;
  readonly gid: number;
  /** Absolute path of util-linux's setpriv, which changes to the user. */
  readonly setpriv: string;
  /**
   * Who makes the mounts: root, which reaches programs below its own home, and the program changes its user inside; or,
   * for a root without CAP_SYS_ADMIN, the other user already, in a user namespace.
   */
  readonly mountsAs: "root" | "user";
}

const CAP_SYS_ADMIN = 1n << 21n;
const ASK_TIMEOUT_MS = 5000;

/** For a hub that is root. Rejects where setpriv is missing. */
export async function sandboxUser(mounts: readonly UserMount[]): Promise<SandboxUser> {
  return { ...idsFor(mounts), setpriv: await findSetpriv(), mountsAs: canMount() ? "root" : "user" };
}

/** The words that start what follows them as the user, for good. */
export function userSwitch({ setpriv, uid, gid, mountsAs }: SandboxUser): string[] {
  const forGood = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"];
  const words = [setpriv, `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
  // bubblewrap makes its own user namespace and gives up the rest itself.
  return [...words, ...(mountsAs === "root" ? forGood : []), "--"];
}

/**
 * An empty folder of root's that was named to be written is given to the user, as container engines do with an empty
 * volume. Anything else is for the operator to decide: other programs may rely on who owns it.
 */
export function giveEmptyFolders(mounts: readonly UserMount[], { uid, gid }: SandboxUser): string[] {
  return mounts
    .filter(({ writable }) => writable)
    .flatMap(({ source }) => (giveEmptyFolder(source, uid, gid) ? [source] : []));
}

function giveEmptyFolder(folder: string, uid: number, gid: number): boolean {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true || found.uid !== 0 || (found.mode & 0o003) === 0o003) return false;
  if (readdirSync(folder).length > 0) return false;
  // The folder that was checked is the one that is changed, even if the path names another one by then.
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const { dev, ino } = fstatSync(handle);
    if (dev !== found.dev || ino !== found.ino) return false;
    fchownSync(handle, uid, gid);
    return true;
  } finally {
    closeSync(handle);
  }
}

/**
 * Lets the user read the copies of skills that servers are run from: they are the hub's own, in folders that only root
 * may enter, so no other user gains access. The folder itself comes last and says that the rest is done.
 */
export function makeSkillsReadable(mounts: readonly UserMount[], home: string): void {
  const skills = join(realPath(home), "skills");
  for (const { source } of mounts) {
    const found = lstatSync(source, { throwIfNoEntry: false });
    if (!isWithin(source, skills) || found?.isDirectory() !== true || isReadableByAll(found)) continue;
    for (const entry of readdirSync(source, { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isDirectory() || entry.isFile()) chmodSync(path, readableMode(lstatSync(path)));
    }
    chmodSync(source, readableMode(found));
  }
}

function readableMode({ mode }: Stats): number {
  const bits = mode & 0o777;
  return bits | 0o004 | ((bits & 0o100) === 0 ? 0 : 0o001);
}

/** The owner of a path it may write, else of one that only its owner may read, else `nobody`; never root. */
function idsFor(mounts: readonly UserMount[]): { uid: number; gid: number } {
  const look = ({ source }: UserMount): Stats[] => {
    const found = statSync(source, { throwIfNoEntry: false });
    return found === undefined || found.uid === 0 ? [] : [found];
  };
  const [owner] = [
    ...mounts.filter(({ writable }) => writable).flatMap(look),
    ...mounts.flatMap(look).filter((found) => !isReadableByAll(found)),
  ];
  return owner === undefined ? { uid: NOBODY_ID, gid: NOBODY_ID } : { uid: owner.uid, gid: primaryGroup(owner.uid) };
}

/** Not the group of the path, which may be one with powers of its own. */
function primaryGroup(uid: number): number {
  try {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((each) => each.split(":"))
      .find((fields) => fields[2] === String(uid));
    return Number(line?.[3]) || NOBODY_ID;
  } catch {
    return NOBODY_ID;
  }
}

function canMount(): boolean {
  const [, mask = "0"] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return (BigInt(`0x${mask}`) & CAP_SYS_ADMIN) !== 0n;
}

/** In the system's own folders, because those are there inside too. Busybox has one that cannot change the user. */
async function findSetpriv(): Promise<string> {
  const program = findCommand("setpriv", "/usr/bin:/bin");
  if (program !== undefined) {
    const end = await runProgram(program, ["--help"], { env: {}, cwd: "/", timeoutMs: ASK_TIMEOUT_MS });
    if (end.kind === "exited" && end.stdout.includes("--reuid")) return program;
  }
  throw notSent(
    "invalid_config",
    "The sandbox cannot be made: the hub runs as root, and setpriv, with which the program gets another user, is missing.",
    'Install util-linux (apt) or setpriv (apk), run the hub as another user, or use the sandbox "container".',
  );
}
