import { type Kysely, sql } from "kysely";
import type { TableName, TableRow } from "../engine.ts";
import { rowsAtOnce, type Tables } from "../tables.ts";

/** Every row, some at a time. */
export async function* readTable<Name extends TableName>(
  trx: Kysely<Tables>,
  table: Name,
): AsyncGenerator<TableRow<Name>[]> {
  let last = 0;
  for (;;) {
    const { rows } = await sql<TableRow<Name> & { rowNumber?: number }>`
      select rowid as row_number, * from ${sql.table(table)} where rowid > ${last} order by rowid limit ${rowsAtOnce(table)}
    `.execute(trx);
    if (rows.length === 0) return;
    last = rows.at(-1)?.rowNumber ?? last;
    for (const row of rows) delete row.rowNumber;
    yield rows;
  }
}
