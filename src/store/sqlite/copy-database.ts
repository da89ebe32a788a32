/** A whole copy of a database that is in use, as one file. */
import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import Sqlite from "better-sqlite3";
import { corruptDatabase, sqliteFailure } from "./sqlite-errors.ts";
import { BLOCKING_MS, patiently } from "./patience.ts";

const PAGES_AT_ONCE = 500;

export async function copyDatabase(file: string, target: string): Promise<void> {
  await writeWhole(target, async (temporary) => {
    const source = new Sqlite(file, { readonly: true, timeout: BLOCKING_MS });
    try {
      // An open read holds one state of it, whatever others write meanwhile; without it each of their writes would make
      // the copy begin anew.
      await patiently(() => source.exec("begin; select count(*) from sqlite_schema"));
      await source.backup(temporary, { progress: () => PAGES_AT_ONCE });
    } catch (error) {
      throw sqliteFailure(file, error);
    } finally {
      source.close();
    }
  });
}

/** `fill` makes a database at the path that it gets; it takes the target's place when it is whole. */
export async function writeWhole(target: string, fill: (temporary: string) => Promise<void>): Promise<void> {
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
