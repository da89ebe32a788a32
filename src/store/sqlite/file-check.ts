/** Whether a file may be opened as Toolcrib's database; looks without writing a byte. */
import { open, stat } from "node:fs/promises";
import type { Database } from "better-sqlite3";
import { ToolcribError } from "../../model/errors.ts";
import { assertNotNewer } from "../migrate.ts";
import { corruptDatabase, sqliteCode } from "./sqlite-errors.ts";

/** "TCRB": what `PRAGMA application_id` says. */
export const APPLICATION_ID = 0x54435242;
/** A check of all pages takes about a millisecond for each MB; above this size every start would feel it, and it is done later. */
export const FULL_CHECK_BYTES = 16 * 1024 * 1024;

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";

/** Reads the header alone. A missing or empty file is fine: a new database will be there. */
export async function checkHeader(file: string): Promise<void> {
  const found = await readHeader(file);
  if (found === undefined) return;
  const { header } = found;
  if (header.length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw untouched(file, "it is no SQLite database");
  }
  const application = header.readUInt32BE(68);
  if (application !== APPLICATION_ID && application !== 0) throw foreignDatabase(file);
  if (application === APPLICATION_ID) assertNotNewer(file, header.readUInt32BE(60));
}

/** On a connection that only reads. */
export async function checkPages(file: string, db: Database): Promise<void> {
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
 * Only words for what SQLite has found: it compares size and header while nobody can change them. Here another process may
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
