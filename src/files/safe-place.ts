/**
 * Whether files that Toolcrib relies on can be relied on: those of another user, those that others may write to, and links to
 * nothing, through which a file would be made in a place that somebody else chose. All of them are refused with the command that
 * puts it right. Windows has no such permissions, so nothing is looked at there.
 */
import { chmodSync, lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { ToolcribError } from "../model/errors.ts";

/** What Toolcrib keeps in its home. Other files there are the user's own. */
const ENTRIES = [
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
/** Nobody else may read these either. */
const SECRET_ENTRIES = ["auth", "secrets", "store.key", "toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm"];

const [GROUP_WRITE, OTHERS_WRITE, OTHERS_ANY, SECRET_MODE] = [0o020, 0o002, 0o077, 0o700];

/** Throws `invalid_config`. What the user owns and others may merely read is tightened where it holds secrets. */
export function assertSafeHome(home: string, env: NodeJS.ProcessEnv): void {
  const user = process.geteuid?.();
  if (user === undefined) return;
  if (assertSafe(home, { user, env }) === undefined) return;
  for (const name of ENTRIES) assertSafe(join(home, name), { user, env });
  for (const name of SECRET_ENTRIES) {
    const path = join(home, name);
    const stat = assertSafe(path, { user, env });
    if (stat !== undefined && stat.uid === user && (stat.mode & OTHERS_ANY) !== 0) {
      chmodSync(path, stat.mode & SECRET_MODE);
    }
  }
}

/** The same of one file that people share, such as a lock file beside a config: its group may write to it. */
export function assertSafeFile(file: string, env: NodeJS.ProcessEnv = process.env): void {
  const user = process.geteuid?.();
  if (user !== undefined) assertSafe(file, { user, env, isShared: true });
}

interface Judge {
  readonly user: number;
  readonly env: NodeJS.ProcessEnv;
  readonly isShared?: boolean;
}

/** Undefined where there is nothing. */
function assertSafe(path: string, judge: Judge): Stats | undefined {
  const isThere = look(() => lstatSync(path, { throwIfNoEntry: false })) !== undefined;
  const stat = look(() => statSync(path, { throwIfNoEntry: false }));
  if (!isThere) return undefined;
  if (stat === undefined) {
    throw refusal(`${path} is a link to ${readlinkSync(path)}, where there is nothing.`, `rm ${quoted(path)}`);
  }
  const { user, env } = judge;
  const isOwn = stat.uid === user || stat.uid === 0 || (user === 0 && String(stat.uid) === env["SUDO_UID"]);
  if (!isOwn) {
    throw refusal(
      `${path} belongs to another user (uid ${stat.uid}, you are ${user}), who could have it do anything as you.`,
      `chown -R ${user} ${quoted(path)}`,
    );
  }
  if ((stat.mode & OTHERS_WRITE) !== 0) throw writable(path, "every user of this machine", stat, judge);
  // A group that has the user's own number is the user's alone; who is in the groups of root's folders is up to root.
  const isGroupSafe = judge.isShared === true || stat.uid === 0 || stat.gid === stat.uid;
  if ((stat.mode & GROUP_WRITE) !== 0 && !isGroupSafe) throw writable(path, "its group", stat, judge);
  return stat;
}

/** Undefined too for what may not be looked at: whoever needs it says why. */
function look(at: () => Stats | undefined): Stats | undefined {
  try {
    return at();
  } catch {
    return undefined;
  }
}

function writable(path: string, who: string, stat: Stats, { isShared = false }: Judge): ToolcribError {
  const mode = isShared ? "o-w" : stat.isDirectory() ? "700" : "600";
  return refusal(
    `${path} can be changed by ${who}, so what is in it may not be yours.`,
    `chmod ${mode} ${quoted(path)}`,
  );
}

function refusal(message: string, command: string): ToolcribError {
  return new ToolcribError("invalid_config", message, { hint: `See what is in it, then: ${command}` });
}

/** For a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
