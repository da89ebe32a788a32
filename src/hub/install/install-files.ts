/** Files in Toolcrib's home that exist during an install. A module of its own, because every skill command looks for them. */
import { randomUUID } from "node:crypto";
import { lstatSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, isAbsolute, join } from "node:path";

/** Changes of an install outside of files. */
export function pendingFile(home: string): string {
  return join(home, "installing.json");
}

const TRIAL_PREFIX = "toolcrib-try-";

/** A home for the hub that tries new servers. It is not there yet. */
export function newTrialHome(): string {
  return join(tmpdir(), `${TRIAL_PREFIX}${randomUUID()}`);
}

export function isTrialHome(dir: string): boolean {
  return isAbsolute(dir) && basename(dir).startsWith(TRIAL_PREFIX);
}

/** One install or removal at a time. */
export function installLock(home: string): string {
  return join(home, "install");
}

export function mayNeedRecovery(home: string): boolean {
  return [pendingFile(home), changesDir(home), `${installLock(home)}.lock`].some(
    (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
  );
}

/** Where change sets keep their journals, so that the next run finds what a killed one left. */
export function changesDir(home: string): string {
  return join(home, "changes");
}
