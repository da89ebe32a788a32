/** Queries of the log, and the pages that answer them. */
import type { AuditEntry } from "../../contract/activity-schemas.ts";
import type { CheckedInput, OutputOf } from "../../contract/operations.ts";
import type { KeptLog } from "../../model/audit-blocks.ts";
import { compileGlob } from "../../policy/glob.ts";
import { makeCursor, readCursor } from "../../store/page-cursor.ts";
import type { PageOptions } from "../../store/store.ts";
import {
  type AuditEntry as ReadEntry,
  entryKey,
  isRefusal,
  parseTime,
  readAudit,
  type RecordFilter,
} from "../../telemetry/audit/read.ts";
import { type StoredRecord, UNFINISHED } from "../../telemetry/audit/record.ts";

export type AuditInput = CheckedInput<"listAudit">;

/** Which records are wanted. */
export interface AuditWish extends Partial<Omit<AuditInput, "limit" | "cursor" | "order">> {
  /** The beginning of a session's id. */
  readonly sessionPrefix?: string | undefined;
  /** Only what policy or the guard refused. */
  readonly denied?: boolean;
}

/** `since` and `until` are ISO times, as `withTimes` returns them. */
export interface AuditQuery extends AuditWish, PageOptions {
  readonly order?: "newest" | "oldest";
}

/** The same with times as people give them made ISO times. */
export function withTimes<Input extends Pick<AuditWish, "since" | "until">>(input: Input, now: number): Input {
  const isoTime = (key: "since" | "until"): string | undefined => {
    const text = input[key];
    return text === undefined ? undefined : new Date(parseTime(`\`${key}\``, text, now)).toISOString();
  };
  return { ...input, since: isoTime("since"), until: isoTime("until") };
}

/** @param kept Has the files that are not in the folder. */
export async function pageOf(
  dir: string,
  kept: KeptLog | undefined,
  query: AuditQuery,
): Promise<OutputOf<"listAudit">> {
  const { limit, cursor, order = "newest" } = query;
  const after = cursor === undefined ? undefined : readCursor<[string, string, number]>(cursor, ["", "", 0]);
  const page: ReadEntry[] = [];
  for await (const entry of readAudit(dir, { order, after, kept, filter: filterOf(query) })) {
    if (page.length === limit) return { entries: page.map(shown), nextCursor: cursorOf(page.at(-1)) };
    page.push(entry);
  }
  return { entries: page.map(shown) };
}

/** The record itself with its chain, so that it can be found again. */
function shown({ chain, record }: ReadEntry): AuditEntry {
  return { ...record, chain };
}

function cursorOf(last: ReadEntry | undefined): string | undefined {
  return last && makeCursor(entryKey(last));
}

const EQUAL = ["session", "user", "door", "callId"] as const;

export function filterOf(wish: AuditWish): RecordFilter {
  const { since, until, type, outcome } = wish;
  const named = wish.name === undefined ? undefined : compileGlob(wish.name);
  const text = wish.q?.toLowerCase() ?? "";
  // It is shown of a call that began; in its record there is no outcome.
  const isOpen = outcome === UNFINISHED;
  return {
    since,
    until,
    mayContain: containsAll(wish),
    matches(record) {
      if ((type !== undefined && record.type !== type) || (isOpen && record.type !== "start")) return false;
      if (wish.server !== undefined && record.origin?.source !== wish.server) return false;
      if (named !== undefined && (record.name === undefined || !named(record.name))) return false;
      if (EQUAL.some((key) => wish[key] !== undefined && record[key] !== wish[key])) return false;
      if (wish.sessionPrefix !== undefined && record.session?.startsWith(wish.sessionPrefix) !== true) return false;
      if (wish.client !== undefined && record.client?.name !== wish.client) return false;
      if (!isOpen && !hasOutcome(record, outcome)) return false;
      if (wish.denied === true && !isRefusal(record)) return false;
      const searched = [record.name, record.event, record.user, record.client?.name, record.callId];
      return text === "" || searched.some((each) => each?.toLowerCase().includes(text) === true);
    },
  };
}

function hasOutcome({ outcome }: StoredRecord, wanted: string | undefined): boolean {
  // Of a call without an end the log says nothing, neither good nor bad.
  if (wanted === "failed") return outcome !== undefined && outcome !== "ok";
  return wanted === undefined || outcome === wanted;
}

/** By parts that the JSON of every record has that is wanted: a text of many lines is searched much faster than parsed. */
function containsAll(wish: AuditWish): RecordFilter["mayContain"] {
  const parts: string[] = [];
  const member = (key: string, value: string | undefined): void => {
    if (value !== undefined) parts.push(`"${key}":${JSON.stringify(value)}`);
  };
  for (const key of EQUAL) member(key, wish[key]);
  member("source", wish.server);
  member("name", wish.client);
  member("type", wish.type);
  if (wish.outcome === UNFINISHED) member("type", "start");
  else if (wish.outcome !== "failed") member("outcome", wish.outcome);
  if (wish.sessionPrefix !== undefined) parts.push(`"session":${JSON.stringify(wish.sessionPrefix).slice(0, -1)}`);
  const literals = wish.name?.split(/[*?]/).toSorted((a, b) => b.length - a.length) ?? [];
  parts.push(inText(literals[0] ?? ""));
  // Other letters may be of another case where they stand alone.
  const text = /^[ -~]*$/.test(wish.q ?? "") ? inText(wish.q ?? "").toLowerCase() : "";
  const wanted = parts.filter((part) => part !== "");
  return (searched) =>
    wanted.every((part) => searched.includes(part)) && (text === "" || searched.toLowerCase().includes(text));
}

function inText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
