import { sql } from "kysely";
import type { DatabaseEngine } from "../database.ts";
import type { Outbox } from "../outbox.ts";
import type { SealedValues, Settings, StoredLimits } from "../store.ts";

export function storedSettings({ db }: DatabaseEngine, outbox: Outbox): Settings {
  const get = async (key: string): Promise<string | undefined> =>
    (await db.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst())?.value;
  return {
    get,
    set: (key, value) =>
      outbox.write("settings", async (trx) => {
        await trx
          .insertInto("settings")
          .values({ key, value })
          .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
          .execute();
        return { result: undefined, subjects: [key] };
      }),
    async setOnce(key, value) {
      const known = await get(key);
      if (known !== undefined) return known;
      return outbox.write("settings", async (trx) => {
        const row = await trx.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst();
        if (row !== undefined) return { result: row.value, subjects: [] };
        await trx.insertInto("settings").values({ key, value }).execute();
        return { result: value, subjects: [key] };
      });
    },
    exchange: (key, before, after) =>
      outbox.write("settings", async (trx) => {
        const row = await trx.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst();
        if (row?.value !== before) return { result: false, subjects: [] };
        await trx
          .insertInto("settings")
          .values({ key, value: after })
          .onConflict((conflict) => conflict.column("key").doUpdateSet({ value: after }))
          .execute();
        return { result: true, subjects: [key] };
      }),
    remove: (key) =>
      outbox.write("settings", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("settings").where("key", "=", key).executeTakeFirst();
        return { result: numDeletedRows > 0n, subjects: numDeletedRows > 0n ? [key] : [] };
      }),
  };
}

export function storedLimits(engine: DatabaseEngine): StoredLimits {
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
              .doUpdateSet({ used: sql`${sql.ref("limit_spans.used")} + ${asBigint(given)}`, given }),
          )
          .execute();
        return { given, oldest: Math.min(span, taken?.oldest ?? span) };
      }),
    async giveBack(key, span, tokens) {
      await db
        .updateTable("limitSpans")
        .set({ used: sql`case when used > ${asBigint(tokens)} then used - ${asBigint(tokens)} else 0 end` })
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
function asBigint(value: number): ReturnType<typeof sql> {
  return sql`cast(${value} as bigint)`;
}

export function sealedValues({ db }: DatabaseEngine): SealedValues {
  return {
    get: (name) => db.selectFrom("sealedValues").selectAll().where("name", "=", name).executeTakeFirst(),
    async names() {
      const rows = await db.selectFrom("sealedValues").select("name").orderBy("name").execute();
      return rows.map(({ name }) => name);
    },
    put: (value) =>
      db.transaction().execute(async (trx) => {
        await trx
          .insertInto("sealedValues")
          .values(value)
          .onConflict((conflict) => conflict.column("name").doUpdateSet(value))
          .execute();
      }),
    remove: (name) =>
      db.transaction().execute(async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("sealedValues").where("name", "=", name).executeTakeFirst();
        return numDeletedRows > 0n;
      }),
  };
}
