/** The file of an SQLite database: checking, opening and copying it, and waiting for other processes that use it. */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import Sqlite, { type Database } from "better-sqlite3";
import { isProcessAlive } from "../files/processes.ts";
import { ToolcribError } from "../model/errors.ts";
import { assertNotNewer } from "./migrations.ts";

/** "TCRB": what `PRAGMA application_id` says. */
export const APPLICATION_ID = 0x54435242;
/** A check of all pages takes about a millisecond for each MB; above this size every start would feel it, and it is done later. */
export const FULL_CHECK_BYTES = 16 * 1024 * 1024;

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";

/** Checked first, readable by its owner alone, with the pragmas that the store relies on. */
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

/** A second handle of this process, in a thread of its own, on a file that another one has checked and set up. */
export async function openAgain(file: string): Promise<Database> {
  try {
    const db = new Sqlite(file, { timeout: SECOND_TIMEOUT_MS, fileMustExist: true });
    setPragmas(db);
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

/** SQLite creates the files beside it with the same mode. */
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
  setPragmas(db);
  // The second handle, in its thread, does it sooner: it takes as long as writing all those pages to the disk.
  db.pragma("wal_autocheckpoint = 4000");
}

function setPragmas(db: Database): void {
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

/** Reads the header alone. A missing or empty file is fine: a new database will be there. */
async function checkHeader(file: string): Promise<void> {
  const found = await readHeader(file);
  if (found === undefined) return;
  const { header } = found;
  if (header.length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw untouched(file, "it is not an SQLite database");
  }
  const application = header.readUInt32BE(68);
  if (application !== APPLICATION_ID && application !== 0) throw foreignDatabase(file);
  if (application === APPLICATION_ID) assertNotNewer(file, header.readUInt32BE(60));
}

/** On a connection that only reads. */
async function checkPages(file: string, db: Database): Promise<void> {
  try {
    // Reads the schema, which every later statement needs.
    const tables = db.prepare("select name from sqlite_schema where type = 'table'").pluck().all();
    const ours = db.pragma("application_id", { simple: true }) === APPLICATION_ID || tables.includes("migrations");
    if (tables.length > 0 && !ours) throw foreignDatabase(file);
    if ((await sizeOf(file)) > FULL_CHECK_BYTES) return;
    const verdict = String(db.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw untouched(file, verdict.replaceAll("\n", " ").trim());
  } catch (error) {
    if (sqliteCode(error).startsWith("SQLITE_CORRUPT"))
      throw untouched(file, (await cutOff(file)) ?? "its pages do not fit together", error);
    throw error;
  }
}

/** Zero if there is no such file. */
export async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => undefined))?.size ?? 0;
}

/**
 * Only describes what SQLite has found: it compares size and header under a lock. Here another process may
 * have grown the file in between.
 */
async function cutOff(file: string): Promise<string | undefined> {
  const { header, size = 0 } = (await readHeader(file)) ?? {};
  if (header === undefined || header.length < HEADER_BYTES) return undefined;
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const wanted = header.readUInt32BE(28) * pageSize;
  return size < wanted ? `it was cut off at ${size} of ${wanted} bytes` : undefined;
}

async function readHeader(file: string): Promise<{ header: Buffer; size: number } | undefined> {
  if ((await sizeOf(file)) === 0) return undefined;
  const handle = await open(file, "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    return { header: buffer.subarray(0, bytesRead), size: (await handle.stat()).size };
  } finally {
    await handle.close();
  }
}

function untouched(file: string, why: string, cause?: unknown): ToolcribError {
  return corruptDatabase(file, why, { cause, before: "Nothing was changed. " });
}

function foreignDatabase(file: string): ToolcribError {
  return new ToolcribError("invalid_config", `${file} is a database of another program.`, {
    hint: "Move it away, or set TOOLCRIB_HOME to another folder. Nothing was changed.",
    details: { file },
  });
}

/**
 * Which database files this process has open. Locks on a file belong to the process and go when it closes any handle of it,
 * also one that SQLite knows nothing of; another process could then take the log away from under it. So a file that is
 * open here is looked at through SQLite alone.
 */
const openDatabases = new Map<string, Set<Database>>();
const pendingOpens = new Map<string, Promise<unknown>>();

/** One after the other. `open` learns whether the file is open here already. */
export async function openSerially(file: string, open: (isOpen: boolean) => Promise<Database>): Promise<Database> {
  const key = resolve(file);
  const before = pendingOpens.get(key);
  const mine = (async () => {
    await before?.catch(() => {});
    const others = stillOpen(key);
    const database = await open(others.size > 0);
    openDatabases.set(key, others.add(database));
    return database;
  })();
  pendingOpens.set(key, mine);
  try {
    return await mine;
  } finally {
    if (pendingOpens.get(key) === mine) pendingOpens.delete(key);
  }
}

function stillOpen(key: string): Set<Database> {
  for (const [file, databases] of openDatabases) {
    for (const database of databases) if (!database.open) databases.delete(database);
    if (databases.size === 0) openDatabases.delete(file);
  }
  return openDatabases.get(key) ?? new Set();
}

const PAGES_AT_ONCE = 500;

