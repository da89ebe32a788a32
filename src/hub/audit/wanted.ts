/** What somebody asks of the log, in the terms of the log. */
import type { CheckedInput } from "../../contract/operations.ts";
import { compileGlob } from "../../policy/glob.ts";
import type { AuditQuery } from "../../store/store.ts";
import type { StoredRecord } from "../../telemetry/audit/record.ts";
import { parseTime } from "../../telemetry/audit/time.ts";

export type AuditInput = CheckedInput<"listAudit">;
/** Without the place in the list. */
export type AuditWish = Omit<AuditQuery, "limit" | "cursor" | "order">;

/** A call that began and has no end; in the log nothing stands for it. */
export const UNFINISHED = "unfinished";
const EQUAL = ["session", "user", "door", "callId"] as const;
const TYPES = ["start", "call", "decision", "event"] as const;

export function wishOf(input: Partial<AuditInput>, now: number): AuditWish {
  const { since, until, type, server, name, session, user, client, door, outcome, callId, q } = input;
  return {
    ...(since === undefined ? {} : { since: isoTime("since", since, now) }),
    ...(until === undefined ? {} : { until: isoTime("until", until, now) }),
    types: TYPES.filter((each) => (type ?? each) === each && (outcome !== UNFINISHED || each === "start")),
    ...(server === undefined ? {} : { server }),
    ...(name === undefined ? {} : { name }),
    ...(session === undefined ? {} : { session }),
    ...(user === undefined ? {} : { user }),
    ...(client === undefined ? {} : { client }),
    ...(door === undefined ? {} : { door }),
    ...(outcome === undefined || outcome === UNFINISHED ? {} : { outcome }),
    ...(callId === undefined ? {} : { callId }),
    ...(q === undefined ? {} : { text: q }),
  };
}

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

function isoTime(key: string, text: string, now: number): string {
  return new Date(parseTime(`\`${key}\``, text, now)).toISOString();
}
