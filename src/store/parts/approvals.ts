import { sql } from "kysely";
import type { Engine } from "../engine.ts";
import { ANYTHING, type Ledger } from "../ledger.ts";
import { afterCursor, pageOf } from "../page.ts";
import type { StoredApproval, StoredApprovals } from "../store.ts";
import { parseObject } from "../stored-json.ts";
import type { Tables } from "../tables.ts";

export function storedApprovals({ db }: Engine, ledger: Ledger): StoredApprovals {
  return {
    put: (approval) =>
      ledger.write("approvals", async (trx) => {
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
      return row === undefined ? undefined : fromRow(row);
    },
    async list({ limit, cursor, status }) {
      const fitting = db.selectFrom("approvals").$if(status !== undefined, (query) =>
        // Checked in the line above.
        query.where("status", "=", status as StoredApproval["status"]),
      );
      const { total } = await fitting.select((eb) => eb.fn.countAll().as("total")).executeTakeFirstOrThrow();
      let query = fitting
        .selectAll()
        .orderBy("askedAt", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1);
      if (cursor !== undefined) {
        const [time, id] = afterCursor(cursor);
        query = query.where((eb) => eb(eb.refTuple("askedAt", "id"), "<", eb.tuple(time, id)));
      }
      return pageOf(await query.execute(), { limit, total, fromRow, timeOf: ({ askedAt }) => askedAt });
    },
    expire: (livingHubs) =>
      ledger.write("approvals", async (trx) => {
        const expired = await trx
          .updateTable("approvals")
          .set({ status: "expired" })
          .where("status", "=", "pending")
          .where(livingHubs.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`hub not in (${sql.join(livingHubs)})`)
          .returning("id")
          .execute();
        return { result: expired.length, subjects: expired.map(({ id }) => id) };
      }),
    prune: (before) =>
      ledger.write("approvals", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("approvals").where("askedAt", "<", before).executeTakeFirst();
        return { result: Number(numDeletedRows), subjects: numDeletedRows > 0n ? [ANYTHING] : [] };
      }),
  };
}

function fromRow(row: Tables["approvals"]): StoredApproval {
  return { ...row, request: parseObject(row.request) };
}
