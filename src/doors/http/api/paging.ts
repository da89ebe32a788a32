/** Pages of a list that is in memory. The cursor names the last entry seen, so that changes before it shift nothing. */
import { invalidInput } from "./check-input.ts";

export interface PageInput {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface Paged<Entry> {
  readonly entries: readonly Entry[];
  readonly total: number;
  /** Spread into the answer: absent on the last page. */
  readonly next: { readonly nextCursor?: string };
}

export function pageOf<Entry>(
  all: readonly Entry[],
  { limit, cursor }: PageInput,
  keyOf: (entry: Entry) => string,
): Paged<Entry> {
  const start = cursor === undefined ? 0 : startAfter(all, readCursor(cursor), keyOf);
  const entries = all.slice(start, start + limit);
  const end = start + entries.length;
  const last = entries.at(-1);
  const isLast = end >= all.length || last === undefined;
  return { entries, total: all.length, next: isLast ? {} : { nextCursor: writeCursor(end, keyOf(last)) } };
}

interface Position {
  readonly index: number;
  readonly key: string;
}

/** Where the entry is no more, its place in the list is the best guess. */
function startAfter<Entry>(all: readonly Entry[], { index, key }: Position, keyOf: (entry: Entry) => string): number {
  const expected = all[index - 1];
  if (expected !== undefined && keyOf(expected) === key) return index;
  const found = all.findIndex((entry) => keyOf(entry) === key);
  return found === -1 ? Math.max(0, index - 1) : found + 1;
}

function writeCursor(index: number, key: string): string {
  return Buffer.from(JSON.stringify([index, key])).toString("base64url");
}

function readCursor(cursor: string): Position {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(value)) {
      const [index, key]: unknown[] = value;
      if (typeof index === "number" && Number.isSafeInteger(index) && index > 0 && typeof key === "string") {
        return { index, key };
      }
    }
  } catch {
    // Said below.
  }
  throw invalidInput([{ path: "cursor", message: "is not one that this list gave" }]);
}
