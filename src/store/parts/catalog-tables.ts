import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { chunks, type DatabaseEngine, parseObject, type Tables } from "../database.ts";
import type { Outbox, Trx } from "../outbox.ts";
import type { StoredPins, StoredServer, StoredServers, StoredSkillFiles, StoredSkills } from "../store.ts";

/** The revision of a server is that of the whole store when it was last written: one that comes back is never mistaken. */
export function storedServers({ db }: DatabaseEngine, outbox: Outbox): StoredServers {
  return {
    async list() {
      return (await db.selectFrom("servers").selectAll().orderBy("id").execute()).map(serverOfRow);
    },
    async get(id) {
      const row = await db.selectFrom("servers").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : serverOfRow(row);
    },
    insert: ({ id, entry, source }) =>
      outbox.write("servers", async (trx, revision) => {
        if ((await findServer(trx, id)) !== undefined) {
          throw new ToolcribError("conflict", `There is a server "${id}" in the store already.`, {
            hint: "Choose another id, or change that one.",
            details: { id },
          });
        }
        const now = outbox.now();
        const row = { id, ...serverColumns(entry), source, createdAt: now, updatedAt: now, revision };
        await trx.insertInto("servers").values(row).execute();
        return { result: serverOfRow(row), subjects: [id] };
      }),
    update: (id, entry, expected) =>
      outbox.write("servers", async (trx, revision) => {
        const before = await expectServer(trx, id, expected);
        const row = { ...before, ...serverColumns(entry), updatedAt: outbox.now(), revision };
        await trx.updateTable("servers").set(row).where("id", "=", id).execute();
        return { result: serverOfRow(row), subjects: [id] };
      }),
    remove: (id, expected) =>
      outbox.write("servers", async (trx) => {
        await expectServer(trx, id, expected);
        await trx.deleteFrom("servers").where("id", "=", id).execute();
        return { result: undefined, subjects: [id] };
      }),
  };
}

type ServerRow = Tables["servers"];

function findServer(trx: Trx, id: string): Promise<ServerRow | undefined> {
  return trx.selectFrom("servers").selectAll().where("id", "=", id).executeTakeFirst();
}

async function expectServer(trx: Trx, id: string, revision: number | undefined): Promise<ServerRow> {
  const row = await findServer(trx, id);
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

function serverColumns(entry: JsonObject): Pick<ServerRow, "entry" | "enabled" | "autoConnect"> {
  const off = entry["enabled"] === false || entry["disabled"] === true;
  return { entry: JSON.stringify(entry), enabled: off ? 0 : 1, autoConnect: entry["autoConnect"] === false ? 0 : 1 };
}

function serverOfRow({ id, entry, source, createdAt, updatedAt, revision }: ServerRow): StoredServer {
  return { id, entry: parseObject(entry), source, createdAt, updatedAt, revision };
}

/** All skills have one stamp. */
const ALL = "";

export function storedSkills({ db }: DatabaseEngine, outbox: Outbox): StoredSkills {
  return {
    async list() {
      const rows = await db.selectFrom("skills").selectAll().orderBy("id").execute();
      return rows.map(({ id, manifest }) => ({ id, manifest: parseObject(manifest) }));
    },
    stamp: () => outbox.stamp("skills", ALL),
    async change(put, remove) {
      if (put.length === 0 && remove.length === 0) return;
      await outbox.write("skills", async (trx) => {
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

export function storedSkillFiles({ db }: DatabaseEngine, now: () => string): StoredSkillFiles {
  return {
    async put(digest, bytes) {
      const addedAt = now();
      await db
        .insertInto("skillFiles")
        .values({ digest, content: Buffer.from(bytes).toString("base64"), addedAt })
        // It is about to be referred to, so it must not be removed as unused.
        .onConflict((conflict) => conflict.column("digest").doUpdateSet({ addedAt }))
        .execute();
    },
    async get(digest) {
      const row = await db.selectFrom("skillFiles").select("content").where("digest", "=", digest).executeTakeFirst();
      return row && Buffer.from(row.content, "base64");
    },
    async prune(kept, before) {
      const rows = await db.selectFrom("skillFiles").select("digest").where("addedAt", "<", before).execute();
      for (const { digest } of rows) {
        if (!kept.has(digest)) await db.deleteFrom("skillFiles").where("digest", "=", digest).execute();
      }
    },
  };
}

export function storedPins({ db }: DatabaseEngine, outbox: Outbox): StoredPins {
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
    stamp: (scope) => outbox.stamp("pins", scope),
    async change(scope, put, remove) {
      if (put.length === 0 && remove.length === 0) return;
      await outbox.write("pins", async (trx) => {
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
