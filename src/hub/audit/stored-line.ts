/** A line of the journal as the store keeps it: the exact text, and beside it what can be asked for. */
import type { CallFigures, CountedCall, StoredAuditLine } from "../../store/store.ts";
import { type AuditFile, parseFileName } from "../../telemetry/audit/files.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { type AnyRecord, isStored, type StoredRecord } from "../../telemetry/audit/record.ts";

/** Of a line that is no record. It is kept all the same, so that verify can tell. */
const DAMAGED = "damaged";

/** What can be asked for is cut where the log cuts names; PostgreSQL cannot put more into an index. */
const MAX_LENGTH = 1024;
/** Of ids and times. */
const MAX_KEY_LENGTH = 200;

const NOTHING = {
  callId: null,
  session: null,
  user: null,
  client: null,
  role: null,
  door: null,
  name: null,
  server: null,
  outcome: null,
  event: null,
} as const;

/** @param number Of the line in its file, from 0: unlike the number in the chain, every line has one, damaged or not. */
export function storedLine(
  file: Pick<AuditFile, "name" | "chain" | "start">,
  number: number,
  line: string,
): StoredAuditLine {
  const record = parseLine(line);
  const place = { file: file.name, chain: file.chain, seq: number, line };
  if (record === undefined) {
    return { ...place, type: DAMAGED, time: new Date(file.start).toISOString(), ...NOTHING };
  }
  const { type } = record;
  const time = record.time.slice(0, MAX_KEY_LENGTH);
  if (!isStored(record)) return { ...place, type, time, ...NOTHING };
  return { ...place, type, time, ...columnsOf(record) };
}

function columnsOf({ callId, session, user, client, role, door, name, origin, outcome, event }: StoredRecord) {
  return {
    callId: text(callId)?.slice(0, MAX_KEY_LENGTH) ?? null,
    session: text(session)?.slice(0, MAX_KEY_LENGTH) ?? null,
    user: text(user),
    client: text(client?.name),
    role: text(role),
    door: text(door),
    name: text(name),
    server: text(origin?.source),
    outcome: text(outcome),
    event: text(event),
  };
}

/** A call that ended, as it is counted; undefined for any other record. */
export function countedCall(record: StoredRecord): CountedCall | undefined {
  const figures = figuresOf(record);
  return figures === undefined ? undefined : { time: record.time, ...columnsOf(record), ...figures };
}

/** What is counted of a call; undefined for a line that is not the end of one. */
export function figuresOf(record: AnyRecord | undefined): CallFigures | undefined {
  if (record?.type !== "call") return undefined;
  const { kind, durationMs, waitedMs, resultBytes, findings, isHeld } = record;
  return {
    kind: text(kind) ?? "",
    durationMs: Math.max(0, amount(durationMs) - amount(waitedMs)),
    resultBytes: amount(resultBytes),
    isWaiting: isHeld === true,
    findings: Array.isArray(findings) ? findings.flatMap((each) => text(each?.code) ?? []) : [],
  };
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}

/** Whether what can be asked for is still what the line says: otherwise a record could be hidden without touching it. */
export function isConsistent(found: StoredAuditLine): boolean {
  const named = parseFileName(found.file);
  if (named === undefined) return false;
  const expected = Object.entries(storedLine({ name: found.file, ...named }, found.seq, found.line));
  const columns = new Map<string, unknown>(Object.entries(found));
  return expected.every(([column, value]) => columns.get(column) === value);
}

/** The members of a line are shown as they are, so somebody may have put anything there, of any length. */
function text(value: unknown): string | null {
  return typeof value === "string" ? value.slice(0, MAX_LENGTH) : null;
}
