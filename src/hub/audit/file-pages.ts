/** Reads the log from its files, page by page: what a hub without a store does. Every page reads all of them. */
import type { AuditQuery } from "../../store/store.ts";
import { makeCursor, readCursor } from "../../store/page-cursor.ts";
import { type AuditEntry as ReadEntry, readAudit } from "../../telemetry/audit/read.ts";
import { entryOf } from "./entry.ts";
import type { AuditPage } from "./store-pages.ts";
import { matcher } from "./wanted.ts";

type Key = readonly [time: string, file: string, seq: number];

export async function pageOfFiles(dir: string, query: AuditQuery): Promise<AuditPage> {
  const { limit, cursor, order = "newest" } = query;
  const direction = order === "newest" ? -1 : 1;
  const after = cursor === undefined ? undefined : readCursor<Key>(cursor, ["", "", 0]);
  const matches = matcher(query);
  const inOrder = (a: ReadEntry, b: ReadEntry): number => direction * compare(keyOf(a), keyOf(b));
  let found: ReadEntry[] = [];
  const since = query.since === undefined ? {} : { since: Date.parse(query.since) };
  for await (const entry of readAudit(dir, since)) {
    if (!matches(entry.record)) continue;
    if (after !== undefined && direction * compare(keyOf(entry), after) <= 0) continue;
    found.push(entry);
    // Only what may still be on the page is held.
    if (found.length > 2 * limit + 1) found = found.toSorted(inOrder).slice(0, limit + 1);
  }
  found = found.toSorted(inOrder);
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  return {
    entries: page.map(({ chain, record }) => entryOf(chain, record)),
    ...(last === undefined ? {} : { nextCursor: makeCursor(keyOf(last)) }),
  };
}

function keyOf({ file, record }: ReadEntry): Key {
  return [record.time, file, record.seq];
}

function compare(a: Key, b: Key): number {
  for (const [index, value] of a.entries()) {
    const other = b[index];
    if (other !== undefined && value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
