/** Verifies the log in the folder and in the store as one. */
import type { AuditVerdict } from "../../contract/activity.ts";
import type { StoredAudit } from "../../store/store.ts";
import { verifyLog } from "../../telemetry/audit/verify-log.ts";
import { type AuditProblem, type AuditReport, verifyAudit } from "../../telemetry/audit/verify.ts";
import { isConsistent } from "./stored-line.ts";

const ROWS_AT_ONCE = 500;
/** Whoever changed more than that is known to have changed enough. */
const MOST_PROBLEMS = 100;

export async function verifyAll(dir: string, store: StoredAudit | undefined): Promise<AuditReport> {
  if (store === undefined) return verifyAudit(dir);
  const report = await verifyLog(dir, store);
  const broken = new Set(problemsOf(report).flatMap(({ severity, file }) => (severity === "error" ? [file] : [])));
  // A line that was changed is told of already.
  const more = (await misfiled(store)).filter(({ file }) => !broken.has(file));
  return more.length === 0 ? report : { ...report, ok: false, problems: [...report.problems, ...more] };
}

export function verdictOf(report: AuditReport): AuditVerdict {
  return {
    ok: report.ok,
    records: report.chains.reduce((sum, chain) => sum + chain.records, 0),
    chains: report.chains.length,
    problems: problemsOf(report).map(({ severity, what, file, line, message }) => {
      const place = line === 0 ? file : `${file}:${line}`;
      return `${severity === "error" ? what : `warning, ${what}`}: ${place}: ${message}`;
    }),
  };
}

function problemsOf({ problems, chains }: AuditReport): AuditProblem[] {
  return [...problems, ...chains.flatMap((chain) => chain.problems)];
}

/** Rows that a query finds under something else than their line says, or not at all. */
async function misfiled(store: StoredAudit): Promise<AuditProblem[]> {
  const problems: AuditProblem[] = [];
  const files = new Set<string>();
  let cursor: string | undefined;
  do {
    const place = cursor === undefined ? {} : { cursor };
    const page = await store.query({ limit: ROWS_AT_ONCE, order: "oldest", ...place });
    for (const row of page.entries) {
      files.add(row.file);
      if (!isConsistent(row))
        problems.push(problem(row.file, row.seq + 1, "the store files the line under something that it does not say"));
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined && problems.length < MOST_PROBLEMS);
  const listed = new Set((await store.files()).map(({ file }) => file));
  for (const file of files) {
    // What was pruned meanwhile has no lines any more.
    if (listed.has(file) || (await store.linesOf(file)).length === 0) continue;
    problems.push(problem(file, 0, "the store has lines of a file that it did not take in"));
  }
  return problems;
}

function problem(file: string, line: number, message: string): AuditProblem {
  return { severity: "error", what: "changed", file, line, message };
}
