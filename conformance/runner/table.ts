/** What a run found, for people. */
import type { Tally } from "./checks.ts";
import type { ClientOutcome } from "./client-part.ts";
import { regressionsOf, rowsOf, type ServerReport } from "./server-part.ts";

export function serverTable(report: ServerReport): string {
  const header = ["scenario", "direct", ...report.through.map(({ name }) => `via ${name}`)];
  const rows = rowsOf(report).map(({ scenario, cells }) => [scenario, ...cells.map(cellOf)]);
  const totals = ["", ...columnTotals(report).map(cellOf)];
  return aligned([header, ...rows, totals]);
}

export function differenceLines({ through }: ServerReport): string[] {
  return through.flatMap(({ name, differences }) =>
    differences.map(({ scenario, check, direct, through: instead, message, reason }) => {
      const what = `via ${name}: ${scenario}: ${check}: ${instead} instead of ${direct}`;
      return reason === undefined ? `REGRESSION ${what} ${message}` : `accepted ${what}: ${reason}`;
    }),
  );
}

export function regressionCount({ through }: ServerReport): number {
  return through.reduce((sum, each) => sum + regressionsOf(each).length, 0);
}

export function clientLine({ scenario, verdict, reason, ...counted }: ClientOutcome): string {
  const why = reason === undefined ? "" : verdict === "stale" ? " (passes: take it out of the list)" : `: ${reason}`;
  return `${scenario}  ${cellOf(counted)}  ${verdict}${why}`;
}

function columnTotals(report: ServerReport): Tally[] {
  const rows = rowsOf(report);
  const columns = rows[0]?.cells.length ?? 0;
  return Array.from({ length: columns }, (_, column) =>
    rows.reduce<Tally>(
      (sum, { cells }) => ({
        passed: sum.passed + (cells[column]?.passed ?? 0),
        failed: sum.failed + (cells[column]?.failed ?? 0),
      }),
      { passed: 0, failed: 0 },
    ),
  );
}

function cellOf({ passed, failed }: Tally): string {
  return failed === 0 ? `${passed}` : `${passed}, ${failed} failed`;
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
