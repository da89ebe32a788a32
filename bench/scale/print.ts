/** The scale bench as tables. */
import { count, number, renderTable } from "../table.ts";
import type { FailoverRow } from "./failover.ts";
import type { NodesFigures } from "./nodes.ts";
import type { ServersFigures } from "./servers.ts";
import type { SessionsRow } from "./sessions.ts";

export interface ScaleReport {
  readonly nodes?: NodesFigures;
  readonly failover?: readonly FailoverRow[];
  readonly sessions?: readonly SessionsRow[];
  readonly processes?: ServersFigures;
  readonly catalog?: ServersFigures;
  /** Why a measure is not there, by its name. */
  readonly failures: Readonly<Record<string, string>>;
}

const FAULT_WORDS = {
  stop: "ends in order (SIGTERM)",
  kill: "killed (SIGKILL)",
  pause: "frozen, with its servers",
  cut: "no network to NATS",
} as const;

export function renderScale(report: ScaleReport): string {
  const parts = [
    report.nodes && renderNodes(report.nodes),
    report.failover && renderFailover(report.failover),
    report.sessions && renderSessions(report.sessions),
    renderServers([report.processes, report.catalog].filter((figures) => figures !== undefined)),
    ...Object.entries(report.failures).map(([measure, reason]) => `Not measured: ${measure}: ${reason}`),
  ];
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

function renderNodes({ share, rows }: NodesFigures): string {
  const limit = share === undefined ? "the machine shared by all" : `${Math.round(share * 100)} % of a processor each`;
  return renderTable(
    [`Calls, 32 in flight, ${limit}`, "calls/s", "× one node", "quartiles", "CPU ms/call"],
    rows.map(({ what, upstream, callsPerSecond, ratio, cpuMsPerCall }) => [
      `${what}, ${upstream} server`,
      number(callsPerSecond),
      number(ratio.median),
      `${number(ratio.low)}–${number(ratio.high)}`,
      number(cpuMsPerCall),
    ]),
  );
}

function renderFailover(rows: readonly FailoverRow[]): string {
  return renderTable(
    ["The node of a server …", "s until it answers", "worst s", "answered", "failed", "lost", "doubled"],
    rows.map(({ fault, ms, worstMs, answered, failed, lost, doubled }) => [
      FAULT_WORDS[fault],
      number(ms.median / 1000),
      number(worstMs / 1000),
      count(answered),
      count(failed),
      count(lost),
      count(doubled),
    ]),
  );
}

function renderSessions(rows: readonly SessionsRow[]): string {
  return renderTable(
    ["Idle clients", "from", "to", "MB per 1,000", "opened/s"],
    rows.map(({ what, points, mbPerThousand, openedPerSecond }) => [
      what,
      count(points[0]?.count ?? 0),
      count(points.at(-1)?.count ?? 0),
      number(mbPerThousand),
      number(openedPerSecond),
    ]),
  );
}

function renderServers(rows: readonly ServersFigures[]): string {
  if (rows.length === 0) return "";
  return renderTable(
    ["One node with", "ready s", "node MB", "server MB", "list all ms", "list of 50 ms", "search ms", "call ms"],
    rows.map((row) => [
      `${count(row.servers)} servers${row.serverMb === undefined ? "" : " (processes)"}, ${count(row.servers * row.tools)} tools`,
      number(row.readySeconds),
      number(row.nodeMb),
      row.serverMb === undefined ? "–" : number(row.serverMb),
      number(row.listMs.p50),
      number(row.offeredMs.p50),
      number(row.searchMs.p50),
      number(row.callMs.p50),
    ]),
  );
}
