import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import type { Database, Statement } from "better-sqlite3";
import { CamelCasePlugin, Kysely, sql, SqliteDialect } from "kysely";
import type { Clock } from "../base/clock.ts";
import type { ToolcribError } from "../model/errors.ts";
import { type DatabaseEngine, rowsAtOnce, type TableName, type TableRow, type Tables } from "./database.ts";
import { exactDialect } from "./exact-driver.ts";
import {
  APPLICATION_ID,
  copyDatabase,
  corruptDatabase,
  FULL_CHECK_BYTES,
  openAgain,
  openFile,
  retryWhileBusy,
  sizeOf,
  sqliteCode,
  sqliteFailure,
  yieldRegularly,
} from "./sqlite-file.ts";

/** How soon changes of other processes are noticed. Asking costs a few microseconds. */
const LOOK_EVERY_MS = 500;
/** This many stay for later writes. */
const FREE_PAGES = 2000;
const PAGES_AT_ONCE = 200;

interface SqliteOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  /** Another handle of this process has the file open, has checked it and goes on checking it. */
  readonly isSecond?: boolean;
}

export async function sqliteEngine(file: string, options: SqliteOptions): Promise<DatabaseEngine> {
  const opened = options.isSecond === true ? openAgain(file) : openFile(file, options.warn);
  return engineOf(await opened, file, options);
}

export function engineOf(database: Database, file: string, options: SqliteOptions): DatabaseEngine {
  const { clock } = options;
  const pages = options.isSecond === true ? undefined : new PageCheck(database, file, options);
  const dialect = exactDialect(new SqliteDialect({ database }), {
    translate: (error) =>
      sqliteCode(error).startsWith("SQLITE_READONLY") && pages?.found !== undefined
        ? pages.found
        : sqliteFailure(file, error),
    attempt: retryWhileBusy,
    pause: yieldRegularly(),
    isInTransaction: () => database.inTransaction,
    // A transaction that reads before it writes would fail whenever another process wrote in between.
    begin: "begin immediate",
  });
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
  return {
    kind: "sqlite",
    place: file,
    address: { file },
    db,
    types: { text: sql`text`, integer: sql`integer` },
    // Every transaction begins as the only one that writes.
    lockMigrations: async () => {},
    lock: async () => {},
    async markVersion(trx, version) {
      // Pragmas take no parameters; both are our own numbers.
      await sql.raw(`pragma application_id = ${APPLICATION_ID}`).execute(trx);
      await sql.raw(`pragma user_version = ${version}`).execute(trx);
    },
    announce: async () => {},
    watch: (look) => watchVersion(database, clock, look),
    readTable,
    copyTo: (target) => copyDatabase(file, target),
    giveBackSpace: () => giveBackSpace(database, db),
    async close() {
      pages?.stop();
      // Statements wait for each other before they reach the driver; this one comes behind all of them.
      if (database.open) await db.connection().execute(async () => {});
      await db.destroy();
      if (database.open) database.close();
    },
  };
}

/** In steps: each writes, and blocks everything else meanwhile. */
async function giveBackSpace(database: Database, db: Kysely<Tables>): Promise<void> {
  const free = (): number => Number(database.pragma("freelist_count", { simple: true }));
  for (let left = free(); left > FREE_PAGES;) {
    const some = Math.min(PAGES_AT_ONCE, left - FREE_PAGES);
    // As a query it would be left after its first step, which is one page. The connection keeps it out of transactions.
    await db.connection().execute(() => retryWhileBusy(() => void database.exec(`pragma incremental_vacuum(${some})`)));
    const now = free();
    // Nothing happens in a database that was not made for it.
    if (now >= left) return;
    left = now;
  }
}

/**
 * The number changes when another connection commits, whichever process has it; most of those are the thread of the audit log.
 * What others must learn of counts up the revision in the same transaction.
 */
function watchVersion(database: Database, clock: Clock, look: () => void): () => void {
  const read = (): unknown => database.pragma("data_version", { simple: true });
  let known = read();
  let counter: Statement | undefined;
  let revision = readRevision();
  let stop = clock.after(LOOK_EVERY_MS, check);
  function check(): void {
    if (!database.open) return;
    stop = clock.after(LOOK_EVERY_MS, check);
    const now = readQuietly();
    if (now === known) return;
    known = now;
    const latest = readRevision();
    if (latest !== undefined && latest === revision) return;
    revision = latest;
    look();
  }
  /** Undefined if it cannot be read: then whoever looks finds out why. */
  function readRevision(): unknown {
    try {
      counter ??= database.prepare("select value from counter where id = 1").pluck();
      return counter.get();
    } catch {
      return undefined;
    }
  }
  /** A missing database is reported by the read that follows. */
  function readQuietly(): unknown {
    try {
      return read();
    } catch {
      return Symbol("unreadable");
    }
  }
  return () => stop();
}

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

/** Commands have ended by then. */
const BEGIN_MS = 5000;

/** Prints the verdict. Any other failure is not a verdict. */
const CHECK = `
  const [file, sqlite] = process.argv.slice(1);
  const db = new (require(sqlite))(file, { readonly: true });
  try {
    process.stdout.write(String(db.pragma("quick_check(1)", { simple: true })));
  } catch (error) {
    if (String(error.code).startsWith("SQLITE_CORRUPT")) process.stdout.write(error.message);
  }
`;

/** Checks all pages of a large database in a separate process: here it would block everything for a second and more. */
class PageCheck {
  readonly #database: Database;
  readonly #file: string;
  readonly #warn: (message: string) => void;
  /** The damage, once it is known; from then on nothing is written. */
  found: ToolcribError | undefined;
  #stop: () => void;

  constructor(database: Database, file: string, { clock, warn }: SqliteOptions) {
    this.#database = database;
    this.#file = file;
    this.#warn = warn;
    this.#stop = clock.after(BEGIN_MS, () => void this.#check());
  }

  stop(): void {
    this.#stop();
  }

  async #check(): Promise<void> {
    if ((await sizeOf(this.#file)) <= FULL_CHECK_BYTES || !this.#database.open) return;
    const module = createRequire(import.meta.url).resolve("better-sqlite3");
    const child = spawn(process.execPath, ["-e", CHECK, this.#file, module], {
      stdio: ["ignore", "pipe", "ignore"],
      windowsHide: true,
    });
    this.#stop = () => void child.kill();
    // A place where nothing can be started is one where this is not checked.
    child.on("error", () => {});
    child.unref();
    const verdict = (await text(child.stdout).catch(() => "")).replaceAll("\n", " ").trim();
    if (verdict === "" || verdict === "ok" || !this.#database.open) return;
    this.#database.pragma("query_only = ON");
    this.found = corruptDatabase(this.#file, verdict);
    this.#warn(`${this.found.message} Nothing more is written to it. ${this.found.hint ?? ""}`.trim());
  }
}
