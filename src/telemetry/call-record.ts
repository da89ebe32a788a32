import type { ClientName } from "../model/client-info.ts";
import type { Decision, Rule } from "../model/decision.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";

/** The record of one finished call. It has sizes, never arguments or results: those are `CallContent`. */
export interface CallRecord {
  readonly callId: string;
  /** ISO time at which it began. */
  readonly time: string;
  readonly session: string;
  readonly door: string;
  readonly role: string | null;
  /** Who is behind the session, where the door knows. */
  readonly user?: string | null;
  /** The program that called, in its own words. */
  readonly client?: ClientName | undefined;
  readonly kind: string;
  /** The public name as it was asked for. */
  readonly name: string;
  readonly origin: { readonly source: string; readonly name: string } | null;
  readonly decision: Decision["verdict"] | "none";
  readonly rule: Rule | null;
  readonly outcome: "ok" | ErrorCode;
  readonly durationMs: number;
  /** How much of it the call waited for approval; absent if it did not. */
  readonly waitedMs?: number;
  /** It was held for a later approval: `denied` for now, and to be made again. */
  readonly isHeld?: true;
  readonly resultBytes: number;
  /** Findings of the guard in the result, without the text. */
  readonly findings?: readonly (Pick<Finding, "code" | "severity"> & Partial<Pick<Finding, "place" | "score">>)[];
  /** Forged boundary markers in the result that were replaced; absent if there were none. */
  readonly forgedMarkers?: number;
  /** Notes of hooks. */
  readonly notes: Readonly<Record<string, unknown>>;
}

/** The record of a call that begins: written before anything is sent, so that a process that dies leaves a trace. */
export type StartRecord = Omit<
  CallRecord,
  "outcome" | "durationMs" | "waitedMs" | "isHeld" | "resultBytes" | "findings" | "forgedMarkers" | "notes"
>;

/** The arguments and the result of a call. Not part of the record, because listeners see a record as it is. */
export interface CallContent {
  readonly arguments: unknown;
  /** The result, or the error of a call without one; only where the sink keeps it. */
  readonly result?: unknown;
}

/** Takes every record. Must not throw or reject: it runs at the beginning and at the end of each call. */
export interface AuditSink {
  /** Right before a call reaches its source, which waits until the record is on the disk's way. */
  begin?(record: StartRecord, content?: CallContent): Promise<void> | undefined;
  /** Whether it keeps results of this source; null for a call that reached none. */
  keepsResults?(source: string | null): boolean;
  /** A call that began will have no record, because a hook withholds it. */
  withhold?(callId: string): void;
  /** The answer to the call waits until its record is on the disk's way too. */
  write(record: CallRecord, content?: CallContent): Promise<void> | undefined | void;
  /** How many records could not be written. */
  readonly lost?: number;
}
