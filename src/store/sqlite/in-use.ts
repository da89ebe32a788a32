/** Whether any process has the database open. */
import { isAlive } from "../../files/is-alive.ts";
import Sqlite from "better-sqlite3";
import { sizeOf } from "./file-check.ts";
import { isBusy } from "./sqlite-errors.ts";

/** The living processes that say so, maybe none of them; undefined if nobody has it open, or it is no usable database. */
export async function usersOf(file: string): Promise<number[] | undefined> {
  if ((await sizeOf(file)) === 0) return undefined;
  const db = new Sqlite(file, { timeout: 250 });
  try {
    // With a write-ahead log every connection holds a lock on the file until it is closed, also while it does nothing.
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("begin exclusive; rollback");
    return undefined;
  } catch (error) {
    return isBusy(error) ? notedHubs(file) : undefined;
  } finally {
    db.close();
  }
}

function notedHubs(file: string): number[] {
  const db = new Sqlite(file, { readonly: true, timeout: 250 });
  try {
    const pids = db
      .prepare("select json_extract(value, '$.pid') from settings where key glob 'hub.*' and json_valid(value)")
      .pluck()
      .all();
    return [...new Set(pids)].filter((pid) => typeof pid === "number").filter((pid) => isAlive(pid));
  } catch {
    return [];
  } finally {
    db.close();
  }
}
