import { chunks } from "../chunks.ts";
import { conversationNotThere, conversationWrittenElsewhere } from "../conversation-errors.ts";
import type { Engine } from "../engine.ts";
import { mergedFacts } from "../merged-facts.ts";
import { afterCursor, pageOf } from "../page.ts";
import type { StoredConversation, StoredConversations } from "../store.ts";
import { parseObject } from "../stored-json.ts";
import type { Tables } from "../tables.ts";

/** Messages can have images in them: one statement should not carry too many. */
const MESSAGES_AT_ONCE = 16;

export function storedConversations({ db }: Engine, now: () => string): StoredConversations {
  return {
    async get(id) {
      const row = await db.selectFrom("conversations").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : fromRow(row);
    },
    async list({ limit, cursor, cwd, door }) {
      let fitting = db.selectFrom("conversations");
      if (cwd !== undefined) fitting = fitting.where("cwd", "=", cwd);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      let query = fitting
        .selectAll()
        .orderBy("updatedAt", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1);
      if (cursor !== undefined) {
        const [time, id] = afterCursor(cursor);
        query = query.where((eb) => eb(eb.refTuple("updatedAt", "id"), "<", eb.tuple(time, id)));
      }
      return pageOf(await query.execute(), { limit, total, fromRow, timeOf: ({ updatedAt }) => updatedAt });
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
        if (row === undefined) throw conversationNotThere(id);
        const found = fromRow(row);
        if (facts === undefined) return found;
        const changed = { ...found, facts: mergedFacts(found.facts, facts) };
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
        if (found === undefined) throw conversationNotThere(id);
        const { last } = await trx
          .selectFrom("conversationMessages")
          .select((eb) => eb.fn.max("seq").as("last"))
          .where("conversation", "=", id)
          .executeTakeFirstOrThrow();
        const length = last === null ? 0 : last + 1;
        if (length !== after) throw conversationWrittenElsewhere(id, after, length);
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

function fromRow({ facts, ...rest }: Tables["conversations"]): StoredConversation {
  return { ...rest, facts: parseObject(facts) };
}
