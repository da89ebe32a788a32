/** The tables of what happens: sessions, approvals and conversations, listed by time. */
import { type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import { chunks, type DatabaseEngine, parseObject, type Tables } from "../database.ts";
import { ANY_SUBJECT, type Outbox } from "../outbox.ts";
import { readTimeCursor, pageOf } from "../page-cursor.ts";
import {
  conversationConflictError,
  conversationNotFoundError,
  mergeFacts,
  type PageOptions,
  type StoredApproval,
  type StoredApprovals,
  type StoredConversation,
  type StoredConversations,
  type StoredSession,
  type StoredSessions,
} from "../store.ts";

/** One row more than the limit, if there are more; by id where the times are the same. */
function newestFirst<Db, Table extends keyof Db, Row>(
  query: SelectQueryBuilder<Db, Table, Row>,
  time: string,
  { limit, cursor }: PageOptions,
): SelectQueryBuilder<Db, Table, Row> {
  const sorted = query
    .orderBy(sql.ref(time), "desc")
    .orderBy(sql.ref("id"), "desc")
    .limit(limit + 1);
  if (cursor === undefined) return sorted;
  const [before, id] = readTimeCursor(cursor);
  return sorted.where(sql<boolean>`(${sql.ref(time)}, ${sql.ref("id")}) < (${before}, ${id})`);
}

function ofOtherHubs(hubs: readonly string[]): RawBuilder<boolean> {
  return hubs.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`hub not in (${sql.join(hubs)})`;
}

export function storedSessions({ db }: DatabaseEngine): StoredSessions {
  return {
    async put(sessions) {
      // The last one of an id counts: one statement must not touch a row twice.
      const rows = [...new Map(sessions.map((session) => [session.id, rowOfSession(session)])).values()];
      if (rows.length === 0) return;
      await db.transaction().execute(async (trx) => {
        for (const some of chunks(rows)) {
          await trx
            .insertInto("sessions")
            .values(some)
            .onConflict((conflict) =>
              conflict.column("id").doUpdateSet((eb) => ({
                hub: eb.ref("excluded.hub"),
                door: eb.ref("excluded.door"),
                role: eb.ref("excluded.role"),
                user: eb.ref("excluded.user"),
                owner: eb.ref("excluded.owner"),
                openedAt: eb.ref("excluded.openedAt"),
                closedAt: eb.ref("excluded.closedAt"),
                lastCallAt: eb.ref("excluded.lastCallAt"),
                calls: eb.ref("excluded.calls"),
                taint: eb.ref("excluded.taint"),
              })),
            )
            .execute();
        }
      });
    },
    async get(id) {
      const row = await db.selectFrom("sessions").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : sessionOfRow(row);
    },
    async list({ limit, cursor, state, door }) {
      let fitting = db.selectFrom("sessions");
      if (state !== undefined) fitting = fitting.where("closedAt", state === "open" ? "is" : "is not", null);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      const rows = await newestFirst(fitting.selectAll(), "openedAt", { limit, cursor }).execute();
      return pageOf(rows, { limit, total, fromRow: sessionOfRow, timeOf: ({ openedAt }) => openedAt });
    },
    closeLeftOver: (livingHubs, closedAt) =>
      db.transaction().execute(async (trx) => {
        const { numUpdatedRows } = await trx
          .updateTable("sessions")
          .set({ closedAt })
          .where("closedAt", "is", null)
          .where(ofOtherHubs(livingHubs))
          .executeTakeFirst();
        return Number(numUpdatedRows);
      }),
    prune: (before) =>
      db.transaction().execute(async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("sessions").where("closedAt", "<", before).executeTakeFirst();
        return Number(numDeletedRows);
      }),
  };
}

function rowOfSession({ owner, taint, ...rest }: StoredSession): Tables["sessions"] {
  return { ...rest, owner: owner ? 1 : 0, taint: taint === null ? null : JSON.stringify(taint) };
}

function sessionOfRow({ owner, taint, ...rest }: Tables["sessions"]): StoredSession {
  return { ...rest, owner: owner === 1, taint: taint === null ? null : parseObject(taint) };
}

