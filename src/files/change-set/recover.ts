/** Clears up after processes that were killed in the middle of a change set. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { withLock } from "../lock-file.ts";
import { isSystemError, isThere } from "./file-state.ts";
import { isOwnerAlive, readJournal, removeJournal } from "./journal.ts";
import type { UndoEntries } from "./steps.ts";
import { clearSteps, undoSteps } from "./undo-steps.ts";

interface RecoverOptions {
  /** A file that somebody changed since, and that was therefore left. */
  readonly onKept?: (path: string) => void;
  /** Without it, what changed entries too is left for somebody who can take those back. */
  readonly undoEntries?: UndoEntries;
}

/**
 * Undoes what dead processes left half done, and gives the files and folders that were put back. What a living process
 * is doing is left alone. Rejects if something could not be put back; its journal stays for the next time.
 */
export async function recoverChanges(journalDir: string, options: RecoverOptions = {}): Promise<string[]> {
  const restored: string[] = [];
  for await (const dir of killedJournals(journalDir)) {
    // Another process may be clearing up the same journal.
    try {
      restored.push(...(await withLock(dir, () => recover(dir, options))));
    } catch (error) {
      // It has done so, and removed the folder that the lock would stand in.
      if (!isSystemError(error) || (await isThere(journalDir))) throw error;
    }
  }
  return [...new Set(restored)];
}

/** Whether a dead process left something that nobody has cleared up yet. */
export async function hasKilled(journalDir: string): Promise<boolean> {
  for await (const _dir of killedJournals(journalDir)) return true;
  return false;
}

async function* killedJournals(journalDir: string): AsyncGenerator<string> {
  const entries = await readdir(journalDir, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isDirectory() || !/^\d+\./.test(entry.name)) continue;
    const dir = join(journalDir, entry.name);
    if (!(await isOwnerAlive(dir, await readJournal(dir)).catch(() => true))) yield dir;
  }
}

async function recover(dir: string, { onKept, undoEntries }: RecoverOptions): Promise<readonly string[]> {
  const { steps, isDone } = await readJournal(dir);
  if (isDone) {
    await clearSteps(steps);
    await removeJournal(dir);
    return [];
  }
  if (undoEntries === undefined && steps.some(({ kind }) => kind === "entries")) return [];
  const { restored, kept } = await undoJournal(dir, undoEntries);
  for (const path of kept) onKept?.(path);
  return restored;
}

export async function undoJournal(
  dir: string,
  undoEntries?: UndoEntries,
): Promise<{ restored: readonly string[]; kept: readonly string[] }> {
  const { restored, kept, failed } = await undoSteps(dir, undoEntries);
  const [first] = failed;
  if (first === undefined) {
    await removeJournal(dir);
    return { restored, kept };
  }
  const paths = failed.map(({ path }) => path).join(", ");
  throw new ToolcribError("internal", `${paths} could not be put back as before`, {
    hint: `What was there is kept in ${dir}; the next run tries again.`,
    cause: first.reason,
  });
}
