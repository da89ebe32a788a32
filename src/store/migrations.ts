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
type CreateTable = (name: string, columns: string, key: readonly string[], keyName?: string) => Promise<void>;

/** Creates tables. `name?` may be null, `name#` is a whole number. */
function tableCreator({ schema }: Kysely<unknown>, { text, integer }: ColumnTypes): CreateTable {
  return async (name, columns, key, keyName = `${name}_key`) => {
    let table: Table = schema.createTable(name);
    for (const column of columns.split(" ")) {
      // The builder takes an Expression that came from `sql`, which is what the engines pass.
      const type = (column.includes("#") ? integer : text) as Parameters<Table["addColumn"]>[1];
      const isOptional = column.includes("?");
      table = table.addColumn(column.replace(/[?#]/g, ""), type, (built) => (isOptional ? built : built.notNull()));
    }
    await table.addPrimaryKeyConstraint(keyName, [...key]).execute();
  };
}

const createFirstTables: Migration = {
  version: 1,
  name: "first tables",
  async up(db, types) {
    const { schema } = db;
    const create = tableCreator(db, types);
    await create("servers", "id entry source enabled# auto_connect# created_at updated_at revision#", ["id"]);
    await create("skills", "id manifest", ["id"]);
    await create("pins", "scope server tool fingerprint definition pinned_at", ["scope", "server", "tool"]);
    await create("sealed_values", "name nonce ciphertext tag key_id updated_at", ["name"]);
    await create("settings", "key value", ["key"]);

    await create("approvals", "id hub status request asked_at answer? answered_at? answered_by?", ["id"]);
    await schema.createIndex("approvals_by_time").on("approvals").columns(["asked_at", "id"]).execute();
    await schema.createIndex("approvals_by_status").on("approvals").columns(["status", "asked_at", "id"]).execute();
    const ofSession = "id hub door role? user? owner# opened_at closed_at? last_call_at? calls# taint?";
    await create("sessions", ofSession, ["id"]);
    await schema.createIndex("sessions_by_time").on("sessions").columns(["opened_at", "id"]).execute();

    const ofLine = "file seq# chain line type time call_id? session? user? role? door? name? server? outcome? event?";
    await create("audit", ofLine, ["file", "seq"]);
    await schema.createIndex("audit_by_time").on("audit").columns(["time", "file", "seq"]).execute();
    await schema.createIndex("audit_by_call").on("audit").column("call_id").execute();
    await schema.createIndex("audit_by_session").on("audit").columns(["session", "time"]).execute();
    await create("audit_files", "file chain bytes# lines# last_seq# first_time last_time", ["file"]);

    await create("outbox", "revision# topic subject writer written_at", ["revision"]);
    await create("stamps", "topic subject revision#", ["topic", "subject"]);
    await create("counter", "id# value#", ["id"]);
    // The one row that there ever is.
    await sql`insert into counter (id, value) values (1, 0)`.execute(db);
  },
};

const addConversations: Migration = {
  version: 2,
  name: "conversations",
  async up(db, types) {
    const create = tableCreator(db, types);
    await create("conversations", "id title? door cwd? user? created_at updated_at facts", ["id"]);
    await db.schema.createIndex("conversations_by_time").on("conversations").columns(["updated_at", "id"]).execute();
    await create("conversation_messages", "conversation seq# message", ["conversation", "seq"]);
  },
};

/** Tables that only hubs on several machines need. */
const addClusters: Migration = {
  version: 3,
  name: "clusters",
  async up(db, types) {
    const create = tableCreator(db, types);
    await create("limit_spans", "key span# used# given#", ["key", "span"]);
    await db.schema.createIndex("limit_spans_by_span").on("limit_spans").column("span").execute();
    await create("skill_files", "digest content added_at", ["digest"]);
  },
};

/** Prompts, resources, templates and instructions are pinned too. The key has another column, so the table is made again. */
const pinAllKinds: Migration = {
  version: 4,
  name: "pins of all kinds",
  async up(db, types) {
    const { schema } = db;
    await schema.alterTable("pins").renameTo("pins_of_tools").execute();
    const [columns, key] = [
      "scope server kind tool fingerprint definition pinned_at",
      ["scope", "server", "kind", "tool"],
    ];
    await tableCreator(db, types)("pins", columns, key, "pins_by_kind_key");
    await sql`insert into pins (scope, server, kind, tool, fingerprint, definition, pinned_at)
      select scope, server, 'tool', tool, fingerprint, definition, pinned_at from pins_of_tools`.execute(db);
    await schema.dropTable("pins_of_tools").execute();
  },
};

/** The programs behind sessions and calls. */
const addClients: Migration = {
  version: 5,
  name: "clients",
  async up({ schema }, types) {
    for (const table of ["sessions", "audit"]) await schema.alterTable(table).addColumn("client", types.text).execute();
    await schema.createIndex("audit_by_client").on("audit").columns(["client", "time"]).execute();
  },
};

/** The lists of servers that are started when they are used. */
const addServerLists: Migration = {
  version: 6,
  name: "server lists",
  async up(db, types) {
    await tableCreator(db, types)("server_lists", "server spec lists seen_at", ["server", "spec"]);
  },
};

/** Origins of content that anyone may have written, for conversations, callers and memory-like servers. */
const addTaints: Migration = {
  version: 7,
  name: "taints",
  async up(db, types) {
    await tableCreator(db, types)("taints", "key origins cleared_at# updated_at", ["key"]);
  },
};

/** Sums over calls. The lines of files that are there already are added to them later: `summed` is the first that is not. */
const addCallSums: Migration = {
  version: 8,
  name: "call sums",
  async up(db, types) {
    await tableCreator(db, types)("call_sums", "step# at# subject sums", ["step", "at", "subject"]);
    await db.schema.createIndex("call_sums_by_subject").on("call_sums").columns(["step", "subject", "at"]).execute();
    // As for `tableCreator`.
    const type = types.integer as Parameters<Table["addColumn"]>[1];
    await db.schema
      .alterTable("audit_files")
      .addColumn("summed", type, (column) => column.notNull().defaultTo(0))
      .execute();
  },
};

/** `summed` was -1 of files whose lines were counted as they came. */
const countLater: Migration = {
  version: 9,
  name: "calls are counted later",
  async up(db) {
    await sql`update audit_files set summed = last_seq + 1 where summed < 0`.execute(db);
  },
};

/** About as large as those that are taken in. */
const BLOCK_LENGTH = 256 * 1024;
const LINES_AT_ONCE = 500;

interface AuditLine {
  readonly file: string;
  readonly seq: number;
  readonly chain: string;
  readonly line: string;
  readonly type: string;
  readonly time: string;
}

/** Lines of the audit log had a row each. In code, because a database may hold a text in another form: exact-driver.ts. */
const keepAuditInBlocks: Migration = {
  version: 10,
  name: "audit blocks",
  async up(db, types) {
    // Hubs of an earlier version that write to it wait from here on, and then find that it is gone.
    await db.schema.alterTable("audit").renameTo("audit_lines").execute();
    const columns = "file first_line# chain lines# bytes# first_time last_time text";
    await tableCreator(db, types)("audit_blocks", columns, ["file", "first_line"]);
    let [block, length, firstLine]: [AuditLine[], number, number] = [[], 0, 0];
    const write = async (): Promise<void> => {
      const [first] = block;
      if (first === undefined) return;
      const text = block.map(({ line }) => `${line}\n`).join("");
      const records = block.filter(({ type }) => ["start", "call", "decision", "event"].includes(type));
      const times = records.map(({ time }) => time).toSorted();
      // Without a record it begins after everything and ends before: see `AuditBlock`.
      const [firstTime = "9999", lastTime = ""] = [times[0], times.at(-1)];
      await sql`insert into audit_blocks (file, first_line, chain, lines, bytes, first_time, last_time, text) values
        (${first.file}, ${firstLine}, ${first.chain}, ${block.length}, ${Buffer.byteLength(text)}, ${firstTime}, ${lastTime}, ${text})`.execute(
        db,
      );
      firstLine += block.length;
      [block, length] = [[], 0];
    };
    for (let last: Pick<AuditLine, "file" | "seq"> | undefined = { file: "", seq: -1 }; last !== undefined;) {
      const { rows } = await sql<AuditLine>`select file, seq, chain, line, type, time from audit_lines
        where (file, seq) > (${last.file}, ${last.seq}) order by file, seq limit ${sql.lit(LINES_AT_ONCE)}`.execute(db);
      for (const row of rows) {
        const isOther = block[0] !== undefined && block[0].file !== row.file;
        if (isOther || length > BLOCK_LENGTH) await write();
        if (row.file !== last.file) firstLine = 0;
        block.push(row);
        length += row.line.length;
        last = row;
      }
      if (rows.length === 0) last = undefined;
    }
    await write();
    await db.schema.dropTable("audit_lines").execute();
    await db.schema.alterTable("audit_files").dropColumn("last_seq").execute();
  },
};

/** In their order. A list and no folder listing, because the package is one bundle. */
const MIGRATIONS: readonly Migration[] = [
  createFirstTables,
  addConversations,
  addClusters,
  pinAllKinds,
  addClients,
  addServerLists,
  addTaints,
  addCallSums,
  countLater,
  keepAuditInBlocks,
];

const CURRENT_VERSION = MIGRATIONS.length;
