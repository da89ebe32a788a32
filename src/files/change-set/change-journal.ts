/**
 * The journal of one change set: a folder that only its owner may read, with a line for each step, written before the
 * step is done, and copies of the files that it replaces. It is what is left of a process that was killed.
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { isProcessAlive } from "../lock-file.ts";
import { systemErrorCode } from "../../model/errors.ts";

type JournalLine =
  | { readonly kind: "owner"; readonly pid: number; readonly host: string }
  /** A step that found the file changed and did nothing. */
  | { readonly kind: "void"; readonly id: number }
  /** All steps are final; only the clean-up is left. */
  | { readonly kind: "done" }
  | Step;

interface JournalContents {
  /** In the order in which they were done. */
  readonly steps: readonly Step[];
  readonly isDone: boolean;
  readonly owner: { readonly pid: number; readonly host: string };
}

const JOURNAL_FILE = "journal";

/** Whether a process on another machine lives cannot be asked; after this time it counts as dead. */
const FOREIGN_STALE_MS = 3_600_000;

/** Journals of this process: after a restart in a container, another process may have had the same id. */
const OPEN_JOURNALS = new Set<string>();

export class ChangeJournal {
  readonly dir: string;
  #lastId = 0;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async create(journalDir: string): Promise<ChangeJournal> {
    const dir = join(journalDir, `${process.pid}.${randomUUID()}`);
    OPEN_JOURNALS.add(dir);
    await makeJournalDir(journalDir, dir);
    const journal = new ChangeJournal(dir);
    await journal.#write({ kind: "owner", pid: process.pid, host: hostname() });
    return journal;
  }

  async begin(step: NewStep): Promise<number> {
    const id = ++this.#lastId;
    await this.#write({ ...step, id });
    return id;
  }

  async voidStep(id: number): Promise<void> {
    await this.#write({ kind: "void", id });
  }

  async markDone(): Promise<void> {
    await this.#write({ kind: "done" });
  }

  /** The name of a copy of these bytes. */
  async keep(bytes: Uint8Array): Promise<string> {
    const copy = randomUUID();
    await writeSynced(join(this.dir, copy), bytes, "wx");
    return copy;
  }

  /** The owner has nothing more to do with it; what is left of it is for `recoverChanges`. */
  close(): void {
    OPEN_JOURNALS.delete(this.dir);
  }

  async #write(line: JournalLine): Promise<void> {
    await writeSynced(join(this.dir, JOURNAL_FILE), `${JSON.stringify(line)}\n`, "a");
  }
}

export async function readJournal(dir: string): Promise<JournalContents> {
  const text = await readFile(join(dir, JOURNAL_FILE), "utf8").catch(() => "");
  const steps = new Map<number, Step>();
  let owner = { pid: Number.parseInt(basename(dir), 10), host: hostname() };
  let isDone = false;
  for (const line of text.split("\n").flatMap(parseLine)) {
    if (line.kind === "owner") owner = { pid: line.pid, host: line.host };
    else if (line.kind === "done") isDone = true;
    else if (line.kind === "void") steps.delete(line.id);
    else steps.set(line.id, line);
  }
  return { steps: [...steps.values()], isDone, owner };
}

export async function isOwnerAlive(dir: string, { owner }: JournalContents): Promise<boolean> {
  if (owner.host === hostname()) return owner.pid === process.pid ? OPEN_JOURNALS.has(dir) : isProcessAlive(owner.pid);
  const { mtimeMs } = await stat(dir);
  return Date.now() - mtimeMs < FOREIGN_STALE_MS;
}

export async function removeJournal(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true });
}

/** Another process may remove the folder of journals, which it finds empty, in between. */
async function makeJournalDir(journalDir: string, dir: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await mkdir(journalDir, { recursive: true, mode: 0o700 });
    try {
      await mkdir(dir, { mode: 0o700 });
      return;
    } catch (error) {
      if (systemErrorCode(error) !== "ENOENT" || attempt === 20) throw error;
    }
  }
}

function parseLine(text: string): JournalLine[] {
  try {
    // Written by #write; a line that is cut off belongs to a step that was never begun.
    return [JSON.parse(text) as JournalLine];
  } catch {
    return [];
  }
}

async function writeSynced(file: string, contents: string | Uint8Array, flags: string): Promise<void> {
  const handle = await open(file, flags, 0o600);
  try {
    await handle.writeFile(contents);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

// Steps as the journal records them: each has enough to undo it, done or not.

/** A file gets new contents, appears or disappears. */
export interface FileStep {
  readonly kind: "file";
  readonly id: number;
  /** Past symbolic links. */
  readonly path: string;
  /** Null if there was no file. */
  readonly before: { readonly copy: string; readonly digest: string; readonly mode: number } | null;
  /** The digest of the new contents; null if the file is removed. */
  readonly after: string | null;
}

/** A folder is placed or removed. */
export interface FolderStep {
  readonly kind: "folder";
  readonly id: number;
  readonly path: string;
  /** Beside the target: the copy before it is in place. Null if the folder is only taken away. */
  readonly fresh: { readonly path: string; readonly digest: string } | null;
  /** Beside the target: where the present folder is kept until the end. Null if there is none. */
  readonly old: string | null;
}

/** Folders that had to be made for a file, outermost first. */
interface MadeStep {
  readonly kind: "made";
  readonly id: number;
  readonly paths: readonly string[];
}

/** An entry of something other than a file, such as a table, before and after; null if there is none. */
export interface EntryChange {
  readonly id: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** Entries that change together. The caller knows where they are and how to undo them. */
export interface EntriesStep {
  readonly kind: "entries";
  readonly id: number;
  /** Where they are, for messages. */
  readonly path: string;
  readonly changes: readonly EntryChange[];
}

export type Step = FileStep | FolderStep | MadeStep | EntriesStep;

/** Puts back the entries that are still `after`. It may be called again after it was cut off. */
export type UndoEntries = (changes: readonly EntryChange[]) => Promise<"restored" | "kept" | "same">;

type WithoutId<T> = T extends Step ? Omit<T, "id"> : never;
type NewStep = WithoutId<Step>;
