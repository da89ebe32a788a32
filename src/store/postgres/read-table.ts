import { type Kysely, sql } from "kysely";
import type { TableName, TableRow } from "../engine.ts";
import { rowsAtOnce, type Tables } from "../tables.ts";

/** Every row, some at a time; within a transaction, as cursors end with it. */
export async function* readTable<Name extends TableName>(
  trx: Kysely<Tables>,
  table: Name,
): AsyncGenerator<TableRow<Name>[]> {
  await sql`declare all_rows no scroll cursor for select * from ${sql.table(table)}`.execute(trx);
  for (;;) {
    const { rows } = await sql<TableRow<Name>>`fetch ${sql.lit(rowsAtOnce(table))} from all_rows`.execute(trx);
    if (rows.length === 0) break;
    yield rows;
  }
  await sql`close all_rows`.execute(trx);
}
