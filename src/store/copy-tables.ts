/** All rows of one database into another. */
import type { Kysely } from "kysely";
import type { Engine } from "./engine.ts";
import { COPIED_TABLES, type Tables } from "./tables.ts";

/** Both inside transactions; `to` loses what it had. */
export async function copyTables(read: Engine["readTable"], from: Kysely<Tables>, to: Kysely<Tables>): Promise<void> {
  for (const table of COPIED_TABLES) {
    await to.deleteFrom(table).execute();
    for await (const rows of read(from, table)) {
      await to.insertInto(table).values(rows).execute();
    }
  }
}
