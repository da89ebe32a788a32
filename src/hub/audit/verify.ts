/** Verifies the log in the folder and in the store as one. */
import { hostname } from "node:os";
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { Store } from "../../store/store.ts";
import { type AuditKeys, NO_KEYS } from "../../telemetry/audit/key.ts";
import { type AuditReport, verifyAudit, type VerifyOptions } from "../../telemetry/audit/verify.ts";

/** The parts of a store that have to do with the log. The settings know whether anything was ever written in this folder. */
export type AuditStore = Pick<Store, "audit" | "settings" | "kind">;

/** The setting that says that somebody has written to the log in this folder. */
export function journalKey(dir: string): string {
  return `audit.journal ${hostname()} ${dir}`;
}

/** Whether anything in the store was written in this folder, where that is known. */
export async function hasWrittenHere(
  dir: string,
  store: Omit<AuditStore, "audit"> | undefined,
): Promise<boolean | undefined> {
  if ((await store?.settings.get(journalKey(dir))) !== undefined) return true;
  // Only a store that several machines share may hold a log of which this folder has nothing.
  return store?.kind === "postgres" ? false : undefined;
}

export async function verifyAll(
  dir: string,
  stored: AuditStore | undefined,
  keys: AuditKeys = NO_KEYS,
  onProgress?: VerifyOptions["onProgress"],
): Promise<AuditReport> {
  const wroteHere = await hasWrittenHere(dir, stored);
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
