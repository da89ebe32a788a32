import type { ErrorCode } from "../model/errors.ts";
import type { Rule } from "../model/decision.ts";

/** What is known of one finished Call. Holds sizes, never arguments or results. */
export interface CallRecord {
  readonly callId: string;
  /** ISO time at which it began. */
  readonly time: string;
  readonly session: string;
  readonly door: string;
  readonly role: string | null;
  readonly kind: string;
  /** The public name as it was asked for. */
  readonly name: string;
  readonly origin: { readonly source: string; readonly name: string } | null;
  readonly decision: "allow" | "deny" | "none";
  readonly rule: Rule | null;
  readonly outcome: "ok" | ErrorCode;
  readonly durationMs: number;
  readonly resultBytes: number;
  /** What hooks added. */
  readonly notes: Readonly<Record<string, unknown>>;
}

/** Takes every record. Must not throw and must not wait: it runs at the end of each call. */
export interface AuditSink {
  write(record: CallRecord): void;
}
