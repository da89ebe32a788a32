/** Reads the log from the store, page by page. */
import type { AuditEntry } from "../../contract/activity-schemas.ts";
import type { AuditQuery, StoredAudit, StoredAuditLine } from "../../store/store.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { isStored, WITHHELD } from "../../telemetry/audit/record.ts";
import { entryOf } from "./entry.ts";
import { UNFINISHED } from "./wanted.ts";

/** Calls that ended leave two lines, of which one is shown. After so many looks a page is given out as it is. */
const MOST_LOOKS = 20;
const ENDS_AT_ONCE = 1000;
/** Of one call, besides its end. */
const MOST_EVENTS = 50;

export interface AuditPage {
  readonly entries: AuditEntry[];
  readonly nextCursor?: string;
}

export async function pageOfStore(store: StoredAudit, query: AuditQuery): Promise<AuditPage> {
  const entries: AuditEntry[] = [];
  let { cursor } = query;
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const place = cursor === undefined ? {} : { cursor };
    const { cursor: _first, ...rest } = query;
    // Never more than still fit: the cursor stands behind everything that was found.
    const page = await store.query({ ...rest, ...place, limit: query.limit - entries.length });
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
    return ended.has(keyOf(line)) ? [] : [entryOf(line.chain, { ...record, outcome: UNFINISHED })];
  });
}

/** Of the calls that begin in these lines, those that have an end anywhere. */
async function endedCalls(store: StoredAudit, lines: readonly StoredAuditLine[]): Promise<ReadonlySet<string>> {
  const ended = new Set(lines.filter(isEnd).map(keyOf));
  const open = (): StoredAuditLine[] => lines.filter((line) => line.type === "start" && !ended.has(keyOf(line)));
  if (open().length > 1) {
    // Both lines of a call say when it began, so that one look finds the ends of many.
    const times = open()
      .map(({ time }) => time)
      .toSorted();
    const span = { since: times[0] ?? "", until: times.at(-1) ?? "" };
    const ends = await store.query({ ...span, types: ["call"], limit: ENDS_AT_ONCE });
    for (const line of ends.entries) ended.add(keyOf(line));
  }
  for (const line of open()) {
    if (line.callId === null) continue;
    const found = await store.query({ callId: line.callId, types: ["call", "event"], limit: MOST_EVENTS });
    if (found.entries.some((each) => isEnd(each) && each.chain === line.chain)) ended.add(keyOf(line));
  }
  return ended;
}

function isEnd({ type, event }: StoredAuditLine): boolean {
  return type === "call" || event === WITHHELD;
}

function keyOf({ chain, callId }: StoredAuditLine): string {
  return `${chain} ${callId ?? ""}`;
}
