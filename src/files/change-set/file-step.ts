/** One file of a change set: replaced under a lock, only if it is still what the edit was made from. */
import { chmod, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { withLock } from "../lock-file.ts";
import { realTarget, writeAtomic } from "../write-atomic.ts";
import { cannot, digestOf, isSystemError, isThere, readState, textOf, type FileState } from "./file-state.ts";
import type { Journal } from "./journal.ts";
import { makeFolder } from "./make-folder.ts";
import type { FileStep } from "./steps.ts";

export type EditText = (text: string | null) => string | null;

export interface EditFileOptions {
  /** Of a file that does not exist yet; 0600 if not given. An existing file keeps its own. */
  readonly mode?: number;
  /** Keep the text from before this change set as `<file>.toolcrib-backup`, with the same mode. */
  readonly backup?: boolean;
}

export const BACKUP_SUFFIX = ".toolcrib-backup";

const TRIES = 5;

/** The journal is asked for when there is a step to write down, and not before. */
type OpenJournal = () => Promise<Journal>;

/** What the file was before; undefined if there was nothing to change. */
export async function editFile(
  openJournal: OpenJournal,
  file: string,
  edit: EditText,
  options: EditFileOptions,
): Promise<{ target: string; before: FileState | null } | undefined> {
  const target = await realTarget(file);
  const folder = dirname(target);
  if (!(await isThere(folder))) {
    if (edit(null) === null) return undefined;
    await makeFolder(await openJournal(), folder);
  }
  const attempts = withLock(target, async () => {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const before = await readState(target);
      const text = before === null ? null : textOf(file, before.bytes);
      const after = edit(text);
      if (after === text) return undefined;
      if (await replace(await openJournal(), target, before, after, options.mode)) return { target, before };
    }
    throw new ToolcribError("conflict", `${file} keeps changing while it is being edited`, { hint: "Try again." });
  });
  return attempts.catch((error: unknown) => {
    throw isSystemError(error) ? cannot("written", file, error) : error;
  });
}

/** One copy beside the file. Its mode is the file's, whatever an older copy had: what is secret there is secret here. */
export async function writeBackup(journal: Journal, target: string, state: FileState): Promise<void> {
  const path = `${target}${BACKUP_SUFFIX}`;
  const before = await readState(path);
  await beginFile(journal, path, before, digestOf(state.bytes));
  await rm(path, { force: true });
  await writeAtomic(path, state.bytes, { mode: state.mode });
}

/** False if the file is no longer what the edit was made from. */
async function replace(
  journal: Journal,
  path: string,
  before: FileState | null,
  after: string | null,
  mode: number | undefined,
): Promise<boolean> {
  const id = await beginFile(journal, path, before, after === null ? null : digestOf(after));
  const stillWanted = async (): Promise<boolean> => (await readState(path))?.digest === before?.digest;
  const isReplaced = await write(path, after, { stillWanted, mode });
  if (!isReplaced) await journal.voidStep(id);
  return isReplaced;
}

interface WriteOptions {
  readonly mode?: number;
  readonly stillWanted: () => Promise<boolean>;
}

async function write(path: string, contents: string | Uint8Array | null, options: WriteOptions): Promise<boolean> {
  if (contents !== null) return writeAtomic(path, contents, options);
  if (!(await options.stillWanted())) return false;
  await rm(path, { force: true });
  return true;
}

async function beginFile(
  journal: Journal,
  path: string,
  before: FileState | null,
  after: string | null,
): Promise<number> {
  const saved =
    before === null ? null : { copy: await journal.keep(before.bytes), digest: before.digest, mode: before.mode };
  return journal.begin({ kind: "file", path, before: saved, after });
}

/** `journalDir` holds the copies. `pid` is the process that did the step, whose unfinished files go too. */
export async function undoFile(
  { path, before, after }: FileStep,
  journalDir: string,
  pid: number,
): Promise<"restored" | "kept" | "same"> {
  const isFolderThere = await isThere(dirname(path));
  if (!isFolderThere && before === null) return "same";
  if (!isFolderThere) return "kept";
  return withLock(path, async () => {
    await removeUnfinished(path, pid);
    const digest = (await readState(path))?.digest ?? null;
    if (digest === (before?.digest ?? null)) return "same";
    if (digest !== after) return "kept";
    const stillWanted = async (): Promise<boolean> => ((await readState(path))?.digest ?? null) === after;
    const contents = before === null ? null : await readFile(join(journalDir, before.copy));
    const options = { stillWanted, ...(before === null ? {} : { mode: before.mode }) };
    if (!(await write(path, contents, options))) return "kept";
    if (before !== null && ((await stat(path)).mode & 0o7777) !== before.mode) await chmod(path, before.mode);
    return "restored";
  });
}

/** The temporary files of `writeAtomic`, which a killed process cannot remove itself. */
async function removeUnfinished(path: string, pid: number): Promise<void> {
  const folder = dirname(path);
  const start = `.${basename(path)}.${pid}.`;
  for (const name of await readdir(folder)) {
    if (name.startsWith(start) && name.endsWith(".tmp")) await rm(join(folder, name), { force: true });
  }
}
