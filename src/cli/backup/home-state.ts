/** What of the home is state that cannot be had again. Secrets, logins, caches and what a running hub keeps are not. */
export const DATABASE = "toolcrib.db";
export const KEY = "store.key";
export const AUDIT = "audit";

/** Replaced as a whole by a restore, also by nothing. */
export const STATE = ["skills", AUDIT, "locks", "replaced", "installed.json", "clients.json"] as const;
/** The user's own; a restore touches them only where the backup has them. */
export const CONFIG = ["etc", "toolcrib.json", "toolcrib.jsonc", "toolcrib.lock"] as const;
/** The database and what SQLite keeps beside it, which belong together. */
export const DATABASE_FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`] as const;

const TOP: ReadonlySet<string> = new Set<string>([...STATE, ...CONFIG, DATABASE, KEY]);

/** Whether a path of a backup, with slashes, may be written into a home. */
export function belongsInHome(path: string): boolean {
  const parts = path.split("/");
  return (
    TOP.has(parts[0] ?? "") &&
    parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\\0]/.test(part))
  );
}
