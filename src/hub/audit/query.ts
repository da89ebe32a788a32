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
  const entries: AuditEntry[] = [];
  let last: ReadEntry | undefined;
  for await (const entry of readAudit(dir, { order, after, kept, filter: filterOf(query) })) {
    if (entries.length === limit) return { entries, nextCursor: last && makeCursor(entryKey(last)) };
    // With its chain, so that it can be found again.
    entries.push({ ...entry.record, chain: entry.chain });
    last = entry;
  }
  return { entries };
}

/** A text of many lines is searched for what the JSON of a wanted record has in it, which is much faster than parsing all of them. */
interface Condition {
  readonly json?: string;
  isMet(record: StoredRecord): boolean;
}

export function filterOf(wish: AuditWish): RecordFilter {
  const conditions = conditionsOf(wish);
  const parts = conditions.flatMap(({ json }) => json ?? []);
  const text = wish.q?.toLowerCase() ?? "";
  // Other letters may be of another case where they stand alone.
  const textPart = /^[ -~]*$/.test(text) ? inText(text).toLowerCase() : "";
  return {
    since: wish.since,
    until: wish.until,
    mayContain: (searched) =>
      parts.every((part) => searched.includes(part)) && (textPart === "" || searched.toLowerCase().includes(textPart)),
    matches(record) {
      if (!conditions.every((each) => each.isMet(record))) return false;
      const searched = [record.name, record.event, record.user, record.client?.name, record.callId];
      return text === "" || searched.some((each) => each?.toLowerCase().includes(text) === true);
    },
  };
}

function conditionsOf({ outcome, name, sessionPrefix, ...wish }: AuditWish): Condition[] {
  const found: Condition[] = [];
  const equal = (key: string, wanted: string | undefined, valueOf: (record: StoredRecord) => unknown): void => {
    const json = `"${key}":${JSON.stringify(wanted)}`;
    if (wanted !== undefined) found.push({ json, isMet: (record) => valueOf(record) === wanted });
  };
  for (const key of ["type", "session", "user", "door", "callId"] as const) equal(key, wish[key], (each) => each[key]);
  equal("source", wish.server, ({ origin }) => origin?.source);
  equal("name", wish.client, ({ client }) => client?.name);
  // Of a call without an end the log says nothing, neither good nor bad.
  if (outcome === UNFINISHED) equal("type", "start", ({ type }) => type);
  else if (outcome === "failed") found.push({ isMet: (each) => each.outcome !== undefined && each.outcome !== "ok" });
  else equal("outcome", outcome, (each) => each.outcome);
  if (sessionPrefix !== undefined) {
    const json = `"session":${JSON.stringify(sessionPrefix).slice(0, -1)}`;
    found.push({ json, isMet: ({ session }) => session?.startsWith(sessionPrefix) === true });
  }
  if (name !== undefined) {
    const isNamed = compileGlob(name);
    const literals = name.split(/[*?]/).toSorted((a, b) => b.length - a.length);
    found.push({ json: inText(literals[0] ?? ""), isMet: (each) => each.name !== undefined && isNamed(each.name) });
  }
  if (wish.denied === true) found.push({ isMet: isRefusal });
  return found;
}

function inText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
