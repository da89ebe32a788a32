/** Puts a copy that `Store.backup` made in place of the contents of a PostgreSQL database. */
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { systemClock } from "../base/clock.ts";
import { COPIED_TABLES, copyTables, type DatabaseEngine } from "./database.ts";
import { migrate, versionOf } from "./migrations.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { sqliteEngine } from "./sqlite-engine.ts";

/** How many lines of an audit file a copy has. */
export function copiedLines(copy: string, file: string): number {
  const db = new Sqlite(copy, { readonly: true });
  try {
    return Number(db.prepare("select lines from audit_files where file = ?").pluck().get(file) ?? 0);
  } finally {
    db.close();
  }
}

const silent = { clock: systemClock, warn: (): void => {} };
const now = (): string => new Date().toISOString();

/** Whether anything was ever written there. */
export async function hasState(url: string): Promise<boolean> {
  const engine = await postgresEngine(url, silent);
  try {
    if ((await versionOf(engine, engine.db)) === undefined) return false;
    for (const table of COPIED_TABLES) {
      if (table === "counter") continue;
      const first = engine.db
        .selectFrom(table)
        .select(sql`1`.as("one"))
        .limit(1);
      if ((await first.execute()).length > 0) return true;
    }
    return false;
  } finally {
    await engine.close();
  }
}

/** In one transaction. The copy is brought to the current version first, so pass one that may be changed. */
export async function restoreInto(url: string, copy: string): Promise<void> {
  const source = await sqliteEngine(copy, silent);
  try {
    await migrate(source, now);
    const target = await postgresEngine(url, silent);
    try {
      await migrate(target, now);
      await replace(source, target);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/**
 * Revisions go on from the higher of both, with a gap: hubs on other machines that follow this database find it, and read
 * everything again. Stamps change for the same reason.
 */
async function replace(source: DatabaseEngine, target: DatabaseEngine): Promise<void> {
  await target.db.transaction().execute(async (to) => {
    const before = await to.selectFrom("counter").select("value").forUpdate().executeTakeFirstOrThrow();
    await source.db.transaction().execute((from) => copyTables(source.readTable, from, to));
    const copied = await to.selectFrom("counter").select("value").executeTakeFirstOrThrow();
    const revision = Math.max(before.value, copied.value) + 1;
    await to.deleteFrom("outbox").execute();
    await to.updateTable("stamps").set({ revision }).execute();
    await to.updateTable("counter").set({ value: revision }).execute();
    await target.announce(to, revision);
  });
}
