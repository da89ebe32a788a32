import { sql } from "kysely";
import { chunks } from "../chunks.ts";
import type { Engine } from "../engine.ts";
import { afterCursor, pageOf } from "../page.ts";
import type { StoredSession, StoredSessions } from "../store.ts";
import { parseObject } from "../stored-json.ts";
import type { Tables } from "../tables.ts";

export function storedSessions({ db }: Engine): StoredSessions {
  return {
    async put(sessions) {
      // The last one of an id counts: one statement must not touch a row twice.
      const rows = [...new Map(sessions.map((session) => [session.id, toRow(session)])).values()];
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
      return row === undefined ? undefined : fromRow(row);
    },
    async list({ limit, cursor, state, door }) {
      let fitting = db.selectFrom("sessions");
      if (state !== undefined) fitting = fitting.where("closedAt", state === "open" ? "is" : "is not", null);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      let query = fitting
        .selectAll()
        .orderBy("openedAt", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1);
      if (cursor !== undefined) {
        const [time, id] = afterCursor(cursor);
        query = query.where((eb) => eb(eb.refTuple("openedAt", "id"), "<", eb.tuple(time, id)));
      }
      return pageOf(await query.execute(), { limit, total, fromRow, timeOf: ({ openedAt }) => openedAt });
    },
    closeLeftOver: (livingHubs, closedAt) =>
      db.transaction().execute(async (trx) => {
        const { numUpdatedRows } = await trx
          .updateTable("sessions")
          .set({ closedAt })
          .where("closedAt", "is", null)
          .where(livingHubs.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`hub not in (${sql.join(livingHubs)})`)
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

function toRow({ owner, taint, ...rest }: StoredSession): Tables["sessions"] {
  return { ...rest, owner: owner ? 1 : 0, taint: taint === null ? null : JSON.stringify(taint) };
}

function fromRow({ owner, taint, ...rest }: Tables["sessions"]): StoredSession {
  return { ...rest, owner: owner === 1, taint: taint === null ? null : parseObject(taint) };
}
