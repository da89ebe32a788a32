import { sql } from "kysely";
import type { Engine } from "../engine.ts";
import type { StoredLimits } from "../store.ts";

export function storedLimits(engine: Engine): StoredLimits {
  const { db } = engine;
  return {
    take: ({ key, span, since, limit, want }) =>
      db.transaction().execute(async (trx) => {
        await engine.lock(trx, `limit ${key}`);
        // Spans to come as well: a process whose clock is ahead counts in them.
        const taken = await trx
          .selectFrom("limitSpans")
          .select((eb) => [eb.fn.sum<number | string | null>("used").as("used"), eb.fn.min("span").as("oldest")])
          .where("key", "=", key)
          .where("span", ">=", since)
          .where("used", ">", 0)
          .executeTakeFirst();
        const given = Math.max(0, Math.min(want, limit - Number(taken?.used ?? 0)));
        await trx
          .insertInto("limitSpans")
          .values({ key, span, used: given, given })
          .onConflict((conflict) =>
            conflict
              .columns(["key", "span"])
              .doUpdateSet({ used: sql`${sql.ref("limit_spans.used")} + ${whole(given)}`, given }),
          )
          .execute();
        return { given, oldest: Math.min(span, taken?.oldest ?? span) };
      }),
    async giveBack(key, span, tokens) {
      await db
        .updateTable("limitSpans")
        .set({ used: sql`case when used > ${whole(tokens)} then used - ${whole(tokens)} else 0 end` })
        .where("key", "=", key)
        .where("span", "=", span)
        .execute();
    },
    async prune(before) {
      await db.deleteFrom("limitSpans").where("span", "<", before).execute();
    },
  };
}

/** A bare parameter has no type in PostgreSQL where nothing beside it says one. */
function whole(value: number): ReturnType<typeof sql> {
  return sql`cast(${value} as bigint)`;
}
