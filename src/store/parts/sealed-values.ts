import type { Engine } from "../engine.ts";
import type { SealedValues } from "../store.ts";

export function sealedValues({ db }: Engine): SealedValues {
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
