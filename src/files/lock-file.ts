/**
 * A lock between processes: an entry beside the locked file that names its holder. It is a symbolic link with the name
 * as its target, because a link appears together with its contents: a killed process never leaves a lock without a
 * holder. Where links are not available (Windows, some network shares) it is a file.
 */
import { randomUUID } from "node:crypto";
import { lstat, open, readdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { ToolcribError, systemErrorCode } from "../model/errors.ts";

interface LockOptions {
  /** How long to wait for another holder, in milliseconds. */
  readonly waitMs?: number;
  /** A lock of another machine, or without readable contents, counts as left behind after this time. */
  readonly staleMs?: number;
}

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly token: string;
}

/** Runs `task` while no other process runs one on the same file. Rejects with `conflict` if the wait is too long. */
export async function withLock<T>(file: string, task: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  const { waitMs = 10_000, staleMs = 30_000 } = options;
  const path = `${file}.lock`;
  const token = randomUUID();
  const deadline = performance.now() + waitMs;
  while (!(await tryCreate(path, token))) {
    if (await isStale(path, staleMs)) await removeStale(path, staleMs);
    else if (performance.now() > deadline) {
      throw new ToolcribError("conflict", `${file} is being changed by another process`, {
        hint: `Try again. If no other process is using it, remove ${path}.`,
      });
    } else await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 40));
  }
  try {
    return await task();
  } finally {
    // Only our own: after a long suspension another process may hold it by now.
    if ((await readHolder(path))?.token === token) await rm(path, { force: true });
  }
}

/** Removes locks of dead processes in a folder, which would otherwise stay until the same file is locked again. */
export async function removeDeadLocks(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const holder = name.endsWith(".lock") ? await readHolder(path) : undefined;
    if (holder?.host === hostname() && !isProcessAlive(holder.pid)) await removeStale(path, Infinity);
  }
}

async function tryCreate(path: string, token: string): Promise<boolean> {
  const holder = JSON.stringify({ pid: process.pid, host: hostname(), token } satisfies Holder);
  try {
    await symlink(holder, path);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === "EEXIST") return false;
  }
  return await tryCreateFile(path, holder);
}

async function tryCreateFile(path: string, holder: string): Promise<boolean> {
  let handle;
  try {
    handle = await open(path, "wx", 0o600);
  } catch (error) {
    if (systemErrorCode(error) === "EEXIST") return false;
    throw error;
  }
  try {
    await handle.writeFile(holder);
  } finally {
    await handle.close();
  }
  return true;
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    // Written by tryCreate; a half-written one fails to parse.
    return JSON.parse(await readlink(path).catch(() => readFile(path, "utf8"))) as Holder;
  } catch {
    return undefined;
  }
}

async function isStale(path: string, staleMs: number): Promise<boolean> {
  const holder = await readHolder(path);
  if (holder !== undefined && holder.host === hostname()) return !isProcessAlive(holder.pid);
  try {
    return Date.now() - (await lstat(path)).mtimeMs > staleMs;
  } catch {
    return false;
  }
}

/**
 * Two processes may find the same lock left behind; were each to remove it, the slower one would remove the lock that
 * the faster one has taken by then. So removing is itself under a lock, and looks again.
 */
async function removeStale(path: string, staleMs: number): Promise<void> {
  const claim = `${path}.claim`;
  if (!(await tryCreate(claim, ""))) {
    if (await isStale(claim, staleMs)) await rm(claim, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, 5));
    return;
  }
  try {
    if (await isStale(path, staleMs)) await rm(path, { force: true });
  } finally {
    await rm(claim, { force: true });
  }
}

/** Whether a process with this id exists, including those of other users. */
export function isProcessAlive(pid: number): boolean {
  // These would ask for groups of processes, our own among them.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}
