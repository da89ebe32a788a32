/** Takes the steps of a journal back, the last one first, and goes on past one that will not go back. */
import { rm, rmdir } from "node:fs/promises";
import { ToolcribError } from "../../model/errors.ts";
import { removeDeadLocks } from "../lock-file.ts";
import { isThere } from "./file-state.ts";
import { BACKUP_SUFFIX, undoFile } from "./file-step.ts";
import { undoFolder } from "./folder-step.ts";
import { readJournal } from "./journal.ts";
import type { EntriesStep, FileStep, FolderStep, Step, UndoEntries } from "./steps.ts";

interface Undone {
  readonly restored: readonly string[];
  /** Changed by somebody else since, and left. */
  readonly kept: readonly string[];
  readonly failed: readonly { readonly path: string; readonly reason: unknown }[];
}

export async function undoSteps(journalDir: string, undoEntries?: UndoEntries): Promise<Undone> {
  const { steps, owner } = await readJournal(journalDir);
  const restored = new Set<string>();
  const kept = new Set<string>();
  const failed: { path: string; reason: unknown }[] = [];
  for (const step of steps.toReversed()) {
    if (step.kind === "made") {
      await removeEmpty(step.paths);
      continue;
    }
    try {
      const outcome = await undoStep(step, { journalDir, pid: owner.pid, undoEntries });
      // The copy beside a file is no news to anybody.
      if (outcome === "restored" && !step.path.endsWith(BACKUP_SUFFIX)) restored.add(step.path);
      if (outcome === "kept") {
        kept.add(step.path);
        // Not removed: it is the only copy of what was there.
        if (step.kind === "folder" && step.old !== null && (await isThere(step.old))) kept.add(step.old);
      }
    } catch (reason) {
      failed.push({ path: step.path, reason });
    }
  }
  return { restored: [...restored], kept: [...kept], failed };
}

interface UndoPlace {
  readonly journalDir: string;
  readonly pid: number;
  readonly undoEntries: UndoEntries | undefined;
}

function undoStep(
  step: FileStep | FolderStep | EntriesStep,
  { journalDir, pid, undoEntries }: UndoPlace,
): Promise<"restored" | "kept" | "same"> {
  switch (step.kind) {
    case "file":
      return undoFile(step, journalDir, pid);
    case "folder":
      return undoFolder(step);
    case "entries":
      if (undoEntries === undefined) throw new ToolcribError("internal", `nobody knows how to change ${step.path}`);
      return undoEntries(step.changes);
  }
}

/** Removes the folders that waited for the end. */
export async function clearSteps(steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (step.kind === "folder" && step.old !== null) await rm(step.old, { recursive: true, force: true });
  }
}

async function removeEmpty(folders: readonly string[]): Promise<void> {
  // Somebody else may have put something in; then it stays.
  for (const folder of folders.toReversed()) {
    await removeDeadLocks(folder);
    await rmdir(folder).catch(() => undefined);
  }
}
