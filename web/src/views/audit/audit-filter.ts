/** The filters of the audit log, as they stand in the address and as the hub takes them. */
import type { InputOf } from "../../../../src/contract/operations.ts";
import { audit } from "../../messages/audit.ts";
import type { Message } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";

export const FILTER_KEYS = [
  "q",
  "type",
  "outcome",
  "since",
  "until",
  "server",
  "name",
  "user",
  "client",
  "door",
  "session",
  "callId",
] as const;

type FilterKey = (typeof FILTER_KEYS)[number];
export type AuditFilter = Readonly<Partial<Record<FilterKey, string | undefined>>>;
export type AuditInput = Omit<InputOf<"listAudit">, "limit" | "cursor" | "order">;

export const NO_FILTER: AuditFilter = Object.fromEntries(FILTER_KEYS.map((key) => [key, undefined]));

/** Those that have no place in the first row. */
const FURTHER: readonly FilterKey[] = ["server", "name", "user", "client", "door", "until"];

export const TYPES = [
  ["call", traffic.calls],
  ["start", audit.unfinished],
  ["decision", audit.decisions],
  ["event", audit.events],
] as const;

/** As the hub writes them. */
export const OUTCOMES = [
  "ok",
  "denied",
  "blocked",
  "tool_error",
  "timeout",
  "cancelled",
  "rate_limited",
  "server_unavailable",
  "invalid_arguments",
  "not_found",
  "too_large",
  "internal",
] as const;

export const SPANS: readonly (readonly [value: string, word: Message])[] = [
  ["15m", audit.last15Minutes],
  ["1h", audit.lastHour],
  ["24h", audit.lastDay],
  ["7d", audit.lastWeek],
  ["30d", audit.lastMonth],
];

/** In the choice of times: the exact ones further down hold. */
export const EXACT = "exact";

export function spanOf({ since }: AuditFilter): string {
  if (since === undefined) return "";
  return SPANS.some(([value]) => value === since) ? since : EXACT;
}

/** The query for the hub. An unknown type is left out: the address may be old. */
export function inputOf(filter: AuditFilter): AuditInput {
  const type = TYPES.find(([value]) => value === filter.type)?.[0];
  const input: Record<string, string> = {};
  for (const key of FILTER_KEYS) {
    const value = filter[key]?.trim();
    if (key !== "type" && value !== undefined && value !== "") input[key] = value;
  }
  return { ...input, ...(type === undefined ? {} : { type }) };
}

export function isFiltered(filter: AuditFilter): boolean {
  return Object.keys(inputOf(filter)).length > 0;
}

/** How many filters hold that are not in sight while the second row is folded. */
export function furtherCount(filter: AuditFilter): number {
  const set = FURTHER.filter((key) => filter[key] !== undefined).length;
  return set + (spanOf(filter) === EXACT ? 1 : 0);
}

const two = (value: number): string => String(value).padStart(2, "0");

/** A time of the address as an input of local date and time takes it; nothing for a span. */
export function localTime(text: string | undefined): string {
  const date = new Date(text === undefined || /^\d+[smhdw]$/.test(text) ? Number.NaN : text);
  if (Number.isNaN(date.getTime())) return "";
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function isoTime(local: string): string | undefined {
  const date = new Date(local);
  return local === "" || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
