/** Changes to several files, folders and entries that all stand at the end, or none, also if the process is killed. */
import { ToolcribError } from "../../model/errors.ts";
import { editFile, writeBackup, type EditFileOptions, type EditText } from "./file-step.ts";
import { placeFolder, removeFolder } from "./folder-step.ts";
import { Journal, readJournal, removeJournal } from "./journal.ts";
import { undoJournal } from "./recover.ts";
import type { EntryChange, UndoEntries } from "./steps.ts";
import { clearSteps } from "./undo-steps.ts";

export { recoverChanges } from "./recover.ts";

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
  #journal: Promise<Journal> | undefined;
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
      await clearSteps((await readJournal(journal.dir)).steps);
      await removeJournal(journal.dir);
    }, undefined);
  }

  #open(): Promise<Journal> {
    return (this.#journal ??= Journal.create(this.#journalDir));
  }

  async #step(task: () => Promise<void>): Promise<void> {
    if (this.#isOver) throw new ToolcribError("internal", "this change set is over; begin another one");
    await this.#queue(task);
  }

  #end<T>(task: (journal: Journal) => Promise<T>, nothing: T): Promise<T> {
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
