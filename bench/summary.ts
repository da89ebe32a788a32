/** All measures of the gateway bench in one table, for people who read only one. */
import type { Figures } from "./measures/figures.ts";
import { number, renderTable } from "./table.ts";

type Pick = "ratio" | "value";

/** Measure, head of the column, and whether the ratio to direct HTTP or the value itself says more. */
const COLUMNS: readonly (readonly [measure: string, head: string, pick: Pick])[] = [
  ["p50-stdio", "p50, stdio", "ratio"],
  ["p50-http", "p50, HTTP", "ratio"],
  ["p99-stdio", "p99, stdio", "ratio"],
  ["tail-stdio", "p99, stdio (× own p50)", "value"],
  ["tail-http", "p99, HTTP (× own p50)", "value"],
  ["throughput-stdio", "calls/s at 32, stdio", "ratio"],
  ["throughput-http", "calls/s at 32, HTTP", "ratio"],
  ["cpu1-stdio", "CPU µs, one at a time, stdio", "value"],
  ["cpu32-stdio", "CPU µs, 32 in flight, stdio", "value"],
  ["cpu1-http", "CPU µs, one at a time, HTTP", "value"],
  ["cpu32-http", "CPU µs, 32 in flight, HTTP", "value"],
  ["loop-stdio", "event-loop delay p99 at 32, stdio (ms)", "value"],
  ["list-stdio", "list of 1,000", "ratio"],
  ["large-x-stdio", "1 MiB of x", "ratio"],
  ["large-prose-stdio", "1 MiB of prose", "ratio"],
  ["large-json-stdio", "1 MiB of JSON", "ratio"],
  ["beside-stdio", "p99 of small calls beside 1 MiB results (× alone)", "value"],
  ["start-1", "start, 1 (ms)", "value"],
  ["start-10", "start, 10 (ms)", "value"],
  ["start-30", "start, 30 (ms)", "value"],
  ["memory-started", "3 s after the list of 10 servers (MB)", "value"],
  ["memory", "idle with 10 servers (MB)", "value"],
];

/** The same for what a call costs in a cluster. */
const CLUSTER_COLUMNS: typeof COLUMNS = [
  ["p50-cluster", "p50", "ratio"],
  ["p99-cluster", "p99", "ratio"],
  ["throughput-cluster", "calls/s at 32", "ratio"],
  ["cpu1-cluster", "CPU µs of all nodes, one at a time", "value"],
  ["cpu32-cluster", "CPU µs of all nodes, 32 in flight", "value"],
];

export function renderSummary(figures: readonly Figures[]): string {
  return [COLUMNS, CLUSTER_COLUMNS]
    .map((columns) => renderColumns(figures, columns))
    .filter((table) => table !== "")
    .join("\n\n");
}

function renderColumns(figures: readonly Figures[], wanted: typeof COLUMNS): string {
  const columns = wanted.flatMap(([measure, head, pick]) => {
    const found = figures.find((one) => one.measure === measure);
    return found === undefined || found.rows.length === 0 ? [] : [{ head, pick, found }];
  });
  if (columns.length === 0) return "";
  const subjects = new Set(columns.flatMap(({ found }) => found.rows.map(({ subject }) => subject)));
  // Measures are rows: there are more of them than subjects.
  const rows = columns.map(({ head, pick, found }) => [head, ...[...subjects].map((name) => cell(found, name, pick))]);
  return renderTable(["× direct HTTP, unless a unit is given", ...subjects], rows);
}

function cell(figures: Figures, subject: string, pick: Pick): string {
  const row = figures.rows.find((one) => one.subject === subject);
  const value = pick === "ratio" ? row?.ratio?.median : row?.value.median;
  return value === undefined ? "–" : number(value);
}
