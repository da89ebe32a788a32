/** One file of a change set: replaced under a lock, only if it is still what the edit was made from. */
import { createHash, randomUUID } from "node:crypto";
import {
  chmod,
  cp,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { removeDeadLocks, withLock } from "../lock-file.ts";
import { realTarget, writeAtomic } from "../write-atomic.ts";
import {
  type ChangeJournal,
  type EntriesStep,
  type FileStep,
  type FolderStep,
  readJournal,
  type Step,
  type UndoEntries,
} from "./change-journal.ts";

export type EditText = (text: string | null) => string | null;

export interface EditFileOptions {
  /** Of a file that does not exist yet; 0600 if not given. An existing file keeps its own. */
  readonly mode?: number;
  /** Keep the text from before this change set as `<file>.toolcrib-backup`, with the same mode; or remove such a copy. */
  readonly backup?: boolean | "remove";
}

const BACKUP_SUFFIX = ".toolcrib-backup";

const MAX_EDIT_ATTEMPTS = 5;

/** The journal is asked for when there is a step to write down, and not before. */
type OpenJournal = () => Promise<ChangeJournal>;

/** Returns the previous state of the file; undefined if there was nothing to change. */
export async function editFile(
  openJournal: OpenJournal,
  file: string,
  edit: EditText,
  options: EditFileOptions,
): Promise<{ target: string; before: FileState | null } | undefined> {
  const target = await realTarget(file);
  const folder = dirname(target);
  if (!(await exists(folder))) {
    if (edit(null) === null) return undefined;
    await makeFolder(await openJournal(), folder);
  }
  const attempts = withLock(target, async () => {
    for (let attempt = 0; attempt < MAX_EDIT_ATTEMPTS; attempt++) {
      const before = await readFileState(target);
      const text = before === null ? null : decodeUtf8(file, before.bytes);
      const after = edit(text);
      if (after === text) return undefined;
      if (await replaceFile(await openJournal(), target, before, after, options.mode)) return { target, before };
    }
    throw new ToolcribError("conflict", `${file} keeps changing while it is being edited`, { hint: "Try again." });
  });
  return attempts.catch((error: unknown) => {
    throw isSystemError(error) ? fileError("written", file, error) : error;
  });
}

/** One copy beside the file. Its mode is the file's, whatever an older copy had: what is secret there is secret here. */
export async function writeBackup(journal: ChangeJournal, target: string, state: FileState): Promise<void> {
  const path = `${target}${BACKUP_SUFFIX}`;
  const before = await readFileState(path);
  await beginFileStep(journal, path, before, digestOf(state.bytes));
  await rm(path, { force: true });
  await writeAtomic(path, state.bytes, { mode: state.mode });
}

export async function removeBackup(openJournal: OpenJournal, target: string): Promise<void> {
  const path = `${target}${BACKUP_SUFFIX}`;
  const before = await readFileState(path);
  if (before === null) return;
  await beginFileStep(await openJournal(), path, before, null);
  await rm(path, { force: true });
}

/** False if the file has changed since it was read. */
async function replaceFile(
  journal: ChangeJournal,
  path: string,
  before: FileState | null,
  after: string | null,
  mode: number | undefined,
): Promise<boolean> {
  const id = await beginFileStep(journal, path, before, after === null ? null : digestOf(after));
  const stillWanted = async (): Promise<boolean> => (await readFileState(path))?.digest === before?.digest;
  const isReplaced = await writeOrRemove(path, after, { stillWanted, mode });
  if (!isReplaced) await journal.voidStep(id);
  return isReplaced;
}

interface WriteOptions {
  readonly mode?: number;
  readonly stillWanted: () => Promise<boolean>;
}

async function writeOrRemove(
  path: string,
  contents: string | Uint8Array | null,
  options: WriteOptions,
): Promise<boolean> {
  if (contents !== null) return writeAtomic(path, contents, options);
  if (!(await options.stillWanted())) return false;
  await rm(path, { force: true });
  return true;
}

async function beginFileStep(
  journal: ChangeJournal,
  path: string,
  before: FileState | null,
  after: string | null,
): Promise<number> {
  const saved =
    before === null ? null : { copy: await journal.keep(before.bytes), digest: before.digest, mode: before.mode };
  return journal.begin({ kind: "file", path, before: saved, after });
}

/** `journalDir` has the copies. `pid` is the process of the step, whose unfinished files are removed too. */
async function undoFile(
  { path, before, after }: FileStep,
  journalDir: string,
  pid: number,
): Promise<"restored" | "kept" | "same"> {
  const isFolderThere = await exists(dirname(path));
  if (!isFolderThere && before === null) return "same";
  if (!isFolderThere) return "kept";
  return withLock(path, async () => {
    await removeUnfinished(path, pid);
    const digest = (await readFileState(path))?.digest ?? null;
    if (digest === (before?.digest ?? null)) return "same";
    if (digest !== after) return "kept";
    const stillWanted = async (): Promise<boolean> => ((await readFileState(path))?.digest ?? null) === after;
    const contents = before === null ? null : await readFile(join(journalDir, before.copy));
    const options = { stillWanted, mode: before?.mode };
    if (!(await writeOrRemove(path, contents, options))) return "kept";
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

// Folders are swapped by rename: a reader sees the old one or the new one. The old one is kept until the end.

export async function placeFolder(journal: ChangeJournal, target: string, from: string): Promise<void> {
  const path = resolve(target);
  const source = await realpath(from);
  const digest = await treeDigest(source);
  await makeFolder(journal, dirname(path));
  const fresh = { path: siblingPath(path, "new"), digest };
  const old = (await exists(path)) ? siblingPath(path, "old") : null;
  await journal.begin({ kind: "folder", path, fresh, old });
  await cp(source, fresh.path, { recursive: true, verbatimSymlinks: true, errorOnExist: true, force: false });
  if ((await treeDigest(fresh.path)) !== digest) {
    throw new ToolcribError("conflict", `${from} changed while it was being copied`, { hint: "Try again." });
  }
  if (old !== null) await rename(path, old);
  await rename(fresh.path, path);
}

export async function removeFolder(journal: ChangeJournal, target: string): Promise<void> {
  const path = resolve(target);
  if (!(await exists(path))) return;
  const old = siblingPath(path, "old");
  await journal.begin({ kind: "folder", path, fresh: null, old });
  await rename(path, old);
}

/** Puts back what was there, from wherever the step got to; it may be called again after it was cut off itself. */
async function undoFolder({ path, fresh, old }: FolderStep): Promise<"restored" | "kept" | "same"> {
  const isOldThere = old !== null && (await exists(old));
  if (fresh !== null && !(await exists(fresh.path)) && (await exists(path)) && (old === null || isOldThere)) {
    if ((await treeDigest(path)) !== fresh.digest) return "kept";
    await rename(path, fresh.path);
  }
  if (old !== null && isOldThere) {
    if (await exists(path)) return "kept";
    await rename(old, path);
  }
  const isFreshThere = fresh !== null && (await exists(fresh.path));
  if (isFreshThere) await rm(fresh.path, { recursive: true, force: true });
  return isOldThere || isFreshThere ? "restored" : "same";
}

/** Hidden, so that programs that look for skills in the folder around it pass over it. */
function siblingPath(path: string, what: "new" | "old"): string {
  return join(dirname(path), `.${basename(path)}.toolcrib-${what}-${randomUUID().slice(0, 8)}`);
}

/** A digest of everything below a folder: names, kinds, contents and executable bits. */
async function treeDigest(folder: string): Promise<string> {
  const hash = createHash("sha256");
  const visit = async (path: string, name: string): Promise<void> => {
    const stats = await lstat(path);
    const add = (kind: string, contents: string | Uint8Array): void => {
      hash.update(JSON.stringify([name, kind, contents.length])).update(contents);
    };
    if (stats.isSymbolicLink()) add("link", await readlink(path));
    else if (stats.isDirectory()) {
      add("folder", "");
      for (const child of (await readdir(path)).toSorted()) await visit(join(path, child), `${name}/${child}`);
    } else if (stats.isFile()) add((stats.mode & 0o100) === 0 ? "file" : "program", await readFile(path));
    else throw new ToolcribError("invalid_config", `${path} is neither a file nor a folder`);
  };
  await visit(folder, "");
  return hash.digest("hex");
}

/** Makes a folder with those around it, so that undoing removes just the ones that were not there. */
async function makeFolder(journal: ChangeJournal, folder: string): Promise<void> {
  const paths = await missingFolders(folder);
  if (paths.length === 0) return;
  await journal.begin({ kind: "made", paths });
  await mkdir(folder, { recursive: true });
}

// Undoing the steps of a journal, last step first. A step that cannot be undone does not stop the others.

interface Undone {
  readonly restored: string[];
  /** Changed by someone else since, and kept. */
  readonly kept: string[];
  readonly failed: readonly { readonly path: string; readonly reason: unknown }[];
}

export async function undoSteps(journalDir: string, undoEntries?: UndoEntries): Promise<Undone> {
  const { steps, owner } = await readJournal(journalDir);
  const restored = new Set<string>();
  const kept = new Set<string>();
  const failed: { path: string; reason: unknown }[] = [];
  for (const step of steps.toReversed()) {
    if (step.kind === "made") {
      await removeEmptyFolders(step.paths);
      continue;
    }
    try {
      const outcome = await undoStep(step, journalDir, owner.pid, undoEntries);
      // Backup copies are not worth a report.
      if (outcome === "restored" && !step.path.endsWith(BACKUP_SUFFIX)) restored.add(step.path);
      if (outcome === "kept") {
        kept.add(step.path);
        // Kept: it is the only copy of the previous contents.
        if (step.kind === "folder" && step.old !== null && (await exists(step.old))) kept.add(step.old);
      }
    } catch (reason) {
      failed.push({ path: step.path, reason });
    }
  }
  return { restored: [...restored], kept: [...kept], failed };
}

function undoStep(
  step: FileStep | FolderStep | EntriesStep,
  journalDir: string,
  pid: number,
  undoEntries: UndoEntries | undefined,
): Promise<"restored" | "kept" | "same"> {
  switch (step.kind) {
    case "file":
      return undoFile(step, journalDir, pid);
    case "folder":
      return undoFolder(step);
    case "entries":
      if (undoEntries === undefined)
        throw new ToolcribError("internal", `the entries of ${step.path} cannot be undone here`);
      return undoEntries(step.changes);
  }
}

/** Removes the folders that were kept for undoing. */
export async function discardReplacedFolders(steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (step.kind === "folder" && step.old !== null) await rm(step.old, { recursive: true, force: true });
  }
}

async function removeEmptyFolders(folders: readonly string[]): Promise<void> {
  // A folder that is not empty stays.
  for (const folder of folders.toReversed()) {
    await removeDeadLocks(folder);
    await rmdir(folder).catch(() => undefined);
  }
}

// Files as they are right now.

interface FileState {
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly mode: number;
}

/** Null if nothing exists at the path. Throws for anything other than a file. */
async function readFileState(path: string): Promise<FileState | null> {
  const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw fileError("read", path, error);
  });
  if (handle === null) return null;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new ToolcribError("invalid_config", `${path} is not a file`);
    const bytes = await handle.readFile();
    return { bytes, digest: digestOf(bytes), mode: stats.mode & 0o7777 };
  } finally {
    await handle.close();
  }
}

function digestOf(contents: string | Uint8Array): string {
  return createHash("sha256").update(contents).digest("hex");
}

/** Throws for bytes that would not survive decoding and encoding. */
function decodeUtf8(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new ToolcribError("invalid_config", `${path} is not UTF-8 text`, {
      hint: "Save it as UTF-8. It was not changed.",
      cause: error,
    });
  }
}

/** A symbolic link counts as itself. */
export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

/** The folders of a path that do not exist, outermost first. */
export async function missingFolders(folder: string): Promise<string[]> {
  const missing: string[] = [];
  for (let at = folder; !(await exists(at)) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing;
}

export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

function fileError(what: "read" | "written", path: string, error: NodeJS.ErrnoException): ToolcribError {
  const reason = error.code ?? "unknown error";
  return new ToolcribError("invalid_config", `${path} cannot be ${what}: ${reason}`, { cause: error });
}
