/** One record of the log as it is given out: the record itself with its chain, so that it can be found again. */
import type { AuditEntry } from "../../contract/activity-schemas.ts";
import type { StoredRecord } from "../../telemetry/audit/record.ts";

export function entryOf(chain: string, { origin, ...record }: StoredRecord): AuditEntry {
  return { ...record, ...(origin === undefined ? {} : { origin }), chain };
}