export function storedApprovals({ db }: DatabaseEngine, outbox: Outbox): StoredApprovals {
  return {
    put: (approval) =>
      outbox.write("approvals", async (trx) => {
        const row = { ...approval, request: JSON.stringify(approval.request) };
        await trx
          .insertInto("approvals")
          .values(row)
          .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
          .execute();
        return { result: undefined, subjects: [approval.id] };
      }),
    async get(id) {
      const row = await db.selectFrom("approvals").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : approvalOfRow(row);
    },
    async list({ limit, cursor, status }) {
      let fitting = db.selectFrom("approvals");
      if (status !== undefined) fitting = fitting.where("status", "=", status);
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      const rows = await newestFirst(fitting.selectAll(), "askedAt", { limit, cursor }).execute();
      return pageOf(rows, { limit, total, fromRow: approvalOfRow, timeOf: ({ askedAt }) => askedAt });
    },
    expire: (livingHubs) =>
      outbox.write("approvals", async (trx) => {
        const expired = await trx
          .updateTable("approvals")
          .set({ status: "expired" })
          .where("status", "=", "pending")
          .where(ofOtherHubs(livingHubs))
          .returning("id")
          .execute();
        return { result: expired.length, subjects: expired.map(({ id }) => id) };
      }),
    prune: (before) =>
      outbox.write("approvals", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("approvals").where("askedAt", "<", before).executeTakeFirst();
        return { result: Number(numDeletedRows), subjects: numDeletedRows > 0n ? [ANY_SUBJECT] : [] };
      }),
  };
}

function approvalOfRow(row: Tables["approvals"]): StoredApproval {
  return { ...row, request: parseObject(row.request) };
}

/** Messages can have images in them: one statement should not carry too many. */
const MESSAGES_AT_ONCE = 16;

export function storedConversations({ db }: DatabaseEngine, now: () => string): StoredConversations {
  return {
    async get(id) {
      const row = await db.selectFrom("conversations").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : conversationOfRow(row);
    },
    async list({ limit, cursor, cwd, door }) {
      let fitting = db.selectFrom("conversations");
      if (cwd !== undefined) fitting = fitting.where("cwd", "=", cwd);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      const rows = await newestFirst(fitting.selectAll(), "updatedAt", { limit, cursor }).execute();
      return pageOf(rows, {
        limit,
        total,
        fromRow: conversationOfRow,
        timeOf: ({ updatedAt }) => updatedAt,
      });
    },
    async put(conversation) {
      const row = { ...conversation, facts: JSON.stringify(conversation.facts) };
      await db.transaction().execute(async (trx) => {
        await trx
          .insertInto("conversations")
          .values(row)
          .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
          .execute();
      });
    },
    change: (id, { facts, ...rest }) =>
      db.transaction().execute(async (trx) => {
        // Changing the row first makes writers come one after another: what is read then is what the last one left.
        const row = await trx
          .updateTable("conversations")
          .set({ ...rest, updatedAt: now() })
          .where("id", "=", id)
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) throw conversationNotFoundError(id);
        const found = conversationOfRow(row);
        if (facts === undefined) return found;
        const changed = { ...found, facts: mergeFacts(found.facts, facts) };
        await trx
          .updateTable("conversations")
          .set({ facts: JSON.stringify(changed.facts) })
          .where("id", "=", id)
          .execute();
        return changed;
      }),
    async messages(id) {
      const rows = await db
        .selectFrom("conversationMessages")
        .select("message")
        .where("conversation", "=", id)
        .orderBy("seq")
        .execute();
      return rows.map(({ message }) => parseObject(message));
    },
    append: (id, after, messages) =>
      db.transaction().execute(async (trx) => {
        // Changing the row first makes writers of one conversation come one after another.
        const found = await trx
          .updateTable("conversations")
          .set({ updatedAt: now() })
          .where("id", "=", id)
          .returning("id")
          .executeTakeFirst();
        if (found === undefined) throw conversationNotFoundError(id);
        const { last } = await trx
          .selectFrom("conversationMessages")
          .select((eb) => eb.fn.max("seq").as("last"))
          .where("conversation", "=", id)
          .executeTakeFirstOrThrow();
        const length = last === null ? 0 : last + 1;
        if (length !== after) throw conversationConflictError(id, after, length);
        const rows = messages.map((message, index) => ({
          conversation: id,
          seq: after + index,
          message: JSON.stringify(message),
        }));
        for (const some of chunks(rows, MESSAGES_AT_ONCE)) {
          await trx.insertInto("conversationMessages").values(some).execute();
        }
      }),
    remove: (id) =>
      db.transaction().execute(async (trx) => {
        await trx.deleteFrom("conversationMessages").where("conversation", "=", id).execute();
        const { numDeletedRows } = await trx.deleteFrom("conversations").where("id", "=", id).executeTakeFirst();
        return numDeletedRows > 0n;
      }),
    prune: (before) =>
      db.transaction().execute(async (trx) => {
        const old = trx.selectFrom("conversations").select("id").where("updatedAt", "<", before);
        await trx.deleteFrom("conversationMessages").where("conversation", "in", old).execute();
        const { numDeletedRows } = await trx
          .deleteFrom("conversations")
          .where("updatedAt", "<", before)
          .executeTakeFirst();
        return Number(numDeletedRows);
      }),
  };
}

function conversationOfRow({ facts, ...rest }: Tables["conversations"]): StoredConversation {
  return { ...rest, facts: parseObject(facts) };
}
