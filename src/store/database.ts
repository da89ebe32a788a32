/** The tables, and what the store needs of a database beyond Kysely: one object for SQLite, one for PostgreSQL. */
import type { Expression, Insertable, Kysely, Selectable, Transaction } from "kysely";
import type { AuditText, KeptFile } from "../model/audit-blocks.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type {
  ChangedTopic,
  SealedValue,
  StoreAddress,
  StoredApproval,
  StoredConversation,
  StoredList,
  StoredPin,
  StoredServer,
  StoredSession,
  StoredTaint,
} from "./store.ts";

export type TableName = (typeof COPIED_TABLES)[number];
export type TableRow<Name extends TableName> = Selectable<Tables[Name]>;

export interface DatabaseEngine {
  readonly kind: "sqlite" | "postgres";
  /** A path or an address without its password, for messages. */
  readonly place: string;
  readonly address: StoreAddress;
  /** Why it cannot be reached, by its last response. Absent if it always can. */
  readonly trouble?: string | undefined;
  readonly db: Kysely<Tables>;
  readonly types: ColumnTypes;
  /** Holds off other processes that migrate, until the transaction ends. */
  lockMigrations(trx: Transaction<Tables>): Promise<void>;
  /** Holds off other transactions that lock the same name, in whichever process, until this one ends. */
  lock(trx: Transaction<Tables>, name: string): Promise<void>;
  /** After a migration, inside its transaction. */
  markVersion(trx: Transaction<Tables>, version: number): Promise<void>;
  /** Tells other processes, when the transaction is committed. */
  announce(trx: Transaction<Tables>, revision: number): Promise<void>;
  /** Calls back whenever another process may have changed something. */
  watch(look: () => void): () => void;
  /** Every row of a table, some at a time; inside a transaction. */
  readTable<Name extends TableName>(trx: Kysely<Tables>, table: Name): AsyncIterable<TableRow<Name>[]>;
  /** The whole database as one new SQLite file. */
  copyTo(file: string): Promise<void>;
  /** After much was removed; absent where the database sees to it by itself. */
  giveBackSpace?(): Promise<void>;
  /** Ends statements in progress and refuses new ones, for a database that does not answer; absent if it always does. */
  giveUp?(): void;
  close(): Promise<void>;
}

/** Column types that databases name differently. */
export interface ColumnTypes {
  /** Compared and ordered byte by byte, so that both databases agree. */
  readonly text: Expression<unknown>;
  /** Whole numbers up to 2^53. */
  readonly integer: Expression<unknown>;
}

/** A step from one version of the tables to the next, the same on every database. */
export interface Migration {
  /** 1, 2, 3 …; never reused, and a migration that was released is never changed. */
  readonly version: number;
  readonly name: string;
  /** Runs in a transaction. Column names are in snake case here. */
  up(db: Kysely<unknown>, types: ColumnTypes): Promise<void>;
}

/**
 * The tables as Kysely sees them; in the database their names and columns are in snake case. JSON is text on both
 * databases, so that it comes back as it was written, and a yes or no is 1 or 0.
 */
export interface Tables {
  /** `enabled` and `autoConnect` are copied from the entry, for people who use SQL. */
  servers: Row<StoredServer, "entry"> & { enabled: number; autoConnect: number };
  skills: { id: string; manifest: string };
  pins: Row<StoredPin, "definition"> & { scope: string };
  /** Only what can be learned again. */
  serverLists: StoredList & { seenAt: string };
  approvals: Row<StoredApproval, "request">;
  sessions: Row<Omit<StoredSession, "owner">, "taint" | "client"> & { owner: number };
  auditBlocks: AuditText;
  /** How much of each file was taken in. The calls in the first `summed` lines are counted. */
  auditFiles: KeptFile & { summed: number };
  /** Sums over the calls in `auditBlocks`, of each step of time and subject. */
  callSums: { step: number; at: number; subject: string; sums: string };
  sealedValues: SealedValue;
  conversations: Row<StoredConversation, "facts">;
  /** `seq` counts from 0 in each conversation, without gaps. */
  conversationMessages: { conversation: string; seq: number; message: string };
  taints: Row<StoredTaint, "origins">;
  settings: { key: string; value: string };
  /** The use of a limit in one span of time, and what was granted last. */
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

/** An entry of the store as a row of its table. */
type Row<Entry, Json extends keyof Entry> = Omit<Entry, Json> & {
  readonly [Column in Json]: string | Extract<Entry[Column], null>;
};

/** In the order in which a copy is written. Without `migrations`, short-lived rows, what is learned again, and copies of files of the homes. */
export const COPIED_TABLES = [
  "servers",
  "skills",
  "pins",
  "approvals",
  "sessions",
  "auditBlocks",
  "auditFiles",
  "callSums",
  "sealedValues",
  "conversations",
  "conversationMessages",
  "taints",
  "settings",
  "outbox",
  "stamps",
  "counter",
] as const satisfies readonly (keyof Tables)[];

/** How many rows are copied at once: few where one may contain images, or hundreds of lines. */
export function rowsAtOnce(table: (typeof COPIED_TABLES)[number]): number {
  return table === "conversationMessages" || table === "auditBlocks" ? 16 : 500;
}

/** All rows of one database into another. Both inside transactions; `to` loses what it had. */
export async function copyTables(
  read: DatabaseEngine["readTable"],
  from: Kysely<Tables>,
  to: Kysely<Tables>,
): Promise<void> {
  for (const table of COPIED_TABLES) {
    await to.deleteFrom(table).execute();
    for await (const rows of read(from, table)) {
      await to.insertInto(table).values(rows).execute();
    }
  }
}

/** A JSON column as an object; anything else counts as empty. */
export function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Databases take a limited number of values with one statement: SQLite 32,766, PostgreSQL 65,535. */
const ROWS_AT_ONCE = 500;

export function* chunks<Entry>(entries: readonly Entry[], size = ROWS_AT_ONCE): Generator<Entry[]> {
  for (let start = 0; start < entries.length; start += size) yield entries.slice(start, start + size);
}

/** Inserts the rows; those whose key is there already are replaced. */
export async function upsert<Name extends keyof Tables>(
  db: Kysely<Tables>,
  table: Name,
  key: readonly (keyof Tables[Name] & string)[],
  rows: readonly Insertable<Tables[Name]>[],
): Promise<void> {
  // Which columns a table has is known only to the caller's types.
  const untyped = db as unknown as Kysely<Record<string, Record<string, unknown>>>;
  const columns = Object.keys(rows[0] ?? {}).filter((column) => !key.some((each) => each === column));
  for (const some of chunks(rows)) {
    await untyped
      .insertInto<string>(table)
      .values(some)
      .onConflict((conflict) =>
        conflict
          .columns([...key])
          .doUpdateSet((eb) => Object.fromEntries(columns.map((column) => [column, eb.ref(`excluded.${column}`)]))),
      )
      .execute();
  }
}
