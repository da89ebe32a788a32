/** What is asked of the log, and the pages that answer it: from the store if there is one, else from the files. */
import type { AuditEntry } from "../../contract/activity-schemas.ts";
import type { CheckedInput } from "../../contract/operations.ts";
import { compileGlob } from "../../policy/glob.ts";
import { makeCursor, readCursor } from "../../store/page-cursor.ts";
import type { AuditQuery, StoredAudit, StoredAuditLine } from "../../store/store.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { type AuditEntry as ReadEntry, parseTime, readAudit } from "../../telemetry/audit/read.ts";
import { isStored, type StoredRecord, WITHHELD } from "../../telemetry/audit/record.ts";

export type AuditInput = CheckedInput<"listAudit">;
/** Without the place in the list. */
export type AuditWish = Omit<AuditQuery, "limit" | "cursor" | "order">;

/** A call that began and has no end; in the log nothing stands for it. */
const UNFINISHED = "unfinished";
const TYPES = ["start", "call", "decision", "event"] as const;

export function wishOf(input: Partial<AuditInput>, now: number): AuditWish {
  const { since, until, type, outcome, q, limit: _limit, cursor: _cursor, order: _order, ...same } = input;
  const isoTime = (key: string, text: string | undefined): string | undefined =>
    text === undefined ? undefined : new Date(parseTime(`\`${key}\``, text, now)).toISOString();
  return {
    ...same,
    since: isoTime("since", since),
    until: isoTime("until", until),
    types: TYPES.filter((each) => (type ?? each) === each && (outcome !== UNFINISHED || each === "start")),
    outcome: outcome === UNFINISHED ? undefined : outcome,
    text: q,
  };
}

export interface AuditPage {
  readonly entries: AuditEntry[];
  readonly nextCursor?: string | undefined;
}

/** The record itself with its chain, so that it can be found again. */
export function entryOf(chain: string, { origin, ...record }: StoredRecord): AuditEntry {
  return { ...record, ...(origin === undefined ? {} : { origin }), chain };
}

/** Calls that ended leave two lines, of which one is shown. After so many looks a page is given out as it is. */
const MAX_LOOKS = 20;
const ENDS_AT_ONCE = 1000;
/** Of one call, besides its end. */
const MAX_EVENTS = 50;

export async function pageOfStore(store: StoredAudit, query: AuditQuery): Promise<AuditPage> {
  const entries: AuditEntry[] = [];
  let { cursor } = query;
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    // Never more than still fit: the cursor stands behind everything that was found.
    const page = await store.query({ ...query, cursor, limit: query.limit - entries.length });
    entries.push(...(await shown(store, page.entries)));
    cursor = page.nextCursor;
    if (cursor === undefined || entries.length === query.limit) break;
  }
  return { entries, nextCursor: cursor };
}

/** The beginning of a call shows only where its end is missing. */
async function shown(store: StoredAudit, lines: readonly StoredAuditLine[]): Promise<AuditEntry[]> {
  const ended = await endedCalls(store, lines);
  return lines.flatMap((line): AuditEntry[] => {
    const record = parseLine(line.line);
    if (record === undefined || !isStored(record)) return [];
    if (record.type !== "start") return [entryOf(line.chain, record)];
    return ended.has(callOf(line)) ? [] : [entryOf(line.chain, { ...record, outcome: UNFINISHED })];
  });
}

/** Of the calls that begin in these lines, those that have an end anywhere. */
async function endedCalls(store: StoredAudit, lines: readonly StoredAuditLine[]): Promise<ReadonlySet<string>> {
  const ended = new Set(lines.filter(isEnd).map(callOf));
  const open = (): StoredAuditLine[] => lines.filter((line) => line.type === "start" && !ended.has(callOf(line)));
  if (open().length > 1) {
    // Both lines of a call say when it began, so that one look finds the ends of many.
    const times = open()
      .map(({ time }) => time)
      .toSorted();
    const ends = await store.query({ since: times[0], until: times.at(-1), types: ["call"], limit: ENDS_AT_ONCE });
    for (const line of ends.entries) ended.add(callOf(line));
  }
  for (const line of open()) {
    if (line.callId === null) continue;
    const found = await store.query({ callId: line.callId, types: ["call", "event"], limit: MAX_EVENTS });
    if (found.entries.some((each) => isEnd(each) && each.chain === line.chain)) ended.add(callOf(line));
  }
  return ended;
}

function isEnd({ type, event }: StoredAuditLine): boolean {
  return type === "call" || event === WITHHELD;
}

function callOf({ chain, callId }: StoredAuditLine): string {
  return `${chain} ${callId ?? ""}`;
}

type Key = readonly [time: string, file: string, seq: number];

/** Every page reads all files. */
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
    nextCursor: last && makeCursor(keyOf(last)),
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

const EQUAL = ["session", "user", "door", "callId"] as const;

/** As a store would choose, for records that were read from files. */
export function matcher(wish: AuditWish): (record: StoredRecord) => boolean {
  const named = wish.name === undefined ? undefined : compileGlob(wish.name);
  const text = wish.text?.toLowerCase() ?? "";
  return (record) => {
    if (wish.types?.includes(record.type) === false) return false;
    if (wish.since !== undefined && record.time < wish.since) return false;
    if (wish.until !== undefined && record.time > wish.until) return false;
    if (wish.server !== undefined && record.origin?.source !== wish.server) return false;
    if (named !== undefined && (record.name === undefined || !named(record.name))) return false;
    if (EQUAL.some((key) => wish[key] !== undefined && record[key] !== wish[key])) return false;
    if (wish.client !== undefined && record.client?.name !== wish.client) return false;
    if (!hasOutcome(record, wish.outcome)) return false;
    const searched = [record.name, record.event, record.user, record.client?.name, record.callId];
    return text === "" || searched.some((each) => each?.toLowerCase().includes(text) === true);
  };
}

function hasOutcome({ outcome }: StoredRecord, wanted: string | undefined): boolean {
  // Of a call without an end the log says nothing, neither good nor bad.
  const said = outcome === UNFINISHED ? undefined : outcome;
  if (wanted === "failed") return said !== undefined && said !== "ok";
  return wanted === undefined || said === wanted;
}
