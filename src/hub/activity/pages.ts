/** Pages over a list in memory, by the same cursors as the store's. */
import { makeCursor, readCursor } from "../../store/page-cursor.ts";
import type { Page, PageOptions } from "../../store/store.ts";

export interface Dated<Entry> {
  readonly entry: Entry;
  readonly id: string;
  /** ISO time. */
  readonly at: string;
}

/** The newest first. */
export function pageOf<Entry>(all: readonly Dated<Entry>[], { limit, cursor }: PageOptions): Page<Entry> {
  const sorted = all.toSorted((a, b) => compare(b.at, a.at) || compare(b.id, a.id));
  const start = cursor === undefined ? 0 : placeAfter(sorted, cursor);
  const shown = sorted.slice(start, start + limit);
  const last = start + limit < sorted.length ? shown.at(-1) : undefined;
  return {
    entries: shown.map(({ entry }) => entry),
    total: all.length,
    ...(last === undefined ? {} : { nextCursor: makeCursor([last.at, last.id]) }),
  };
}

/** By what it stood at, not by its number: entries come and go between two pages. */
function placeAfter(sorted: readonly Dated<unknown>[], cursor: string): number {
  const [time, id] = readCursor(cursor, ["", ""] as const satisfies [string, string]);
  const place = sorted.findIndex((each) => (compare(each.at, time) || compare(each.id, id)) < 0);
  return place === -1 ? sorted.length : place;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
