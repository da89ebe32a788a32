/** What one line of the audit log is. */
import type { Decision } from "../../model/decision.ts";
import type { CallRecord } from "../call-record.ts";

/** A decision that is no part of a call's own record: an answer to an `ask`, a refusal before there was a call. */
export interface DecisionRecord
  extends
    Pick<CallRecord, "time" | "door" | "user" | "client" | "kind" | "name" | "origin" | "rule">,
    Partial<Pick<CallRecord, "role" | "callId">> {
  readonly session: string | null;
  /** `withdrawn`: whoever asked went away, so nobody decided. */
  readonly decision: Decision["verdict"] | "withdrawn";
  /** What was answered to an `ask`: once, session, always, no, timeout, withdrawn. */
  readonly answer?: string;
  /** The user who answered, and the door through which; null where that is not known. */
  readonly answeredBy?: string | null;
  readonly answeredThrough?: string | null;
}

/** Something else worth keeping: a pin approved, a definition changed, records lost. Its time is now if absent. */
export interface EventRecord extends Partial<
  Pick<DecisionRecord, "time" | "door" | "session" | "user" | "origin" | "name" | "callId">
> {
  /** Dotted, such as `pin.approved`. */
  readonly event: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The event of a call that began and whose record a hook kept back. */
export const WITHHELD = "call.withheld";

/** The outcome that readers see of a call which began and has no end; in the log nothing stands for it. */
export const UNFINISHED = "unfinished";

/** `heads.json` was not as a process of this log had left it; `details.what` says how. */
export const HEADS_LOST = "audit.heads_lost";
/** A key was used for the first time: what is older is plain. */
export const KEYED = "audit.keyed";

/** Where a record stands in its chain. */
interface Link {
  readonly seq: number;
  /** Hash of the record before; null for the first of a chain. */
  readonly prev: string | null;
  readonly hash: string;
}

type Ended = Partial<Omit<CallRecord, keyof DecisionRecord | "outcome" | "forgedMarkers">>;
type Answered = Partial<Omit<DecisionRecord, "time" | "decision">>;

/** A record as it is read back. Fields that a kind of record does not have are absent, as are some in records of older versions. */
export interface StoredRecord extends Link, Ended, Answered, Pick<EventRecord, "details"> {
  /** start: a call that began. Readers see it only where its end is missing. */
  readonly type: "start" | "call" | "decision" | "event";
  readonly time: string;
  /** Of a cluster: the node that wrote it. */
  readonly node?: string;
  readonly decision?: DecisionRecord["decision"] | CallRecord["decision"];
  /** unfinished: the call began and nothing says how it ended. */
  readonly outcome?: CallRecord["outcome"] | typeof UNFINISHED;
  readonly argumentBytes?: number;
  readonly argumentsHash?: string | null;
  /** JSON, redacted, cut at 4 KiB; only with `audit.arguments`, or while they are recorded. */
  readonly arguments?: string;
  /** JSON of the result or the error, redacted, cut at 16 KiB; only with `audit.results`, or while they are recorded. */
  readonly result?: string;
  readonly event?: string;
}

/** The last record of a file as another chain saw it. */
export interface SeenFile {
  readonly file: string;
  readonly seq: number;
  readonly hash: string;
}

/** First line of every file. */
export interface HeaderRecord extends Link {
  readonly type: "header";
  readonly time: string;
  readonly chain: string;
  /** Which file of the chain, from 0. */
  readonly part: number;
  readonly process: { readonly pid: number; readonly host: string };
  readonly version: string;
  readonly salt: string;
  /** The id of the key that the lines of the chain are keyed with; absent for a plain chain. */
  readonly key?: string;
  /** The newest files of other chains, so that cutting or removing them shows here. */
  readonly seen: readonly SeenFile[];
}

/** Lines of the log itself: how files begin, end and go. */
type ChainRecord =
  | HeaderRecord
  | (Link & { readonly type: "rotated" | "closed"; readonly time: string })
  | (Link & { readonly type: "pruned"; readonly time: string; readonly files: readonly SeenFile[] });

export type AnyRecord = StoredRecord | ChainRecord;

export function isStored(record: AnyRecord): record is StoredRecord {
  return isStoredType(record.type);
}

/** Whether records of this type are about something else than the log itself. */
export function isStoredType(type: string): boolean {
  return STORED.has(type);
}

const STORED: ReadonlySet<string> = new Set(["start", "call", "decision", "event"]);
