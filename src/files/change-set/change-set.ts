/** Changes to several files, folders and entries: all of them take effect or none, even if the process is killed. */
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
  type Step,
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
  removeBackup,
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
  /** Steps run one at a time, in the order of the calls; undoing reverses that order. */
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor({ journalDir, undoEntries }: ChangeSetOptions) {
    this.#journalDir = journalDir;
    this.#undoEntries = undoEntries;
  }

  /**
   * `edit` gets the present text (null: no file) and returns the new one (null: delete). It is called again if the file
   * has changed in between. The same text changes nothing. A symbolic link stays one: its target changes.
   */
  editFile(file: string, edit: EditText, options: EditFileOptions = {}): Promise<void> {
    return this.#step(async () => {
      const edited = await editFile(() => this.#open(), file, edit, options);
      if (edited !== undefined && options.backup === "remove") await removeBackup(() => this.#open(), edited.target);
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
   * Entries of something other than a file: recorded, then changed by `write`, all of them or none.
   * @param place Where they are, for messages.
   */
  changeEntries(place: string, changes: readonly EntryChange[], write: () => Promise<void>): Promise<void> {
    return this.#step(async () => {
      await (await this.#open()).begin({ kind: "entries", path: place, changes });
      await write();
    });
  }

  /** Restores everything. A file that someone else has changed since is kept and reported. */
  undo(): Promise<{ kept: string[] }> {
    return this.#end(async ({ dir }) => ({ kept: (await undoJournal(dir, this.#undoEntries)).kept }), { kept: [] });
  }

  /** Makes the changes final and removes what was kept for undoing them. */
  done(): Promise<void> {
    return this.#end(async (journal) => {
      await journal.markDone();
      await clearJournal(journal.dir, (await readJournal(journal.dir)).steps);
    }, undefined);
  }

  #open(): Promise<ChangeJournal> {
    return (this.#journal ??= ChangeJournal.create(this.#journalDir));
  }

  async #step(task: () => Promise<void>): Promise<void> {
    if (this.#isOver) throw new ToolcribError("internal", "this change set has ended; start another one");
    await this.#queue(task);
  }

  #end<T>(task: (journal: ChangeJournal) => Promise<T>, nothing: T): Promise<T> {
    this.#isOver = true;
    return this.#queue(async () => {
      // A journal that could not be created has no steps.
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

// Recovery after a process was killed in the middle of a change set.

interface RecoverOptions {
  /** Called for a file that was changed since and is therefore kept. */
  readonly onKept?: (path: string) => void;
  /** Without it, journals that change entries are left for a caller who can undo those. */
  readonly undoEntries?: UndoEntries;
}

/**
 * Undoes what dead processes left half done, and returns the files and folders that were restored. Changes of a living
 * process are left alone. Rejects if something could not be restored; its journal stays for the next time.
 */
export async function recoverChanges(journalDir: string, options: RecoverOptions = {}): Promise<string[]> {
  const restored: string[] = [];
  for await (const dir of interruptedJournals(journalDir)) {
    // Another process may be recovering the same journal.
    try {
      restored.push(...(await withLock(dir, () => recoverJournal(dir, options))));
    } catch (error) {
      // It has, and removed the folder of the lock.
      if (!isSystemError(error) || (await exists(journalDir))) throw error;
    }
  }
  return [...new Set(restored)];
}

/** Whether a dead process left a journal behind. */
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
    await clearJournal(dir, steps);
    return [];
  }
  if (undoEntries === undefined && steps.some(({ kind }) => kind === "entries")) return [];
  const { restored, kept } = await undoJournal(dir, undoEntries);
  for (const path of kept) onKept?.(path);
  return restored;
}

async function undoJournal(dir: string, undoEntries?: UndoEntries): Promise<{ restored: string[]; kept: string[] }> {
  const { restored, kept, failed } = await undoSteps(dir, undoEntries);
  const [first] = failed;
  if (first !== undefined) {
    const paths = failed.map(({ path }) => path).join(", ");
    throw new ToolcribError("internal", `${paths} could not be restored`, {
      hint: `The previous contents are in ${dir}. The next run tries again.`,
      cause: first.reason,
    });
  }
  await removeJournal(dir);
  return { restored, kept };
}

/** Removes the folders that the changes replaced, then the journal. */
async function clearJournal(dir: string, steps: readonly Step[]): Promise<void> {
  await discardReplacedFolders(steps);
  await removeJournal(dir);
}
