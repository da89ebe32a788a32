/** Opens the database file: checked first, readable by its owner alone, with the pragmas that the store relies on. */
import { chmod, mkdir, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import Sqlite, { type Database } from "better-sqlite3";
import { ToolcribError } from "../model/errors.ts";
import {
  BUSY_TIMEOUT_MS,
  checkHeader,
  checkPages,
  openSerially,
  retryWhileBusy,
  sizeOf,
  sqliteFailure,
} from "./sqlite-file.ts";

export function openFile(file: string, warn: (message: string) => void): Promise<Database> {
  return openSerially(file, (isOpen) => openOne(file, isOpen, warn));
}

async function openOne(file: string, isOpen: boolean, warn: (message: string) => void): Promise<Database> {
  try {
    if (isOpen) await checkThrough(file);
    else {
      await checkFile(file);
      await makePrivate(file);
    }
    const db = new Sqlite(file, { timeout: BUSY_TIMEOUT_MS });
    try {
      await retryWhileBusy(() => configure(db, file, warn));
    } catch (error) {
      db.close();
      throw error;
    }
    return db;
  } catch (error) {
    throw fileFailure(file, error);
  }
}

/** Throws for what must not be opened. */
export async function checkFile(file: string): Promise<void> {
  await checkHeader(file);
  if ((await stat(file).catch(() => undefined)) !== undefined) await checkThrough(file);
}

async function checkThrough(file: string): Promise<void> {
  // What is in the log goes into the file when a connection closes, unless it is one that only reads: a damaged file is not
  // written to. Where there is nothing in it, the other kind leaves nothing behind.
  const reader = new Sqlite(file, { readonly: (await sizeOf(`${file}-wal`)) > 0, timeout: BUSY_TIMEOUT_MS });
  try {
    await retryWhileBusy(() => checkPages(file, reader));
  } finally {
    reader.close();
  }
}

/** SQLite gives the files beside it the same mode. */
async function makePrivate(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, "a", 0o600);
  try {
    const { mode } = await handle.stat();
    if ((mode & 0o077) !== 0) await chmod(file, 0o600);
  } finally {
    await handle.close();
  }
}

function configure(db: Database, file: string, warn: (message: string) => void): void {
  // What is removed later can be given back to the disk. Counts only while there is nothing in it, and would write later too.
  if (db.pragma("page_count", { simple: true }) === 0) db.pragma("auto_vacuum = INCREMENTAL");
  const mode = db.pragma("journal_mode = WAL", { simple: true });
  if (mode !== "wal")
    warn(`The database ${file} cannot use a write-ahead log here; several processes will wait for each other.`);
  // NORMAL would survive a killed process, but not a power cut: a commit is only a commit once it is on the disk.
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
  db.pragma("trusted_schema = OFF");
  db.pragma("journal_size_limit = 16777216");
}

function fileFailure(file: string, error: unknown): Error {
  if (error instanceof ToolcribError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!["EACCES", "ENOENT", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "EISDIR", "ENOSPC", "ELOOP"].includes(code))
    return sqliteFailure(file, error);
  return new ToolcribError("invalid_config", `The database ${file} cannot be opened (${code}).`, {
    hint: "Check who owns the file and its folder, or set TOOLCRIB_HOME to a folder that can be written.",
    details: { file },
    cause: error,
  });
}
