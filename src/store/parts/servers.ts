import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Engine } from "../engine.ts";
import type { Ledger, Trx } from "../ledger.ts";
import type { StoredServer, StoredServers } from "../store.ts";
import { parseObject } from "../stored-json.ts";
import type { Tables } from "../tables.ts";

/** The revision of a server is that of the whole store when it was last written: one that comes back is never mistaken. */
export function storedServers({ db }: Engine, ledger: Ledger): StoredServers {
  return {
    async list() {
      return (await db.selectFrom("servers").selectAll().orderBy("id").execute()).map(fromRow);
    },
    async get(id) {
      const row = await db.selectFrom("servers").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : fromRow(row);
    },
    insert: ({ id, entry, source }) =>
      ledger.write("servers", async (trx, revision) => {
        if ((await find(trx, id)) !== undefined) {
          throw new ToolcribError("conflict", `There is a server "${id}" in the store already.`, {
            hint: "Choose another id, or change that one.",
            details: { id },
          });
        }
        const now = ledger.now();
        const row = { id, ...written(entry), source, createdAt: now, updatedAt: now, revision };
        await trx.insertInto("servers").values(row).execute();
        return { result: fromRow(row), subjects: [id] };
      }),
    update: (id, entry, expected) =>
      ledger.write("servers", async (trx, revision) => {
        const before = await expect(trx, id, expected);
        const row = { ...before, ...written(entry), updatedAt: ledger.now(), revision };
        await trx.updateTable("servers").set(row).where("id", "=", id).execute();
        return { result: fromRow(row), subjects: [id] };
      }),
    remove: (id, expected) =>
      ledger.write("servers", async (trx) => {
        await expect(trx, id, expected);
        await trx.deleteFrom("servers").where("id", "=", id).execute();
        return { result: undefined, subjects: [id] };
      }),
  };
}

type Row = Tables["servers"];

function find(trx: Trx, id: string): Promise<Row | undefined> {
  return trx.selectFrom("servers").selectAll().where("id", "=", id).executeTakeFirst();
}

async function expect(trx: Trx, id: string, revision: number | undefined): Promise<Row> {
  const row = await find(trx, id);
  if (row === undefined) {
    throw new ToolcribError("not_found", `There is no server "${id}" in the store.`, { details: { id } });
  }
  if (revision !== undefined && row.revision !== revision) {
    throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`, {
      hint: "Read it again, and change what you find.",
      details: { id, revision: row.revision },
    });
  }
  return row;
}

function written(entry: JsonObject): Pick<Row, "entry" | "enabled" | "autoConnect"> {
  const off = entry["enabled"] === false || entry["disabled"] === true;
  return { entry: JSON.stringify(entry), enabled: off ? 0 : 1, autoConnect: entry["autoConnect"] === false ? 0 : 1 };
}

function fromRow({ id, entry, source, createdAt, updatedAt, revision }: Row): StoredServer {
  return { id, entry: parseObject(entry), source, createdAt, updatedAt, revision };
}
