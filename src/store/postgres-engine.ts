import { Socket } from "node:net";
import { CamelCasePlugin, Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from "kysely";
import type { Client, CustomTypesConfig } from "pg";
import type pg from "pg";
import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { copyTables, type DatabaseEngine, rowsAtOnce, type TableName, type TableRow, type Tables } from "./database.ts";
import { exactDialect } from "./exact-driver.ts";
import { migrate } from "./migrations.ts";

/** Any number that no other program of the database takes for its own locks. */
const MIGRATION_LOCK = 0x54435242;
/** Locks by name have two numbers, and are never the same as those of one. */
const NAMED_LOCKS = 0x54435242;
/** int8, which `count` returns too. */
const INT8 = 20;

interface PostgresOptions {
  /** How long a statement may take. */
  readonly answerMs?: number;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export async function postgresEngine(url: string, { clock, warn, answerMs }: PostgresOptions): Promise<DatabaseEngine> {
  const place = shownAddress(url);
  const pg = await loadPg();
  const connections = openConnections(
    pg,
    { connectionString: url, application_name: "toolcrib", types: numbersForInt8(pg.types) },
    answerMs,
  );
  let trouble: string | undefined;
  const failureOf = (error: unknown): Error => {
    const failure = postgresFailure(place, error);
    // Other failures are answers too.
    if (failure instanceof ToolcribError && failure.code === "server_unavailable") trouble = failure.message;
    return failure;
  };
  const dialect = exactDialect(new PostgresDialect({ pool: connections.pool }), {
    translate: failureOf,
    async attempt(step) {
      const result = await step();
      trouble = undefined;
      return result;
    },
  });
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
  const engine: DatabaseEngine = {
    kind: "postgres",
    place,
    address: { url },
    get trouble() {
      return trouble;
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
    async announce(trx, revision) {
      await sql`select pg_notify(${CHANNEL}, ${String(revision)})`.execute(trx);
    },
    watch: (look) =>
      listenForChanges({
        connect: () => connections.connectAlone(),
        clock,
        look,
        onListening: () => (trouble = undefined),
        onFailure: failureOf,
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

/** Nothing that is counted here comes near 2^53. */
function numbersForInt8(types: CustomTypesConfig): CustomTypesConfig {
  return {
    // The last overload of the package's own type takes what this one passes on.
    getTypeParser: ((oid: number, format?: "text") =>
      oid === INT8 ? Number : types.getTypeParser(oid, format)) as CustomTypesConfig["getTypeParser"],
  };
}

async function assertUtf8({ db, place }: DatabaseEngine): Promise<void> {
  const { rows } = await sql<{ serverEncoding: string }>`show server_encoding`.execute(db);
  const encoding = rows[0]?.serverEncoding;
  if (encoding === "UTF8") return;
  throw new ToolcribError("invalid_config", `The database ${place} has the encoding ${encoding}.`, {
    hint: "Create it with the encoding UTF8: createdb --encoding=UTF8 --template=template0 <name>.",
  });
}

const CONNECTIONS = 5;
const CONNECT_MS = 10_000;
const ANSWER_MS = 15_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * The connections of one store. A server that is stopped, or behind a network that drops everything, never says so: nothing
 * here waits for it without end.
 */
interface Connections {
  readonly pool: PostgresPool;
  /** One that is not of the pool, and keeps no process alive. */
  connectAlone(): Promise<pg.Client>;
  /** Closes all connections; later statements fail at once. */
  giveUp(): void;
}

function openConnections({ Pool, Client }: typeof pg, own: pg.ClientConfig, answerMs: number = ANSWER_MS): Connections {
  const sockets = new Set<Socket>();
  let gaveUp = false;
  const settings: pg.ClientConfig = {
    ...own,
    connectionTimeoutMillis: CONNECT_MS,
    // Of statements: a connection that only listens may stay silent as long as it likes.
    query_timeout: answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    stream() {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  };
  // A program that forgets to close its hub still ends.
  const pool = new Pool({ ...settings, max: CONNECTIONS, allowExitOnIdle: true });
  // An idle connection that breaks is replaced when the next one is asked for.
  pool.on("error", () => {});
  // One in use fails with its next statement; without a listener its error would end the process before.
  pool.on("connect", (client) => client.on("error", () => {}));
  const assertOpen = (): void => {
    if (gaveUp) throw new Error("Connection terminated, because it did not answer in time");
  };
  return {
    pool: {
      options: pool.options,
      async connect() {
        assertOpen();
        return answering(await pool.connect());
      },
      end: () => pool.end(),
    },
    async connectAlone() {
      assertOpen();
      const client = new Client(settings);
      // Before it connects: a failure without a listener would end the process.
      client.on("error", () => {});
      await client.connect();
      // The package has it, its types lack it.
      (client as pg.Client & { unref(): void }).unref();
      return client;
    },
    giveUp() {
      gaveUp = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** After a statement that got no answer in time, the next would wait behind it: the connection is of no more use. */
function answering(client: pg.PoolClient): PostgresPoolClient {
  let isStuck = false;
  const query = async (text: string, values: unknown[]): Promise<unknown> => {
    if (isStuck) throw new Error("Connection terminated after a timeout");
    try {
      return await client.query(text, values);
    } catch (error) {
      isStuck = error instanceof Error && error.message === "Query read timeout";
      throw error;
    }
  };
  return {
    // Kysely calls it with a text and its values; the other form, for cursors, is not used here.
    query: query as PostgresPoolClient["query"],
    release: (destroy) => client.release(isStuck || destroy === true),
  };
}

const CHANNEL = "toolcrib";
const LOOK_EVERY_MS = 30_000;
const CHECK_EVERY_MS = 5000;
const CHECK_ANSWER_MS = 4000;
const RETRY_MS = 1000;
const RETRY_MAX_MS = 30_000;

interface NoticesOptions {
  readonly connect: () => Promise<Client>;
  readonly clock: Clock;
  readonly look: () => void;
  readonly onListening?: () => void;
  /** The connection was lost, or could not be had. */
  readonly onFailure?: (error: unknown) => void;
}

/**
 * Learns of changes by LISTEN. A notice can be lost with its connection, so there is also a read after each reconnect, and now
 * and then. A connection that only listens may die without a sign, so it is asked whether it lives.
 */
export function listenForChanges({ connect, clock, look, onListening, onFailure }: NoticesOptions): () => void {
  let stopped = false;
  let client: Client | undefined;
  let failures = 0;
  let stopRetry = (): void => {};
  let stopChecking = (): void => {};
  let stopLooking = clock.after(LOOK_EVERY_MS, lookNowAndThen);

  function lookNowAndThen(): void {
    stopLooking = clock.after(LOOK_EVERY_MS, lookNowAndThen);
    look();
  }

  async function listen(): Promise<void> {
    try {
      const opened = await connect();
      if (stopped) {
        await opened.end();
        return;
      }
      client = opened;
      opened.on("error", () => {});
      opened.on("end", ended);
      opened.on("notification", look);
      await opened.query(`listen ${CHANNEL}`);
      if (client !== opened) return;
      failures = 0;
      onListening?.();
      look();
      checkLater(opened);
    } catch (error) {
      fail(error);
    }
  }

  function checkLater(listening: Client): void {
    stopChecking = clock.after(CHECK_EVERY_MS, () => {
      const failed = (error: unknown): void => {
        if (client === listening) fail(error);
      };
      stopChecking = clock.after(CHECK_ANSWER_MS, () => failed(new Error("Connection terminated after a timeout")));
      listening.query("select 1").then(() => {
        if (client !== listening) return;
        stopChecking();
        checkLater(listening);
      }, failed);
    });
  }

  function fail(error: unknown): void {
    const failed = client;
    if (!stopped) onFailure?.(error);
    lost();
    void failed?.end().catch(() => {});
  }

  function ended(): void {
    if (!stopped) onFailure?.(new Error("Connection terminated"));
    lost();
  }

  function lost(): void {
    client?.off("end", ended);
    client = undefined;
    stopChecking();
    if (stopped) return;
    stopRetry();
    stopRetry = clock.after(Math.min(RETRY_MS * 2 ** failures, RETRY_MAX_MS), () => void listen());
    failures += 1;
  }

  void listen();
  return () => {
    stopped = true;
    stopRetry();
    stopLooking();
    stopChecking();
    void client?.end().catch(() => {});
  };
}

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

/** A PostgreSQL database as one SQLite file: the same tables, in the state of one moment. */
async function copyToFile(db: Kysely<Tables>, file: string, options: PostgresOptions): Promise<void> {
  const [{ writeDatabaseFile }, { sqliteEngine }] = await Promise.all([
    import("./sqlite-file.ts"),
    import("./sqlite-engine.ts"),
  ]);
  await writeDatabaseFile(file, async (temporary) => {
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

/** Changes for the operator to make, by PostgreSQL's own codes. */
const WRONG_CONFIG: Readonly<Record<string, string>> = {
  "28P01": "Check the user and the password that the store's address has.",
  "28000": "Check the user of the store's address, and pg_hba.conf of the server.",
  "3D000": "Create the database first: createdb <name>.",
  "3F000": "Create the schema first, or leave search_path out of the address.",
  "42501": "Give the user of the store's address the right to create and use tables in its schema.",
  "42P07":
    "Use a separate database for Toolcrib, or a separate schema: add ?options=-csearch_path%3Dtoolcrib to the address.",
};

/** Sockets, and the classes of codes for: connection, resources, operator. */
const UNREACHABLE = /^(E[A-Z_]+|08...|53...|57P..)$/;

function postgresFailure(place: string, error: unknown): Error {
  if (error instanceof ToolcribError) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const text = textOf(error);
  const hint = WRONG_CONFIG[code];
  if (hint !== undefined) {
    return new ToolcribError("invalid_config", `The database ${place} refuses: ${text}.`, { hint, details: { place } });
  }
  if (UNREACHABLE.test(code) || /terminated|timeout|not queryable|ssl/i.test(text)) {
    return new ToolcribError("server_unavailable", `The database ${place} cannot be reached: ${text}.`, {
      hint: "Check that PostgreSQL runs there and that its address is right.",
      details: { place },
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(text);
}

/** Where several addresses were tried, the error itself says nothing. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}

/** The address of a PostgreSQL database as messages may show it. Without password and options, which may contain one too. Rejects any other URL, without repeating it. */
function shownAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["postgres:", "postgresql:"].includes(parsed.protocol)) {
    throw new ToolcribError("invalid_config", "The store's address is not a PostgreSQL URL.", {
      hint: 'Write "store": "postgres://user@host:5432/database", the password through ${VAR} or secret://.',
    });
  }
  const user = parsed.username === "" ? "" : `${parsed.username}@`;
  const host = parsed.host || parsed.searchParams.get("host") || "localhost";
  return `postgres://${user}${host}${parsed.pathname}`;
}

/** `pg` is installed only by those who use PostgreSQL. */
async function loadPg(): Promise<typeof pg> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    const message = 'The store is a PostgreSQL database, and the package "pg" is not installed.';
    throw new ToolcribError("invalid_config", message, { hint: "npm install pg", cause: error });
  }
}
