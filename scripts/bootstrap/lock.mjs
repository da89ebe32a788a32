// @ts-check
/** One process at a time changes node_modules, .dev and dist; the others wait for it. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** A lock whose owner did not get as far as writing its id counts as left behind after this long. */
const UNSIGNED_MS = 10_000;

/**
 * @template T
 * @param {string} root @param {() => Promise<T>} task @returns {Promise<T>}
 */
export async function withLock(root, task) {
  const lock = join(root, ".dev", "lock");
  mkdirSync(join(root, ".dev"), { recursive: true });
  while (!take(lock)) {
    if (isLeftBehind(lock)) discard(lock);
    else await delay(100);
  }
  try {
    return await task();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** @param {string} lock */
function take(lock) {
  try {
    mkdirSync(lock);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
  writeFileSync(join(lock, "owner"), String(process.pid));
  return true;
}

/** @param {string} lock */
function isLeftBehind(lock) {
  try {
    const owner = Number(readFileSync(join(lock, "owner"), "utf8"));
    if (owner > 0) return !isAlive(owner);
  } catch {
    // Not signed yet, or just released.
  }
  try {
    return Date.now() - statSync(lock).mtimeMs > UNSIGNED_MS;
  } catch {
    return false;
  }
}

/** Renamed before it is removed: of two processes that saw the same dead owner only one succeeds. @param {string} lock */
function discard(lock) {
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch {
    return;
  }
  rmSync(aside, { recursive: true, force: true });
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
