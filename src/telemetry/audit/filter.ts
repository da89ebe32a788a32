/** Which records somebody wants to see. */
import type { StoredRecord } from "./record.ts";

export interface AuditFilter {
  /** Milliseconds since 1970, compared with the time at which a call began. */
  readonly since?: number;
  readonly until?: number;
  /** On public names. */
  readonly tool?: (name: string) => boolean;
  /** The beginning of a session's id is enough. */
  readonly session?: string;
  readonly server?: string;
  /** The name of the program that called. */
  readonly client?: string;
  /** Only what policy or the guard refused. */
  readonly denied?: boolean;
}

export function matchesFilter(record: StoredRecord, filter: AuditFilter): boolean {
  const time = Date.parse(record.time);
  if (filter.since !== undefined && time < filter.since) return false;
  if (filter.until !== undefined && time > filter.until) return false;
  if (filter.tool !== undefined && (record.name === undefined || !filter.tool(record.name))) return false;
  if (filter.session !== undefined && record.session?.startsWith(filter.session) !== true) return false;
  if (filter.server !== undefined && record.origin?.source !== filter.server) return false;
  if (filter.client !== undefined && record.client?.name !== filter.client) return false;
  return filter.denied !== true || isRefusal(record);
}

export function isRefusal({ decision, outcome, answer }: StoredRecord): boolean {
  if (decision === "deny" || outcome === "denied" || outcome === "blocked") return true;
  return answer === "no" || answer === "timeout";
}
