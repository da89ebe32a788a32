/** Verifies the log in the folder and in the store as one. */
import { hostname } from "node:os";
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { Settings, Store, StoredAudit } from "../../store/store.ts";
import { type AuditKeys, NO_KEYS } from "../../telemetry/audit/key.ts";
import { type AuditReport, verifyAudit, type VerifyOptions } from "../../telemetry/audit/verify.ts";

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
): Promise<AuditReport> {
  const wroteHere = stored === undefined ? undefined : await hasWrittenHere(dir, stored);
  return verifyAudit(dir, { keys, wroteHere, onProgress, kept: stored?.audit });
}

export function verdictOf({ ok, problems, chains }: AuditReport): AuditVerdict {
  return {
    ok,
    records: chains.reduce((sum, chain) => sum + chain.records, 0),
    chains: chains.length,
    problems: [...problems, ...chains.flatMap((chain) => chain.problems)].map(
      ({ severity, what, file, line, message }) => {
        const place = line === 0 ? file : `${file}:${line}`;
        return `${severity === "error" ? what : `warning, ${what}`}: ${place}: ${message}`;
      },
    ),
  };
}
