import type { Engine } from "../engine.ts";
import type { Ledger } from "../ledger.ts";
import type { Settings } from "../store.ts";

export function storedSettings({ db }: Engine, ledger: Ledger): Settings {
  const get = async (key: string): Promise<string | undefined> =>
    (await db.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst())?.value;
  return {
    get,
    set: (key, value) =>
      ledger.write("settings", async (trx) => {
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
      return ledger.write("settings", async (trx) => {
        const row = await trx.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst();
        if (row !== undefined) return { result: row.value, subjects: [] };
        await trx.insertInto("settings").values({ key, value }).execute();
        return { result: value, subjects: [key] };
      });
    },
    exchange: (key, before, after) =>
      ledger.write("settings", async (trx) => {
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
      ledger.write("settings", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("settings").where("key", "=", key).executeTakeFirst();
        return { result: numDeletedRows > 0n, subjects: numDeletedRows > 0n ? [key] : [] };
      }),
  };
}
