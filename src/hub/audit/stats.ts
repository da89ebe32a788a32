/** Figures of calls over time, put together from the sums that the store keeps of them, or from the files. */
import type { CheckedInput } from "../../contract/operations.ts";
import { STATS_RANGES } from "../../contract/stats-ranges.ts";
import type { Stats, StatsFigures, StatsGroup, StatsProblem } from "../../contract/stats-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import {
  addSum,
  durationOf,
  emptySum,
  parseSubject,
  sizeOf,
  type Subject,
  subjectKey,
  subjectPrefix,
  sumsOf,
} from "../../store/parts/call-sums.ts";
import type { CallSum, CallSumRow, CallSumsQuery, CountedCall } from "../../store/store.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { readAudit } from "../../telemetry/audit/read.ts";
import type { StoredRecord } from "../../telemetry/audit/record.ts";
import { filterOf } from "./query.ts";

export type StatsQuery = CheckedInput<"getStats"> & { readonly now: number };

type ReadSums = (query: CallSumsQuery) => Promise<readonly CallSumRow[]>;

const MAX_GROUPS = 50;
const MAX_SLOWEST = 10;
const MAX_PROBLEMS = 50;

export async function statsOf({ now, range, ...wish }: StatsQuery, read: ReadSums): Promise<Stats> {
  const { tool } = wish;
  const kind = KINDS.find((each) => wish[each] !== undefined) ?? "all";
  const { all, span } = await sumsIn(range, subjectsFor(wish), now, read, tool);
  const chosen = all.filter(({ subject }) => subject[0] === kind).flatMap((each) => each.rows);
  const tools = groups(all, "tool", ([server, name]) => ({ server, tool: name }), span);
  const clients =
    tool === undefined ? groups(all, "client", ([client]) => ({ client }), span) : await callersOf(tool, now, read);
  return {
    range,
    since: new Date(span.since * 1000).toISOString(),
    stepSeconds: span.seconds,
    total: figures(chosen),
    points: points(chosen, span),
    servers: groups(all, "server", ([server]) => ({ server }), span).slice(0, MAX_GROUPS),
    tools: tools.slice(0, MAX_GROUPS),
    clients: clients.slice(0, MAX_GROUPS),
    roles: groups(all, "role", ([role]) => ({ role }), span).slice(0, MAX_GROUPS),
    slowest: tools
      .filter(({ p95 }) => p95 !== null)
      .toSorted((a, b) => (b.p95 ?? 0) - (a.p95 ?? 0))
      .slice(0, MAX_SLOWEST),
    failures: problems(all, "failure"),
    findings: problems(all, "finding"),
  };
}

/** Whatever the range: they are counted for the longest only. */
async function callersOf(tool: string, now: number, read: ReadSums): Promise<StatsGroup[]> {
  const { all, span } = await sumsIn("30d", [{ prefix: subjectPrefix(["caller"]), name: tool }], now, read, tool);
  return groups(all, "caller", ([, , client]) => ({ client }), span);
}

/** @param tool Only sums of this one, which is the second name of their subjects. */
async function sumsIn(
  range: StatsQuery["range"],
  subjects: CallSumsQuery["subjects"],
  now: number,
  read: ReadSums,
  tool: string | undefined,
): Promise<{ readonly all: readonly SubjectRows[]; readonly span: Span }> {
  const { seconds, steps } = STATS_RANGES[range];
  const since = (Math.floor(now / 1000 / seconds) - steps + 1) * seconds;
  const bySubject = Map.groupBy(await read({ step: seconds, since, subjects }), ({ subject }) => subject);
  const all = [...bySubject].map(([key, rows]) => ({ subject: parseSubject(key), rows }));
  const wanted = all.filter(({ subject }) => tool === undefined || subject[2] === tool);
  return { all: wanted, span: { since, seconds, steps } };
}

/** Those by which figures can be asked for. */
const KINDS = ["server", "tool", "client", "role"] as const;

function subjectsFor(wish: Omit<StatsQuery, "now" | "range">): CallSumsQuery["subjects"] {
  const { server, tool, client, role } = wish;
  if (KINDS.filter((kind) => wish[kind] !== undefined).length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one of `server`, `tool`, `client` and `role`.", {
      hint: "The figures are kept for each of them alone.",
    });
  }
  const one = (subject: Subject) => ({ prefix: subjectKey(subject) });
  const kinds = (...names: Subject[0][]) => names.map((kind) => ({ prefix: subjectPrefix([kind]), name: tool }));
  if (server !== undefined) {
    const inServer = (kind: Subject[0]) => ({ prefix: subjectPrefix([kind, server]) });
    return [one(["server", server]), inServer("tool"), inServer("failure"), inServer("finding")];
  }
  if (tool !== undefined) return kinds("tool", "failure", "finding");
  if (client !== undefined) return [one(["client", client])];
  if (role !== undefined) return [one(["role", role])];
  return [one(["all"]), ...kinds(...KINDS, "failure", "finding")];
}

