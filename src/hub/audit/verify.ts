/** Verifies the log in the folder and in the store as one. */
import { hostname } from "node:os";
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { Settings, Store, StoredAudit } from "../../store/store.ts";
import { type AuditKeys, NO_KEYS } from "../../telemetry/audit/key.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { isStored } from "../../telemetry/audit/record.ts";
import {
  type AuditProblem,
  type AuditReport,
  type ChainReport,
  verifyAudit,
  type VerifyOptions,
} from "../../telemetry/audit/verify.ts";
import { isConsistent } from "./stored-line.ts";

const ROWS_AT_ONCE = 500;
/** Whoever changed more than that is known to have changed enough. */
const MAX_PROBLEMS = 100;

/** The log of a cluster has chains of all nodes. */
export interface WholeReport extends AuditReport {
  readonly chains: readonly (ChainReport & { readonly node?: string })[];
}

/** The parts of a store that have to do with the log. */
export interface AuditStore {
  readonly audit: StoredAudit;
  /** They know whether anything was ever written in this folder. */
  readonly settings?: Pick<Settings, "get"> | undefined;
  readonly kind?: Store["kind"];
}

/** The setting that says that somebody has written to the log in this folder. */
export function journalKey(dir: string): string {
  return `audit.journal ${hostname()} ${dir}`;
}

/** Whether anything in the store was written in this folder, where that is known. */
export async function hasWrittenHere(
  dir: string,
  { settings, kind }: Omit<AuditStore, "audit">,
): Promise<boolean | undefined> {
  if (settings !== undefined && (await settings.get(journalKey(dir))) !== undefined) return true;
  // Only a store that several machines share may hold a log of which this folder has nothing.
  return kind === "postgres" ? false : undefined;
}

export async function verifyAll(
  dir: string,
  stored: AuditStore | undefined,
  keys: AuditKeys = NO_KEYS,
  onProgress?: VerifyOptions["onProgress"],
): Promise<WholeReport> {
  const wroteHere = stored === undefined ? undefined : await hasWrittenHere(dir, stored);
  return verifyStored(dir, stored?.audit, { keys, wroteHere, onProgress });
}

export async function verifyStored(
  dir: string,
  store: StoredAudit | undefined,
  options: Omit<VerifyOptions, "kept">,
): Promise<WholeReport> {
  const found = await verifyAudit(dir, { ...options, kept: store });
  if (store === undefined) return found;
  const { problems: odd, nodes } = await readRows(store);
  const chains = found.chains.map((chain) => {
    const node = nodes.get(chain.chain);
    return node === undefined ? chain : { ...chain, node };
  });
  const report: WholeReport = { ...found, chains };
  const broken = new Set(problemsOf(report).flatMap(({ severity, file }) => (severity === "error" ? [file] : [])));
  // A line that was changed is told of already.
  const more = odd.filter(({ file }) => !broken.has(file));
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

interface ReadRows {
  /** Of rows that a query finds under something else than their line says, or not at all. */
  readonly problems: readonly AuditProblem[];
  /** By chain, where its records name one. */
  readonly nodes: ReadonlyMap<string, string | undefined>;
}

async function readRows(store: StoredAudit): Promise<ReadRows> {
  const problems: AuditProblem[] = [];
  const nodes = new Map<string, string | undefined>();
  const files = new Set<string>();
  let cursor: string | undefined;
  do {
    const place = cursor === undefined ? {} : { cursor };
    const page = await store.query({ limit: ROWS_AT_ONCE, order: "oldest", ...place });
    for (const row of page.entries) {
      files.add(row.file);
      const record = nodes.has(row.chain) ? undefined : parseLine(row.line);
      // All records of a chain are of one node.
      if (record !== undefined && isStored(record)) nodes.set(row.chain, nodeOf(record));
      if (!isConsistent(row))
        problems.push(problem(row.file, row.seq + 1, "the store files the line under something that it does not say"));
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined && problems.length < MAX_PROBLEMS);
  const listed = new Set((await store.files()).map(({ file }) => file));
  for (const file of files) {
    // What was pruned meanwhile has no lines any more.
    if (listed.has(file) || (await store.linesOf(file)).length === 0) continue;
    problems.push(problem(file, 0, "the store has lines of a file that it did not take in"));
  }
  return { problems, nodes };
}

/** Somebody may have put anything into a line. */
function nodeOf({ node }: { readonly node?: unknown }): string | undefined {
  return typeof node === "string" ? node : undefined;
}

function problem(file: string, line: number, message: string): AuditProblem {
  return { severity: "error", what: "changed", file, line, message };
}
