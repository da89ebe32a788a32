/** Databases take a limited number of values with one statement: SQLite 32,766, PostgreSQL 65,535. */
const ROWS_AT_ONCE = 500;

export function* chunks<Entry>(entries: readonly Entry[], size = ROWS_AT_ONCE): Generator<Entry[]> {
  for (let start = 0; start < entries.length; start += size) yield entries.slice(start, start + size);
}
