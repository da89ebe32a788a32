/** Pages of what is listed by a time, the newest first, and by id where the times are the same. */
import { makeCursor, readCursor } from "./page-cursor.ts";
import type { Page } from "./store.ts";

/** Time and id of the last entry of the page before. */
export function afterCursor(cursor: string): readonly [time: string, id: string] {
  return readCursor(cursor, ["", ""] as const satisfies [string, string]);
}

interface PageParts<Row, Entry> {
  readonly limit: number;
  /** As databases give it. */
  readonly total: string | number | bigint;
  readonly fromRow: (row: Row) => Entry;
  readonly timeOf: (entry: Entry) => string;
}

/** @param rows One more than the limit, if there are more. */
export function pageOf<Row, Entry extends { readonly id: string }>(
  rows: readonly Row[],
  { limit, total, fromRow, timeOf }: PageParts<Row, Entry>,
): Page<Entry> {
  const entries = rows.slice(0, limit).map(fromRow);
  const last = rows.length > limit ? entries.at(-1) : undefined;
  const nextCursor = last === undefined ? {} : { nextCursor: makeCursor([timeOf(last), last.id]) };
  return { entries, total: Number(total), ...nextCursor };
}
