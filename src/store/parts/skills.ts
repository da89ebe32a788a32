import { chunks } from "../chunks.ts";
import type { Engine } from "../engine.ts";
import type { Ledger } from "../ledger.ts";
import type { StoredSkills } from "../store.ts";
import { parseObject } from "../stored-json.ts";

/** All skills have one stamp. */
const ALL = "";

export function storedSkills({ db }: Engine, ledger: Ledger): StoredSkills {
  return {
    async list() {
      const rows = await db.selectFrom("skills").selectAll().orderBy("id").execute();
      return rows.map(({ id, manifest }) => ({ id, manifest: parseObject(manifest) }));
    },
    stamp: () => ledger.stamp("skills", ALL),
    async change(put, remove) {
      if (put.length === 0 && remove.length === 0) return;
      await ledger.write("skills", async (trx) => {
        for (const ids of chunks(remove)) await trx.deleteFrom("skills").where("id", "in", ids).execute();
        for (const some of chunks(put)) {
          await trx
            .insertInto("skills")
            .values(some.map(({ id, manifest }) => ({ id, manifest: JSON.stringify(manifest) })))
            .onConflict((conflict) =>
              conflict.column("id").doUpdateSet((eb) => ({ manifest: eb.ref("excluded.manifest") })),
            )
            .execute();
        }
        const subjects = [...new Set([...remove, ...put.map(({ id }) => id)])];
        return { result: undefined, subjects, stamp: ALL };
      });
    },
  };
}
