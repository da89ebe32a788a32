/** All measures of the gateway bench in one table, for people who read only one. */
import type { Figures } from "./measures/figures.ts";
import { number, renderTable } from "./table.ts";

type Pick = "ratio" | "value";

/** Measure, head of the column, and whether the ratio to direct HTTP or the value itself says more. */
const COLUMNS: readonly (readonly [measure: string, head: string, pick: Pick])[] = [
  ["p50-stdio", "p50, stdio", "ratio"],
  ["p50-http", "p50, HTTP", "ratio"],
  ["p99-stdio", "p99, stdio", "ratio"],
  ["throughput-stdio", "calls/s, stdio", "ratio"],
  ["throughput-http", "calls/s, HTTP", "ratio"],
  ["list-stdio", "list of 1,000", "ratio"],
  ["large-x-stdio", "1 MiB of x", "ratio"],
  ["large-prose-stdio", "1 MiB of prose", "ratio"],
  ["large-json-stdio", "1 MiB of JSON", "ratio"],
  ["cpu-stdio", "CPU µs, stdio", "value"],
  ["cpu-http", "CPU µs, HTTP", "value"],
  ["start-1", "start, 1 (ms)", "value"],
  ["start-10", "start, 10 (ms)", "value"],
  ["start-30", "start, 30 (ms)", "value"],
  ["memory", "idle (MB)", "value"],
];

export function renderSummary(figures: readonly Figures[]): string {
  const columns = COLUMNS.flatMap(([measure, head, pick]) => {
    const found = figures.find((one) => one.measure === measure);
    return found === undefined || found.rows.length === 0 ? [] : [{ head, pick, found }];
  });
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
