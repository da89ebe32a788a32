import type { Decision, Rule } from "../model/decision.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";

/** What is known of one finished Call. Holds sizes, never arguments or results. */
export interface CallRecord {
  readonly callId: string;
  /** ISO time at which it began. */
  readonly time: string;
  readonly session: string;
  readonly door: string;
  readonly role: string | null;
  /** Who is behind the session, where the door knows. */
  readonly user?: string | null;
  readonly kind: string;
  /** The public name as it was asked for. */
  readonly name: string;
  readonly origin: { readonly source: string; readonly name: string } | null;
  readonly decision: Decision["verdict"] | "none";
  readonly rule: Rule | null;
  readonly outcome: "ok" | ErrorCode;
  readonly durationMs: number;
  readonly resultBytes: number;
  /** What the guard found in the result; without the text it was found in. */
  readonly findings?: readonly Pick<Finding, "code" | "severity">[];
  /** What hooks added. */
  readonly notes: Readonly<Record<string, unknown>>;
}

/** What is known of a Call when it begins: written before anything is sent, so that a process that dies leaves a trace. */
export type StartRecord = Omit<CallRecord, "outcome" | "durationMs" | "resultBytes" | "findings" | "notes">;

/** What went to the tool. Beside the record and not in it, because a record is shown to listeners as it is. */
export interface SentArguments {
  readonly arguments: unknown;
}

/** Takes every record. Must not throw or reject: it runs at the beginning and at the end of each call. */
export interface AuditSink {
  /** Right before a call reaches its source, which waits until the record is on the disk's way. */
  begin?(record: StartRecord, sent?: SentArguments): Promise<void> | undefined;
  /** A call that began will have no record, because somebody with the right to do so keeps it back. */
  withhold?(callId: string): void;
  write(record: CallRecord, sent?: SentArguments): void;
  /** How many records could not be written. */
  readonly lost?: number;
}
