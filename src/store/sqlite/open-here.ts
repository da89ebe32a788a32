/**
 * Which database files this process has open. Locks on a file belong to the process and go when it closes any handle of it,
 * also one that SQLite knows nothing of; another process could then take the log away from under it. So a file that is
 * open here is looked at through SQLite alone.
 */
import { resolve } from "node:path";
import type { Database } from "better-sqlite3";

const opened = new Map<string, Set<Database>>();
const turns = new Map<string, Promise<unknown>>();

/** One after the other. `open` is told whether there is another one already. */
export async function openInTurn(file: string, open: (isOpen: boolean) => Promise<Database>): Promise<Database> {
  const key = resolve(file);
  const before = turns.get(key);
  const mine = (async () => {
    await before?.catch(() => {});
    const others = stillOpen(key);
    const database = await open(others.size > 0);
    opened.set(key, others.add(database));
    return database;
  })();
  turns.set(key, mine);
  try {
    return await mine;
  } finally {
    if (turns.get(key) === mine) turns.delete(key);
  }
}

function stillOpen(key: string): Set<Database> {
  for (const [file, databases] of opened) {
    for (const database of databases) if (!database.open) databases.delete(database);
    if (databases.size === 0) opened.delete(file);
  }
  return opened.get(key) ?? new Set();
}
