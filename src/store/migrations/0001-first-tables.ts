import type { Kysely } from "kysely";
import { type Columns, columnsOf } from "./columns.ts";
import type { Migration } from "./migration.ts";

export const firstTables: Migration = {
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
