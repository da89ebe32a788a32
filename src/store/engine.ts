/** What the store needs of a database beyond Kysely: one object for SQLite, one for PostgreSQL. */
import type { Expression, Kysely, RawBuilder, Selectable, SqlBool, Transaction } from "kysely";
import type { ColumnTypes } from "./migrations/migration.ts";
import type { COPIED_TABLES, Tables } from "./tables.ts";

export type TableName = (typeof COPIED_TABLES)[number];
export type TableRow<Name extends TableName> = Selectable<Tables[Name]>;

export interface Engine {
  readonly kind: "sqlite" | "postgres";
  /** A path or an address without its password, for messages. */
  readonly place: string;
  /** Why it cannot be reached, by the last that was heard of it. Absent where that cannot be. */
  readonly trouble?: string | undefined;
  readonly db: Kysely<Tables>;
  readonly types: ColumnTypes;
  /** Holds off other processes that migrate, until the transaction ends. */
  lockMigrations(trx: Transaction<Tables>): Promise<void>;
  /** Holds off other transactions that lock the same name, in whichever process, until this one ends. */
  lock(trx: Transaction<Tables>, name: string): Promise<void>;
  /** After a migration, inside its transaction. */
  markVersion(trx: Transaction<Tables>, version: number): Promise<void>;
  /** Whether the text matches a pattern in which `*` stands for anything; case counts. */
  matches(text: Expression<string | null>, pattern: string): RawBuilder<SqlBool>;
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
  /** Ends what is under way and refuses what comes, for a database that does not answer; absent where that cannot be. */
  giveUp?(): void;
  close(): Promise<void>;
}
