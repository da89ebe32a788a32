import type { Database } from "better-sqlite3";
import { CamelCasePlugin, type Dialect, Kysely, sql, SqliteDialect } from "kysely";
import type { Clock } from "../../model/clock.ts";
import type { Engine } from "../engine.ts";
import { ExactDriver } from "../exact-driver.ts";
import type { Tables } from "../tables.ts";
import { copyDatabase } from "./copy-database.ts";
import { APPLICATION_ID } from "./file-check.ts";
import { openFile } from "./open-file.ts";
import { PageCheck } from "./page-check.ts";
import { patiently, takingTurns } from "./patience.ts";
import { readTable } from "./read-table.ts";
import { sqliteCode, sqliteFailure } from "./sqlite-errors.ts";

/** How soon changes of other processes are noticed. Asking costs a few microseconds. */
const LOOK_EVERY_MS = 500;
/** So many stay for what is written next. */
const FREE_PAGES = 2000;
const PAGES_AT_ONCE = 200;

interface SqliteOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export async function sqliteEngine(file: string, options: SqliteOptions): Promise<Engine> {
  return engineOf(await openFile(file, options.warn), file, options);
}

export function engineOf(database: Database, file: string, options: SqliteOptions): Engine {
  const { clock } = options;
  const pages = new PageCheck(database, file, options);
  const db = new Kysely<Tables>({ dialect: exactDialect(database, file, pages), plugins: [new CamelCasePlugin()] });
  return {
    kind: "sqlite",
    place: file,
    db,
    types: { text: sql`text`, integer: sql`integer` },
    // Every transaction begins as the only one that writes.
    lockMigrations: async () => {},
    lock: async () => {},
    async markVersion(trx, version) {
      // Pragmas take no parameters; both are numbers of our own.
      await sql.raw(`pragma application_id = ${APPLICATION_ID}`).execute(trx);
      await sql.raw(`pragma user_version = ${version}`).execute(trx);
    },
    matches: (text, pattern) => sql<boolean>`${text} glob ${globOf(pattern)}`,
    announce: async () => {},
    watch: (look) => watchVersion(database, clock, look),
    readTable,
    copyTo: (target) => copyDatabase(file, target),
    giveBackSpace: () => giveBackSpace(database, db),
    async close() {
      pages.stop();
      // Statements wait for each other before they reach the driver; this one comes behind all of them.
      if (database.open) await db.connection().execute(async () => {});
      await db.destroy();
      if (database.open) database.close();
    },
  };
}

/** In steps: each writes, and holds everything else up as long as it takes. */
async function giveBackSpace(database: Database, db: Kysely<Tables>): Promise<void> {
  const free = (): number => Number(database.pragma("freelist_count", { simple: true }));
  for (let left = free(); left > FREE_PAGES;) {
    const some = Math.min(PAGES_AT_ONCE, left - FREE_PAGES);
    // As a query it would be left after its first step, which is one page. The connection keeps it out of transactions.
    await db.connection().execute(() => patiently(() => void database.exec(`pragma incremental_vacuum(${some})`)));
    const now = free();
    // Nothing happens in a database that was not made for it.
    if (now >= left) return;
    left = now;
  }
}

function exactDialect(database: Database, file: string, pages: PageCheck): Dialect {
  const dialect = new SqliteDialect({ database });
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () =>
      new ExactDriver(dialect.createDriver(), {
        translate: (error) =>
          sqliteCode(error).startsWith("SQLITE_READONLY") && pages.found !== undefined
            ? pages.found
            : sqliteFailure(file, error),
        attempt: patiently,
        pause: takingTurns(),
        isInTransaction: () => database.inTransaction,
        // A transaction that reads before it writes would fail whenever another process wrote in between.
        begin: "begin immediate",
      }),
  };
}

/** Only `*` is special to us; the others are put into brackets, where GLOB takes them as they are. */
function globOf(pattern: string): string {
  return pattern.replace(/[?[]/g, "[$&]").replace(/\*+/g, "*");
}

/** The number changes when another connection commits, whichever process has it. */
function watchVersion(database: Database, clock: Clock, look: () => void): () => void {
  const read = (): unknown => database.pragma("data_version", { simple: true });
  let known = read();
  let stop = clock.after(LOOK_EVERY_MS, check);
  function check(): void {
    if (!database.open) return;
    stop = clock.after(LOOK_EVERY_MS, check);
    const now = readQuietly();
    if (now === known) return;
    known = now;
    look();
  }
  /** A database that is gone is told by the look that follows. */
  function readQuietly(): unknown {
    try {
      return read();
    } catch {
      return Symbol("unreadable");
    }
  }
  return () => stop();
}