/** A whole copy of a database that is in use, as one file. */
export async function copyDatabase(file: string, target: string): Promise<void> {
  await writeDatabaseFile(target, async (temporary) => {
    const source = new Sqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS });
    try {
      // An open read keeps one state of it, whatever others write meanwhile; without it each of their writes would make
      // the copy start again.
      await retryWhileBusy(() => source.exec("begin; select count(*) from sqlite_schema"));
      await source.backup(temporary, { progress: () => PAGES_AT_ONCE });
    } catch (error) {
      throw sqliteFailure(file, error);
    } finally {
      source.close();
    }
  });
}

/** `fill` makes a database at the path that it gets; it takes the target's place when it is whole. */
export async function writeDatabaseFile(target: string, fill: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${resolve(target)}.${randomUUID().slice(0, 8)}.tmp`;
  try {
    await (await open(temporary, "wx", 0o600)).close();
    await fill(temporary);
    settle(temporary);
    const handle = await open(temporary, "r+");
    await handle.sync().finally(() => handle.close());
    await rename(temporary, resolve(target));
  } catch (error) {
    for (const suffix of ["", "-wal", "-shm", "-journal"]) await rm(temporary + suffix, { force: true });
    throw error;
  }
}

/** Without a log beside it, and checked. */
function settle(file: string): void {
  const copy = new Sqlite(file);
  try {
    copy.pragma("journal_mode = DELETE");
    const verdict = String(copy.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw corruptDatabase(file, verdict);
  } finally {
    copy.close();
  }
}

/** The registered processes that have the database open, maybe none; undefined if it is not open, or not usable. */
export async function findDatabaseUsers(file: string): Promise<number[] | undefined> {
  if ((await sizeOf(file)) === 0) return undefined;
  const db = new Sqlite(file, { timeout: 250 });
  try {
    // With a write-ahead log every connection holds a lock on the file until it is closed, also while it does nothing.
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("begin exclusive; rollback");
    return undefined;
  } catch (error) {
    return isBusy(error) ? registeredHubs(file) : undefined;
  } finally {
    db.close();
  }
}

function registeredHubs(file: string): number[] {
  const db = new Sqlite(file, { readonly: true, timeout: 250 });
  try {
    const pids = db
      .prepare("select json_extract(value, '$.pid') from settings where key glob 'hub.*' and json_valid(value)")
      .pluck()
      .all();
    return [...new Set(pids)].filter((pid) => typeof pid === "number").filter((pid) => isProcessAlive(pid));
  } catch {
    return [];
  } finally {
    db.close();
  }
}

/** The event loop stands still meanwhile. */
const BUSY_TIMEOUT_MS = 5;
/** In a thread that does nothing else. */
const SECOND_TIMEOUT_MS = 1000;
const MAX_BUSY_WAIT_MS = 20_000;
const MAX_TURN_MS = 10;

/**
 * Waiting, without holding everything else up. SQLite waits for another process by blocking this one; so it gets a
 * short time, and the rest of the waiting is done between attempts.
 */
export async function retryWhileBusy<Result>(step: () => Promise<Result> | Result): Promise<Result> {
  const deadline = performance.now() + MAX_BUSY_WAIT_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await delay(5 + Math.random() * 20);
  }
}

/**
 * SQLite's statements never wait, so a loop over many of them would be one turn of the event loop, in which nothing else
 * runs.
 */
export function yieldRegularly(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < MAX_TURN_MS) return;
    await nextTurn();
    began = performance.now();
  };
}

export function sqliteCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

function isBusy(error: unknown): boolean {
  return sqliteCode(error).startsWith("SQLITE_BUSY");
}

interface Circumstances {
  readonly cause?: unknown;
  /** The beginning of the hint. */
  readonly before?: string;
}

export function corruptDatabase(file: string, why: string, { cause, before = "" }: Circumstances = {}): ToolcribError {
  return new ToolcribError("invalid_config", `The database ${file} is damaged: ${why}.`, {
    hint: `${before}Bring back a copy with "toolcrib restore <file> --force", or move ${file} away to begin with an empty one.`,
    details: { file },
    cause,
  });
}

/** The error that callers of the store get for one of better-sqlite3. */
export function sqliteFailure(file: string, error: unknown): Error {
  const code = sqliteCode(error);
  const text = error instanceof Error ? error.message : String(error);
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB")
    return corruptDatabase(file, text, { cause: error });
  const known = FAILURES.find(({ codes }) => codes.some((each) => code === each || code.startsWith(`${each}_`)));
  if (known !== undefined) {
    return new ToolcribError("server_unavailable", `The database ${file} ${known.what} (${text}).`, {
      hint: known.hint,
      details: { file },
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(text);
}

const FAILURES = [
  {
    codes: ["SQLITE_BUSY", "SQLITE_LOCKED"],
    what: "is held by another process",
    hint: "Try again. If it stays so, look for a process that hangs in the middle of a write.",
  },
  { codes: ["SQLITE_FULL"], what: "cannot grow", hint: "Free some space on its disk." },
  {
    codes: ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"],
    what: "cannot be opened for writing",
    hint: "Check who owns the file and its folder, or set TOOLCRIB_HOME to a folder that can be written.",
  },
  { codes: ["SQLITE_IOERR"], what: "cannot be read or written", hint: "Check the disk that it is on." },
] as const;
