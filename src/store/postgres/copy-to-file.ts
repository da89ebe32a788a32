/** A PostgreSQL database as one SQLite file: the same tables, in the state of one moment. */
import type { Kysely } from "kysely";
import type { Clock } from "../../model/clock.ts";
import { copyTables } from "../copy-tables.ts";
import { migrate } from "../migrate.ts";
import type { Tables } from "../tables.ts";
import { readTable } from "./read-table.ts";

interface CopyOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export async function copyToFile(db: Kysely<Tables>, file: string, options: CopyOptions): Promise<void> {
  const [{ writeWhole }, { sqliteEngine }] = await Promise.all([
    import("../sqlite/copy-database.ts"),
    import("../sqlite/sqlite-engine.ts"),
  ]);
  await writeWhole(file, async (temporary) => {
    const copy = await sqliteEngine(temporary, options);
    try {
      await migrate(copy, () => new Date(options.clock.now()).toISOString());
      await db
        .transaction()
        .setIsolationLevel("repeatable read")
        .setAccessMode("read only")
        .execute((from) => copy.db.transaction().execute((to) => copyTables(readTable, from, to)));
    } finally {
      await copy.close();
    }
  });
}
