/** Audit records as table rows and as lines. */
import { formatBytes } from "../../model/content.ts";
import { isRefusal } from "../../telemetry/audit/filter.ts";
import type { AuditEntry } from "../../telemetry/audit/read.ts";
import type { StoredRecord } from "../../telemetry/audit/record.ts";
import type { Output } from "../output.ts";
import { type Column, renderTable } from "../table.ts";

const SESSION_LENGTH = 8;

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "TIME", cell: ({ record }) => record.time },
  { title: "SESSION", cell: ({ record }) => (record.session ?? "-").slice(0, SESSION_LENGTH) },
  { title: "ROLE", cell: ({ record }) => record.role ?? "-" },
  { title: "DOOR", cell: ({ record }) => record.door ?? "-" },
  { title: "NAME", cell: ({ record }) => nameOf(record) },
  { title: "DECISION", cell: ({ record }) => decisionOf(record) },
  { title: "OUTCOME", cell: ({ record }) => record.outcome ?? record.answer ?? "-" },
  { title: "TIME TAKEN", cell: ({ record }) => (record.durationMs === undefined ? "-" : `${record.durationMs} ms`) },
  { title: "RESULT", cell: ({ record }) => (record.resultBytes === undefined ? "-" : formatBytes(record.resultBytes)) },
  { title: "WHY", cell: ({ record }) => whyOf(record), shrink: true },
];

/** With the chain, so that a record can be found again in its file. */
export function jsonOf({ chain, record }: AuditEntry): object {
  return { ...record, chain };
}

export function showTable(out: Output, entries: readonly AuditEntry[]): void {
  out.table(COLUMNS, entries);
}

/** A row by itself, while following: the widths of rows to come are not known. */
export function lineOf(entry: AuditEntry): string {
  return renderTable(COLUMNS, [entry]).slice(1).join("");
}

function nameOf({ type, name, event, origin }: StoredRecord): string {
  if (type !== "event") return name ?? "-";
  const about = name ?? (origin === undefined || origin === null ? undefined : originText(origin));
  return about === undefined ? (event ?? "-") : `${event ?? "-"} ${about}`;
}

/** What is about a server as a whole has its id twice. */
function originText({ source, name }: NonNullable<StoredRecord["origin"]>): string {
  return source === name ? source : `${source} ${name}`;
}

function decisionOf({ decision }: StoredRecord): string {
  return decision === undefined || decision === "none" ? "-" : decision;
}

function whyOf(record: StoredRecord): string {
  const reasons: string[] = [];
  if (record.rule !== undefined && record.rule !== null && (isRefusal(record) || record.decision === "ask")) {
    reasons.push(`${record.rule.list} "${record.rule.pattern}" in ${record.rule.where}`);
  }
  const findings = new Set((record.findings ?? []).map(({ code, severity }) => `${code} (${severity})`));
  if (findings.size > 0) reasons.push([...findings].join(", "));
  if (record.details !== undefined) reasons.push(JSON.stringify(record.details));
  return reasons.join("; ");
}