interface Span {
  readonly since: number;
  readonly seconds: number;
  readonly steps: number;
}

function points(rows: readonly CallSumRow[], { since, seconds, steps }: Span): Stats["points"] {
  const sums = Array.from({ length: steps }, emptySum);
  for (const { at, sum } of rows) {
    const step = sums[(at - since) / seconds];
    if (step !== undefined) addSum(step, sum);
  }
  return sums.map((sum, index) => ({
    at: new Date((since + index * seconds) * 1000).toISOString(),
    ...counts(sum),
    ...percentiles(sum),
  }));
}

interface SubjectRows {
  readonly subject: Subject;
  readonly rows: readonly CallSumRow[];
}

/** Those with the most calls first. */
function groups(
  all: readonly SubjectRows[],
  kind: Subject[0],
  nameOf: (names: readonly string[]) => Partial<StatsGroup>,
  { since, seconds, steps }: Span,
): StatsGroup[] {
  const named = all
    .filter(({ subject }) => subject[0] === kind)
    .map(({ subject: [, ...names], rows }) => ({ name: nameOf(names), rows }));
  // The same name can be that of several subjects, such as of a tool that moved to another server.
  const grouped = Map.groupBy(named, ({ name }) => JSON.stringify(name));
  return [...grouped.values()]
    .map((same) => {
      const rows = same.flatMap((each) => each.rows);
      const series = Array.from({ length: steps }, () => 0);
      for (const { at, sum } of rows) {
        const index = (at - since) / seconds;
        if (index < steps) series[index] = (series[index] ?? 0) + sum.calls;
      }
      return { ...figures(rows), ...same[0]?.name, series };
    })
    .toSorted((a, b) => b.calls - a.calls);
}

function problems(all: readonly SubjectRows[], kind: "failure" | "finding"): StatsProblem[] {
  return all
    .flatMap(({ subject: [found, server = "", name = "", code = ""], rows }): StatsProblem[] => {
      if (found !== kind) return [];
      const { calls, last } = total(rows);
      return last === null ? [] : [{ name, server, code, count: calls, last }];
    })
    .toSorted((a, b) => b.count - a.count || (a.last.at < b.last.at ? 1 : -1))
    .slice(0, MAX_PROBLEMS);
}

function total(rows: readonly CallSumRow[]): CallSum {
  return rows.reduce((sum, row) => addSum(sum, row.sum), emptySum());
}

function figures(rows: readonly CallSumRow[]): StatsFigures {
  const sum = total(rows);
  const { slowest, last } = sum;
  return { ...counts(sum), ...percentiles(sum), resultBytes: sizeOf(sum, 0.5), slowest, last };
}

function counts({ calls, failed, refused, waiting, cancelled }: CallSum) {
  return { calls, failed, refused, waiting, cancelled };
}

function percentiles(sum: CallSum) {
  return { p50: durationOf(sum, 0.5), p95: durationOf(sum, 0.95), p99: durationOf(sum, 0.99) };
}

/** For a hub without a store; reads all files. */
export async function sumsOfFiles(dir: string, { step, since, subjects }: CallSumsQuery): Promise<CallSumRow[]> {
  const calls: CountedCall[] = [];
  const filter = filterOf({ since: new Date(since * 1000).toISOString(), type: "call" });
  for await (const { record } of readAudit(dir, { filter })) calls.push(countedCall(record));
  const found = [...sumsOf(calls).values()].filter((each) => each.step === step && each.at >= since);
  return found.flatMap(({ at, sums }) =>
    [...sums].flatMap(([subject, sum]) =>
      subjects.some(({ prefix }) => subject.startsWith(prefix)) ? [{ at, subject, sum }] : [],
    ),
  );
}

/** The call whose end a line of the log is; undefined for any other line. */
export function callOfLine(line: string): CountedCall | undefined {
  const record = line.includes('"type":"call"') ? parseLine(line) : undefined;
  return record?.type === "call" ? countedCall(record) : undefined;
}

function countedCall(record: StoredRecord): CountedCall {
  const { time, callId, origin, name, client, role, outcome, kind, findings, isHeld } = record;
  return {
    time,
    callId: text(callId),
    server: text(origin?.source),
    name: text(name),
    client: text(client?.name),
    role: text(role),
    outcome: text(outcome),
    kind: text(kind) ?? "",
    durationMs: Math.max(0, amount(record.durationMs) - amount(record.waitedMs)),
    resultBytes: amount(record.resultBytes),
    isWaiting: isHeld === true,
    findings: Array.isArray(findings) ? findings.flatMap((each) => text(each?.code) ?? []) : [],
  };
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}

/** The members of a line are shown as they are, so somebody may have put anything there. */
function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
