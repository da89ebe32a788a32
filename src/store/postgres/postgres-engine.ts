import { CamelCasePlugin, type Dialect, Kysely, PostgresDialect, type PostgresPool, sql } from "kysely";
import type { CustomTypesConfig } from "pg";
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Engine } from "../engine.ts";
import { ExactDriver } from "../exact-driver.ts";
import type { Tables } from "../tables.ts";
import { shownAddress } from "./address.ts";
import { openConnections } from "./connections.ts";
import { loadPg } from "./load-pg.ts";
import { CHANNEL, followNotices } from "./notices.ts";
import { postgresFailure } from "./postgres-errors.ts";
import { copyToFile } from "./copy-to-file.ts";
import { Reach } from "./reach.ts";
import { readTable } from "./read-table.ts";

/** Any number that no other program of the database takes for its own locks. */
const MIGRATION_LOCK = 0x54435242;
/** Locks by name have two numbers, and are never the same as those of one. */
const NAMED_LOCKS = 0x54435242;
/** int8, which `count` gives too. */
const INT8 = 20;

interface PostgresOptions {
  /** How long a statement may take. */
  readonly answerMs?: number;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export async function postgresEngine(url: string, { clock, warn, answerMs }: PostgresOptions): Promise<Engine> {
  const place = shownAddress(url);
  const pg = await loadPg();
  const connections = openConnections(
    pg,
    { connectionString: url, application_name: "toolcrib", types: numbersForInt8(pg.types) },
    answerMs,
  );
  const reach = new Reach();
  const db = new Kysely<Tables>({
    dialect: exactDialect(connections.pool, place, reach),
    plugins: [new CamelCasePlugin()],
  });
  const engine: Engine = {
    kind: "postgres",
    place,
    get trouble() {
      return reach.trouble;
    },
    db,
    types: { text: sql`text collate "C"`, integer: sql`bigint` },
    async lockMigrations(trx) {
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(trx);
    },
    async lock(trx, name) {
      await sql`select pg_advisory_xact_lock(${NAMED_LOCKS}::int, hashtext(${name}))`.execute(trx);
    },
    markVersion: async () => {},
    matches: (text, pattern) => sql<boolean>`${text} like ${likeOf(pattern)} escape '\\'`,
    async announce(trx, revision) {
      await sql`select pg_notify(${CHANNEL}, ${String(revision)})`.execute(trx);
    },
    watch: (look) =>
      followNotices({
        connect: () => connections.connectAlone(),
        clock,
        look,
        onListening: () => reach.answered(),
        onFailure: (error) => reach.failed(postgresFailure(place, error)),
      }),
    readTable,
    copyTo: (file) => copyToFile(db, file, { clock, warn }),
    giveUp: () => connections.giveUp(),
    close: () => db.destroy(),
  };
  try {
    await assertUtf8(engine);
  } catch (error) {
    await engine.close().catch(() => {});
    throw error;
  }
  return engine;
}

function exactDialect(pool: PostgresPool, place: string, reach: Reach): Dialect {
  const dialect = new PostgresDialect({ pool });
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () =>
      new ExactDriver(dialect.createDriver(), {
        translate(error) {
          const failure = postgresFailure(place, error);
          reach.failed(failure);
          return failure;
        },
        async attempt(step) {
          const result = await step();
          reach.answered();
          return result;
        },
      }),
  };
}

/** Nothing that is counted here comes near 2^53. */
function numbersForInt8(types: CustomTypesConfig): CustomTypesConfig {
  return {
    // The last overload of the package's own type takes what this one passes on.
    getTypeParser: ((oid: number, format?: "text") =>
      oid === INT8 ? Number : types.getTypeParser(oid, format)) as CustomTypesConfig["getTypeParser"],
  };
}

function likeOf(pattern: string): string {
  return pattern.replace(/[\\%_]/g, "\\$&").replace(/\*+/g, "%");
}

async function assertUtf8({ db, place }: Engine): Promise<void> {
  const { rows } = await sql<{ serverEncoding: string }>`show server_encoding`.execute(db);
  const encoding = rows[0]?.serverEncoding;
  if (encoding === "UTF8") return;
  throw new ToolcribError("invalid_config", `The database ${place} has the encoding ${encoding}.`, {
    hint: "Create it with the encoding UTF8: createdb --encoding=UTF8 --template=template0 <name>.",
  });
}
