import { chunks } from "../chunks.ts";
import type { Engine } from "../engine.ts";
import type { Ledger } from "../ledger.ts";
import type { StoredPins } from "../store.ts";
import { parseObject } from "../stored-json.ts";

export function storedPins({ db }: Engine, ledger: Ledger): StoredPins {
  return {
    async list(scope) {
      const rows = await db
        .selectFrom("pins")
        .selectAll()
        .where("scope", "=", scope)
        .orderBy("server")
        .orderBy("kind")
        .orderBy("tool")
        .execute();
      return rows.map(({ server, kind, tool, fingerprint, definition, pinnedAt }) => ({
        server,
        kind,
        tool,
        fingerprint,
        definition: parseObject(definition),
        pinnedAt,
      }));
    },
    stamp: (scope) => ledger.stamp("pins", scope),
    async change(scope, put, remove) {
      if (put.length === 0 && remove.length === 0) return;
      await ledger.write("pins", async (trx) => {
        for (const some of chunks(remove, 200)) {
          await trx
            .deleteFrom("pins")
            .where("scope", "=", scope)
            .where((eb) => eb.or(some.map(({ server, kind, tool }) => eb.and({ server, kind, tool }))))
            .execute();
        }
        for (const some of chunks(put)) {
          await trx
            .insertInto("pins")
            .values(
              some.map(({ server, kind, tool, fingerprint, definition, pinnedAt }) => ({
                scope,
                server,
                kind,
                tool,
                fingerprint,
                definition: JSON.stringify(definition),
                pinnedAt,
              })),
            )
            .onConflict((conflict) =>
              conflict.columns(["scope", "server", "kind", "tool"]).doUpdateSet((eb) => ({
                fingerprint: eb.ref("excluded.fingerprint"),
                definition: eb.ref("excluded.definition"),
                pinnedAt: eb.ref("excluded.pinnedAt"),
              })),
            )
            .execute();
        }
        return { result: undefined, subjects: [scope], stamp: scope };
      });
    },
  };
}
