/** Changes to several files, folders and entries that all stand at the end, or none, also if the process is killed. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { withLock } from "../lock-file.ts";
import {
  ChangeJournal,
  type EntryChange,
  isOwnerAlive,
  readJournal,
  removeJournal,
  type UndoEntries,
} from "./change-journal.ts";
import {
  discardReplacedFolders,
  editFile,
  type EditFileOptions,
  type EditText,
  exists,
  isSystemError,
  placeFolder,
  removeFolder,
  undoSteps,
  writeBackup,
} from "./change-steps.ts";

interface ChangeSetOptions {
  /** Journals and copies live there, for their owner alone; `recoverChanges` looks there after a crash. */
  readonly journalDir: string;
  /** Needed where `changeEntries` is used; recovering after a crash needs it as well. */
  readonly undoEntries?: UndoEntries;
}

/**
 * ```ts
 * const changes = new ChangeSet({ journalDir });
 * try {
 *   await changes.editFile(file, (text) => `${text ?? ""}more\n`);
 *   await changes.placeFolder(target, from);
 * } catch (error) {
 *   await changes.undo();
 *   throw error;
 * }
 * await changes.done();
 * ```
 */
export class ChangeSet {
  readonly #journalDir: string;
  readonly #undoEntries: UndoEntries | undefined;
  readonly #backedUp = new Set<string>();
  #journal: Promise<ChangeJournal> | undefined;
  /** One step at a time, in the order asked for: undoing goes back in that order. */
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor({ journalDir, undoEntries }: ChangeSetOptions) {
    this.#journalDir = journalDir;
    this.#undoEntries = undoEntries;
  }

  /**
   * `edit` gets the present text (null: no file) and gives the new one (null: delete). It is called again if the file
   * changed in between. The same text means that nothing is done. A symbolic link stays one: its target changes.
   */
  editFile(file: string, edit: EditText, options: EditFileOptions = {}): Promise<void> {
    return this.#step(async () => {
      const edited = await editFile(() => this.#open(), file, edit, options);
      if (options.backup !== true || edited === undefined || this.#backedUp.has(edited.target)) return;
      this.#backedUp.add(edited.target);
      if (edited.before !== null) await writeBackup(await this.#open(), edited.target, edited.before);
    });
  }

  /** Copies `from` beside the target, then swaps by rename. */
  placeFolder(target: string, from: string): Promise<void> {
    return this.#step(async () => placeFolder(await this.#open(), target, from));
  }

  /** Nothing happens if there is none. */
  removeFolder(target: string): Promise<void> {
    return this.#step(async () => removeFolder(await this.#open(), target));
  }

  /**
   * Entries of something that is no file: written down, then changed by `write`, all of them or none.
   * @param place What they are in, for messages.
   */
  changeEntries(place: string, changes: readonly EntryChange[], write: () => Promise<void>): Promise<void> {
    return this.#step(async () => {
      await (await this.#open()).begin({ kind: "entries", path: place, changes });
      await write();
    });
  }

  /** Restores everything. A file that somebody else changed since is left and named. */
  undo(): Promise<{ kept: string[] }> {
    return this.#end(
      async (journal) => {
        const { kept } = await undoJournal(journal.dir, this.#undoEntries);
        return { kept: [...kept] };
      },
      { kept: [] },
    );
  }

  /** All of it stands from here on; what was kept for undoing goes. */
  done(): Promise<void> {
    return this.#end(async (journal) => {
      await journal.markDone();
      await discardReplacedFolders((await readJournal(journal.dir)).steps);
      await removeJournal(journal.dir);
    }, undefined);
  }

  #open(): Promise<ChangeJournal> {
    return (this.#journal ??= ChangeJournal.create(this.#journalDir));
  }

  async #step(task: () => Promise<void>): Promise<void> {
    if (this.#isOver) throw new ToolcribError("internal", "this change set is over; begin another one");
    await this.#queue(task);
  }

  #end<T>(task: (journal: ChangeJournal) => Promise<T>, nothing: T): Promise<T> {
    this.#isOver = true;
    return this.#queue(async () => {
      // One that could not be made holds no steps.
      const journal = await this.#journal?.catch(() => undefined);
      this.#journal = undefined;
      if (journal === undefined) return nothing;
      try {
        return await task(journal);
      } finally {
        journal.close();
      }
    });
  }

  #queue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Clears up after processes that were killed in the middle of a change set. */

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
  for await (const dir of interruptedJournals(journalDir)) {
    // Another process may be clearing up the same journal.
    try {
      restored.push(...(await withLock(dir, () => recoverJournal(dir, options))));
    } catch (error) {
      // It has done so, and removed the folder that the lock would stand in.
      if (!isSystemError(error) || (await exists(journalDir))) throw error;
    }
  }
  return [...new Set(restored)];
}

/** Whether a dead process left something that nobody has cleared up yet. */
export async function hasInterruptedChanges(journalDir: string): Promise<boolean> {
  for await (const _dir of interruptedJournals(journalDir)) return true;
  return false;
}

async function* interruptedJournals(journalDir: string): AsyncGenerator<string> {
  const entries = await readdir(journalDir, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isDirectory() || !/^\d+\./.test(entry.name)) continue;
    const dir = join(journalDir, entry.name);
    if (!(await isOwnerAlive(dir, await readJournal(dir)).catch(() => true))) yield dir;
  }
}

async function recoverJournal(dir: string, { onKept, undoEntries }: RecoverOptions): Promise<readonly string[]> {
  const { steps, isDone } = await readJournal(dir);
  if (isDone) {
    await discardReplacedFolders(steps);
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
