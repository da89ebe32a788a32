/**
 * The tables as Kysely sees them; in the database their names and columns are in snake case. JSON is text on both
 * databases, so that it comes back as it was written, and a yes or no is 1 or 0.
 */
import type { ApprovalStatus, ChangedTopic, StoredPin } from "./store.ts";

export interface Tables {
  servers: {
    id: string;
    entry: string;
    source: string;
    /** What the entry says, for people who look with SQL. */
    enabled: number;
    autoConnect: number;
    createdAt: string;
    updatedAt: string;
    revision: number;
  };
  skills: { id: string; manifest: string };
  pins: {
    scope: string;
    server: string;
    kind: StoredPin["kind"];
    tool: string;
    fingerprint: string;
    definition: string;
    pinnedAt: string;
  };
  approvals: {
    id: string;
    hub: string;
    status: ApprovalStatus;
    request: string;
    askedAt: string;
    answer: string | null;
    answeredAt: string | null;
    answeredBy: string | null;
  };
  sessions: {
    id: string;
    hub: string;
    door: string;
    role: string | null;
    user: string | null;
    owner: number;
    openedAt: string;
    closedAt: string | null;
    lastCallAt: string | null;
    calls: number;
    taint: string | null;
  };
  audit: {
    file: string;
    seq: number;
    chain: string;
    line: string;
    type: string;
    time: string;
    callId: string | null;
    session: string | null;
    user: string | null;
    role: string | null;
    door: string | null;
    name: string | null;
    server: string | null;
    outcome: string | null;
    event: string | null;
  };
  /** Sums over `audit`, kept so that nobody has to read all of it. */
  auditFiles: {
    file: string;
    chain: string;
    bytes: number;
    lines: number;
    lastSeq: number;
    firstTime: string;
    lastTime: string;
  };
  sealedValues: { name: string; nonce: string; ciphertext: string; tag: string; keyId: string; updatedAt: string };
  conversations: {
    id: string;
    title: string | null;
    door: string;
    cwd: string | null;
    user: string | null;
    createdAt: string;
    updatedAt: string;
    facts: string;
  };
  /** `seq` counts from 0 in each conversation, without gaps. */
  conversationMessages: { conversation: string; seq: number; message: string };
  settings: { key: string; value: string };
  /** What was taken of a limit in one span of time, and what the last who took got. */
  limitSpans: { key: string; span: number; used: number; given: number };
  /** Files of imported skills by the digest of their content, as base64. */
  skillFiles: { digest: string; content: string; addedAt: string };
  outbox: { revision: number; topic: ChangedTopic; subject: string; writer: string; writtenAt: string };
  /** The revision of the last change of skills, and of each scope of pins; outlives the outbox. */
  stamps: { topic: ChangedTopic; subject: string; revision: number };
  /** One row: the revision of the last change. */
  counter: { id: number; value: number };
  migrations: { version: number; name: string; appliedAt: string };
}

/** Every table but `migrations`, what holds for a minute only and what is in the homes too, in the order in which a copy is written. */
export const COPIED_TABLES = [
  "servers",
  "skills",
  "pins",
  "approvals",
  "sessions",
  "audit",
  "auditFiles",
  "sealedValues",
  "conversations",
  "conversationMessages",
  "settings",
  "outbox",
  "stamps",
  "counter",
] as const satisfies readonly (keyof Tables)[];

/** How many rows a copy holds in memory at once: few where one may have images in it. */
export function rowsAtOnce(table: (typeof COPIED_TABLES)[number]): number {
  return table === "conversationMessages" ? 16 : 500;
}
