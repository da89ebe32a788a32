/** A step from one version of the tables to the next, the same on every database. */
import type { Expression, Kysely } from "kysely";

/** Column types that databases name differently. */
export interface ColumnTypes {
  /** Compared and ordered byte by byte, so that both databases agree. */
  readonly text: Expression<unknown>;
  /** Whole numbers up to 2^53. */
  readonly integer: Expression<unknown>;
}

export interface Migration {
  /** 1, 2, 3 …; never reused, and a migration that was released is never changed. */
  readonly version: number;
  readonly name: string;
  /** Runs in a transaction. Column names are in snake case here. */
  up(db: Kysely<unknown>, types: ColumnTypes): Promise<void>;
}
