/** Brings a database to the version of this program, once, whichever of several processes is the first. */
import { type CreateTableBuilder, type Kysely, sql, type Transaction } from "kysely";
import { ToolcribError } from "../model/errors.ts";
import type { ColumnTypes, DatabaseEngine, Migration, Tables } from "./database.ts";

export async function migrate(engine: DatabaseEngine, now: () => string): Promise<void> {
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
export async function versionOf(engine: DatabaseEngine, db: Kysely<Tables>): Promise<number | undefined> {
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

async function hasVersions(engine: DatabaseEngine, db: Kysely<Tables>): Promise<boolean> {
  const query =
    engine.kind === "sqlite"
      ? sql<{ found: number }>`select count(*) as found from sqlite_schema where type = 'table' and name = 'migrations'`
      : sql<{ found: number }>`select count(*) as found from pg_class where oid = to_regclass('migrations')`;
  return ((await query.execute(db)).rows[0]?.found ?? 0) > 0;
}

async function createVersions(engine: DatabaseEngine, trx: Transaction<Tables>): Promise<void> {
  const { text, integer } = engine.types;
  await sql`create table migrations (version ${integer} primary key, name ${text} not null, applied_at ${text} not null)`.execute(
    trx,
  );
}

type Table = CreateTableBuilder<string, string>;

export interface Columns {
  /** `name?` may be null, `name#` is a whole number. */
  add(table: Table, names: string): Table;
}

export function columnsOf({ text, integer }: ColumnTypes): Columns {
  return {
    add: (table, names) =>
      names.split(" ").reduce((built, each) => {
        const type = each.includes("#") ? integer : text;
        // The builder takes an Expression that came from `sql`, which is what the engines pass.
        const sqlType = type as Parameters<Table["addColumn"]>[1];
        const name = each.replace(/[?#]/g, "");
        return built.addColumn(name, sqlType, (column) => (each.includes("?") ? column : column.notNull()));
      }, table),
  };
}

export const createFirstTables: Migration = {
  version: 1,
  name: "first tables",
  async up(db, types) {
    const columns = columnsOf(types);
    await createState(db, columns);
    await createRecords(db, columns);
    await createAudit(db, columns);
    await createOutbox(db, columns);
  },
};

async function createState(db: Kysely<unknown>, columns: Columns): Promise<void> {
  const { schema } = db;
  await columns
    .add(schema.createTable("servers"), "id entry source enabled# auto_connect# created_at updated_at revision#")
    .addPrimaryKeyConstraint("servers_key", ["id"])
    .execute();
  await columns
    .add(schema.createTable("skills"), "id manifest")
    .addPrimaryKeyConstraint("skills_key", ["id"])
    .execute();
  await columns
    .add(schema.createTable("pins"), "scope server tool fingerprint definition pinned_at")
    .addPrimaryKeyConstraint("pins_key", ["scope", "server", "tool"])
    .execute();
  await columns
    .add(schema.createTable("sealed_values"), "name nonce ciphertext tag key_id updated_at")
    .addPrimaryKeyConstraint("sealed_values_key", ["name"])
    .execute();
  await columns
    .add(schema.createTable("settings"), "key value")
    .addPrimaryKeyConstraint("settings_key", ["key"])
    .execute();
}

async function createRecords(db: Kysely<unknown>, columns: Columns): Promise<void> {
  const { schema } = db;
  await columns
    .add(schema.createTable("approvals"), "id hub status request asked_at answer? answered_at? answered_by?")
    .addPrimaryKeyConstraint("approvals_key", ["id"])
    .execute();
  await schema.createIndex("approvals_by_time").on("approvals").columns(["asked_at", "id"]).execute();
  await schema.createIndex("approvals_by_status").on("approvals").columns(["status", "asked_at", "id"]).execute();
  await columns
    .add(
      schema.createTable("sessions"),
      "id hub door role? user? owner# opened_at closed_at? last_call_at? calls# taint?",
    )
    .addPrimaryKeyConstraint("sessions_key", ["id"])
    .execute();
  await schema.createIndex("sessions_by_time").on("sessions").columns(["opened_at", "id"]).execute();
}

async function createAudit(db: Kysely<unknown>, columns: Columns): Promise<void> {
  const { schema } = db;
  await columns
    .add(
      schema.createTable("audit"),
      "file seq# chain line type time call_id? session? user? role? door? name? server? outcome? event?",
    )
    .addPrimaryKeyConstraint("audit_key", ["file", "seq"])
    .execute();
  await schema.createIndex("audit_by_time").on("audit").columns(["time", "file", "seq"]).execute();
  await schema.createIndex("audit_by_call").on("audit").column("call_id").execute();
  await schema.createIndex("audit_by_session").on("audit").columns(["session", "time"]).execute();
  await columns
    .add(schema.createTable("audit_files"), "file chain bytes# lines# last_seq# first_time last_time")
    .addPrimaryKeyConstraint("audit_files_key", ["file"])
    .execute();
}

async function createOutbox(db: Kysely<unknown>, columns: Columns): Promise<void> {
  const { schema } = db;
  await columns
    .add(schema.createTable("outbox"), "revision# topic subject writer written_at")
    .addPrimaryKeyConstraint("outbox_key", ["revision"])
    .execute();
  await columns
    .add(schema.createTable("stamps"), "topic subject revision#")
    .addPrimaryKeyConstraint("stamps_key", ["topic", "subject"])
    .execute();
  await columns
    .add(schema.createTable("counter"), "id# value#")
    .addPrimaryKeyConstraint("counter_key", ["id"])
    .execute();
  // The one row that there ever is; inserted without types, because these change with later versions.
  await (db as Kysely<{ counter: { id: number; value: number } }>)
    .insertInto("counter")
    .values({ id: 1, value: 0 })
    .execute();
}

export const addConversations: Migration = {
  version: 2,
  name: "conversations",
  async up({ schema }, types) {
    const columns = columnsOf(types);
    await columns
      .add(schema.createTable("conversations"), "id title? door cwd? user? created_at updated_at facts")
      .addPrimaryKeyConstraint("conversations_key", ["id"])
      .execute();
    await schema.createIndex("conversations_by_time").on("conversations").columns(["updated_at", "id"]).execute();
    await columns
      .add(schema.createTable("conversation_messages"), "conversation seq# message")
      .addPrimaryKeyConstraint("conversation_messages_key", ["conversation", "seq"])
      .execute();
  },
};

/** Tables that only hubs on several machines need. */
export const addClusters: Migration = {
  version: 3,
  name: "clusters",
  async up({ schema }, types) {
    const columns = columnsOf(types);
    await columns
      .add(schema.createTable("limit_spans"), "key span# used# given#")
      .addPrimaryKeyConstraint("limit_spans_key", ["key", "span"])
      .execute();
    await schema.createIndex("limit_spans_by_span").on("limit_spans").column("span").execute();
    await columns
      .add(schema.createTable("skill_files"), "digest content added_at")
      .addPrimaryKeyConstraint("skill_files_key", ["digest"])
      .execute();
  },
};

/** Prompts, resources, templates and instructions are pinned too. The key has another column, so the table is made again. */
export const pinAllKinds: Migration = {
  version: 4,
  name: "pins of all kinds",
  async up(db: Kysely<unknown>, types) {
    const { schema } = db;
    await schema.alterTable("pins").renameTo("pins_of_tools").execute();
    await columnsOf(types)
      .add(schema.createTable("pins"), "scope server kind tool fingerprint definition pinned_at")
      .addPrimaryKeyConstraint("pins_by_kind_key", ["scope", "server", "kind", "tool"])
      .execute();
    await sql`insert into pins (scope, server, kind, tool, fingerprint, definition, pinned_at)
      select scope, server, 'tool', tool, fingerprint, definition, pinned_at from pins_of_tools`.execute(db);
    await schema.dropTable("pins_of_tools").execute();
  },
};

/** In their order. A list and no folder listing, because the package is one bundle. */
export const MIGRATIONS: readonly Migration[] = [createFirstTables, addConversations, addClusters, pinAllKinds];

export const CURRENT_VERSION = MIGRATIONS.length;
