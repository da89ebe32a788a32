/**
 * Sums over the calls of the audit log, for each of the last steps of time and each server, tool, client and role: an overview of a
 * million records is read from a few thousand rows. They are added to in the transaction that marks the lines of the calls as
 * counted, so each counts once.
 */
import { sql } from "kysely";
import { STATS_RANGES } from "../../contract/stats-ranges.ts";
import { type DatabaseEngine, upsert } from "../database.ts";
import type { Trx } from "../outbox.ts";
import type { CallSum, CallSumRow, CallSumsQuery, CountedCall } from "../store.ts";

const STEPS: readonly { readonly seconds: number; readonly steps: number }[] = Object.values(STATS_RANGES);

/** Every longer one is a multiple of it. */
const MIN_STEP = STATS_RANGES["1h"].seconds;

/** Pairs of tools and clients are many, and few people ask for them: they are counted for the longest range only. */
const CALLER_STEP = STATS_RANGES["30d"].seconds;

/** Names come from callers; more different ones of a kind in one step count together, so that the table stays bounded. */
const MAX_SUBJECTS = 500;
export const OTHERS = "…";
const MAX_NAME_LENGTH = 200;

/** A kind and its names, as a key that sorts by them. */
export type Subject = readonly [
  kind: "all" | "server" | "tool" | "client" | "role" | "caller" | "failure" | "finding",
  ...names: string[],
];

export function subjectKey(subject: Subject): string {
  return JSON.stringify(subject);
}

/** The beginning of the keys of all subjects that begin like this. */
export function subjectPrefix(subject: Subject): string {
  return `${subjectKey(subject).slice(0, -1)},`;
}

export function parseSubject(key: string): Subject {
  // As `subjectKey` wrote it.
  return JSON.parse(key) as Subject;
}

const REFUSED: ReadonlySet<string> = new Set(["denied", "blocked", "rate_limited", "unauthorized"]);

type Counted = "ok" | "failed" | "refused" | "waiting" | "cancelled";

function countedAs({ outcome, isWaiting }: CountedCall): Counted {
  if (isWaiting) return "waiting";
  if (outcome === "ok" || outcome === "cancelled") return outcome;
  return outcome !== null && REFUSED.has(outcome) ? "refused" : "failed";
}

/** Each bucket is so much wider than the one before. */
const DURATION_GROWTH = Math.log(1.2);
const SIZE_GROWTH = Math.log(1.5);
/** Takes everything from there on: days of milliseconds, more bytes than there are. */
const LAST_BUCKET = 120;

/** Everything below 1 is in the first. */
function bucketOf(value: number, growth: number): number {
  return value < 1 ? 0 : Math.min(LAST_BUCKET, 1 + Math.floor(Math.log(value) / growth));
}

/** In milliseconds, a tenth off at most; null where there is nothing. */
export function durationOf({ durations }: CallSum, share: number): number | null {
  return quantileOf(durations, share, DURATION_GROWTH);
}

/** In bytes, a quarter off at most. */
export function sizeOf({ sizes }: CallSum, share: number): number | null {
  return quantileOf(sizes, share, SIZE_GROWTH);
}

function quantileOf(buckets: readonly number[], share: number, growth: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  const rank = Math.max(1, Math.ceil(share * total));
  let seen = 0;
  for (const [bucket, count] of buckets.entries()) {
    seen += count;
    if (seen >= rank) return bucket === 0 ? 0 : Math.round(Math.exp((bucket - 0.5) * growth));
  }
  return null;
}

function count(buckets: number[], bucket: number, more: number): void {
  while (buckets.length <= bucket) buckets.push(0);
  buckets[bucket] = (buckets[bucket] ?? 0) + more;
}

/** The counts of `more` are added to `sum`. */
export function addSum(sum: CallSum, more: CallSum): CallSum {
  for (const key of COUNTS) sum[key] += more[key];
  for (const key of ["durations", "sizes"] as const) {
    const [counts, others] = [sum[key], more[key]];
    for (let bucket = 0; bucket < others.length; bucket += 1) count(counts, bucket, others[bucket] ?? 0);
  }
  if (more.slowest !== null && (sum.slowest === null || more.slowest.ms > sum.slowest.ms)) sum.slowest = more.slowest;
  if (more.last !== null && (sum.last === null || more.last.at >= sum.last.at)) sum.last = more.last;
  return sum;
}

const COUNTS = ["calls", "failed", "refused", "waiting", "cancelled"] as const;

export function emptySum(): CallSum {
  const nothing = { calls: 0, failed: 0, refused: 0, waiting: 0, cancelled: 0 };
  return { ...nothing, durations: [], sizes: [], slowest: null, last: null };
}

/** The subjects that a call counts for. Resources are too many to count one by one. */
function subjectsOf(call: CountedCall): Subject[] {
  const cut = (text: string | null): string => (text ?? "").slice(0, MAX_NAME_LENGTH).toWellFormed();
  const [server, name, client, role] = [cut(call.server), cut(call.name), cut(call.client), cut(call.role)];
  const subjects: Subject[] = [["all"], ["client", client], ["role", role]];
  const counted = countedAs(call);
  if (server !== "") {
    subjects.push(["server", server]);
    if (call.kind === "tool") subjects.push(["tool", server, name], ["caller", server, name, client]);
  }
  if (counted === "failed" || counted === "refused") subjects.push(["failure", server, name, cut(call.outcome)]);
  for (const code of new Set(call.findings)) subjects.push(["finding", server, name, cut(code)]);
  return subjects;
}

