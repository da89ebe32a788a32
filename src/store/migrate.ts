/** Brings a database to the version of this program, once, whichever of several processes is the first. */
import { sql, type Kysely, type Transaction } from "kysely";
import { ToolcribError } from "../model/errors.ts";
import type { Engine } from "./engine.ts";
import { CURRENT_VERSION, MIGRATIONS } from "./migrations/migrations.ts";
import type { Tables } from "./tables.ts";

export async function migrate(engine: Engine, now: () => string): Promise<void> {
  if ((await versionOf(engine, engine.db)) === CURRENT_VERSION) return;
  await engine.db.transaction().execute(async (trx) => {
    await engine.lockMigrations(trx);
    // Again, because another process may have done it while this one waited.
    const from = await versionOf(engine, trx);
    if (from === undefined) await createVersions(engine, trx);
    for (const migration of MIGRATIONS.slice(from ?? 0)) {
      // A migration knows the tables of its own time only, and their real column names.
      await migration.up(trx.withoutPlugins() as unknown as Kysely<unknown>, engine.types);
      const { version, name } = migration;
      await trx.insertInto("migrations").values({ version, name, appliedAt: now() }).execute();
    }
    await engine.markVersion(trx, CURRENT_VERSION);
  });
}

/** Undefined for a database without tables. Rejects for one that a newer program wrote. */
export async function versionOf(engine: Engine, db: Kysely<Tables>): Promise<number | undefined> {
  if (!(await hasVersions(engine, db))) return undefined;
  const { version } = await db
    .selectFrom("migrations")
    .select((eb) => eb.fn.max("version").as("version"))
    .executeTakeFirstOrThrow();
  assertNotNewer(engine.place, version);
  return version;
}

export function assertNotNewer(place: string, version: number): void {
  if (version <= CURRENT_VERSION) return;
  throw new ToolcribError(
    "invalid_config",
    `The database ${place} is of version ${version}, and this Toolcrib knows versions up to ${CURRENT_VERSION}.`,
    {
      hint: "A newer Toolcrib wrote it. Use that one, or another TOOLCRIB_HOME. Nothing was changed.",
      details: { place, version, known: CURRENT_VERSION },
    },
  );
}

async function hasVersions(engine: Engine, db: Kysely<Tables>): Promise<boolean> {
  const query =
    engine.kind === "sqlite"
      ? sql<{ found: number }>`select count(*) as found from sqlite_schema where type = 'table' and name = 'migrations'`
      : sql<{ found: number }>`select count(*) as found from pg_class where oid = to_regclass('migrations')`;
  return ((await query.execute(db)).rows[0]?.found ?? 0) > 0;
}

async function createVersions(engine: Engine, trx: Transaction<Tables>): Promise<void> {
  const { text, integer } = engine.types;
  await sql`create table migrations (version ${integer} primary key, name ${text} not null, applied_at ${text} not null)`.execute(
    trx,
  );
}