function addCall(sum: CallSum, call: CountedCall): void {
  const { time, durationMs, resultBytes } = call;
  const [counted, callId] = [countedAs(call), call.callId ?? ""];
  sum.calls += 1;
  if (counted !== "ok") sum[counted] += 1;
  if (sum.last === null || time >= sum.last.at) sum.last = { at: time, callId };
  if (counted !== "ok" && counted !== "failed") return;
  count(sum.durations, bucketOf(durationMs, DURATION_GROWTH), 1);
  count(sum.sizes, bucketOf(resultBytes, SIZE_GROWTH), 1);
  if (sum.slowest === null || durationMs > sum.slowest.ms) sum.slowest = { ms: durationMs, callId };
}

type Steps = Map<string, { readonly step: number; readonly at: number; readonly sums: Map<string, CallSum> }>;

/** By step and subject, without steps that no range reaches at `now` any more. */
export function sumsOf(calls: Iterable<CountedCall>, now = Number.NEGATIVE_INFINITY): Steps {
  const found: Steps = new Map();
  // Together, calls that count for the same subjects in the same step of the shortest range, and so of every longer one.
  const alike = Map.groupBy(calls, ({ time, server, name, client, role, outcome, kind, isWaiting, findings }) => {
    const step = Math.floor(Date.parse(time) / 1000 / MIN_STEP);
    return JSON.stringify([step, server, name, client, role, outcome, kind, isWaiting, findings]);
  });
  for (const same of alike.values()) {
    const [first] = same;
    const time = Date.parse(first?.time ?? "") / 1000;
    if (first === undefined || Number.isNaN(time)) continue;
    const sum = emptySum();
    for (const call of same) addCall(sum, call);
    const subjects = subjectsOf(first).map((subject) => [subject[0], subjectKey(subject)] as const);
    for (const { seconds, steps } of STEPS) {
      const at = Math.floor(time / seconds) * seconds;
      if (at <= now / 1000 - seconds * steps) continue;
      const key = `${seconds} ${at}`;
      let step = found.get(key);
      if (step === undefined) found.set(key, (step = { step: seconds, at, sums: new Map() }));
      for (const [kind, subject] of subjects) {
        if (kind === "caller" && seconds !== CALLER_STEP) continue;
        step.sums.set(subject, addSum(step.sums.get(subject) ?? emptySum(), sum));
      }
    }
  }
  return found;
}

/** In the transaction that marks them as counted. */
export async function addCalls(
  engine: DatabaseEngine,
  trx: Trx,
  calls: readonly CountedCall[],
  now: number,
): Promise<void> {
  const steps = sumsOf(calls, now);
  if (steps.size === 0) return;
  // Sums are read, added to and written back; others wait.
  await engine.lock(trx, "call sums");
  for (const { step, at, sums } of steps.values()) {
    const there = await trx
      .selectFrom("callSums")
      .select(["subject", "sums"])
      .where("step", "=", step)
      .where("at", "=", at)
      .execute();
    const before = new Map(there.map((row) => [row.subject, row.sums]));
    const rows = [...added(before, sums)].map(([subject, sum]) => ({ step, at, subject, sums: JSON.stringify(sum) }));
    await upsert(trx, "callSums", ["step", "at", "subject"], rows);
  }
}

export async function querySums(
  { db }: DatabaseEngine,
  { step, since, subjects }: CallSumsQuery,
): Promise<CallSumRow[]> {
  const rows = await db
    .selectFrom("callSums")
    .select(["at", "subject", "sums"])
    .where("step", "=", step)
    .where("at", ">=", since)
    .where((eb) =>
      eb.or(
        subjects.map(({ prefix, name }) => {
          if (prefix.endsWith("]")) return eb("subject", "=", prefix);
          // Above everything that begins like it: text is compared byte by byte.
          const range = eb.and([eb("subject", ">=", prefix), eb("subject", "<", `${prefix}\u{10ffff}`)]);
          if (name === undefined) return range;
          const pattern = `%${JSON.stringify(name).replace(/[\\%_]/g, "\\$&")}%`;
          return eb.and([range, sql<boolean>`${eb.ref("subject")} like ${pattern} escape '\\'`]);
        }),
      ),
    )
    .execute();
  return rows.map(({ at, subject, sums }) => ({ at, subject, sum: parseSum(sums) }));
}

/** Forgets what no range reaches any more, and what is older than `maxDays`. */
export async function pruneSums(
  { db }: DatabaseEngine,
  now: number,
  maxDays = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (const { seconds, steps } of STEPS) {
    const kept = Math.min(seconds * steps, maxDays * 86_400);
    await db
      .deleteFrom("callSums")
      .where("step", "=", seconds)
      .where("at", "<", Math.floor(now / 1000 - kept - seconds))
      .execute();
  }
}

/** The sums that change, with what there was of them. New subjects above the bound of their kind become one. */
function added(before: ReadonlyMap<string, string>, more: ReadonlyMap<string, CallSum>): Map<string, CallSum> {
  const counts: Partial<Record<Subject[0], number>> = {};
  const countOne = (key: string): number => {
    const [kind] = parseSubject(key);
    return (counts[kind] = (counts[kind] ?? 0) + 1);
  };
  for (const key of before.keys()) countOne(key);
  const sums = new Map<string, CallSum>();
  for (const [key, sum] of more) {
    const subject = before.has(key) || countOne(key) <= MAX_SUBJECTS ? key : othersOf(key);
    sums.set(subject, addSum(sums.get(subject) ?? parseSum(before.get(subject) ?? "{}"), sum));
  }
  return sums;
}

/** The server stays: there are only so many of them. */
function othersOf(key: string): string {
  const [kind, first = "", ...rest] = parseSubject(key);
  return subjectKey([kind, kind === "client" || kind === "role" ? OTHERS : first, ...rest.map(() => OTHERS)]);
}

function parseSum(text: string): CallSum {
  // As `add` wrote it.
  return { ...emptySum(), ...(JSON.parse(text) as Partial<CallSum>) };
}
