/** The store over an engine: each of its parts as queries of its tables. */
import { randomUUID } from "node:crypto";
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../model/json.ts";
import { chunks, type DatabaseEngine, parseObject, type Tables, upsert } from "./database.ts";
import { ANY_SUBJECT, ChangeFeed, Outbox, type Trx } from "./outbox.ts";
import { makeCursor, readCursor } from "./page-cursor.ts";
import { storedAudit } from "./parts/audit.ts";
import {
  type BusyStore,
  conversationConflictError,
  conversationNotFoundError,
  mergeFacts,
  type Page,
  type PageOptions,
  type SealedValues,
  type Settings,
  type Store,
  type StoredApproval,
  type StoredApprovals,
  type StoredConversation,
  type StoredConversations,
  type StoredLimits,
  type StoredList,
  type StoredLists,
  type StoredPins,
  type StoredServer,
  type StoredServers,
  type StoredSession,
  type StoredSessions,
  type StoredSkillFiles,
  type StoredSkills,
  type StoredTaint,
  type StoredTaints,
} from "./store.ts";

/** For those who wait until a program has ended. */
const END_MS = 4000;

interface DatabaseStoreOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** The engine's tables must be of the current version. */
export async function databaseStore(engine: DatabaseEngine, { clock, warn }: DatabaseStoreOptions): Promise<Store> {
  const { db, kind, place, address } = engine;
  const id = randomUUID();
  const outbox = new Outbox(engine, id, clock);
  const { value: seen } = await db.selectFrom("counter").select("value").executeTakeFirstOrThrow();
  const feed = new ChangeFeed({ db, self: id, seen, watch: (look) => engine.watch(look), warn });
  let closing: Promise<void> | undefined;
  let ending: NodeJS.Timeout | undefined;
  const endSoon = (): void => {
    if (engine.giveUp !== undefined) ending ??= setTimeout(() => engine.giveUp?.(), END_MS);
  };
  const close = async (): Promise<void> => {
    endSoon();
    try {
      await feed.close();
      await engine.close();
    } finally {
      clearTimeout(ending);
    }
  };
  return {
    kind,
    id,
    place,
    address,
    get trouble() {
      return engine.trouble;
    },
    servers: storedServers(engine, outbox),
    skills: storedSkills(engine, outbox),
    skillFiles: storedSkillFiles(engine, () => outbox.now()),
    pins: storedPins(engine, outbox),
    lists: storedLists(engine, () => outbox.now()),
    approvals: storedApprovals(engine, outbox),
    sessions: storedSessions(engine),
    audit: storedAudit(engine),
    sealed: sealedValues(engine),
    conversations: storedConversations(engine, () => outbox.now()),
    taints: storedTaints(engine, outbox),
    settings: storedSettings(engine, outbox),
    limits: storedLimits(engine),
    follow: (listener) => feed.add(listener),
    backup: (file) => engine.copyTo(file),
    endSoon,
    close: () => (closing ??= close()),
  };
}

export function busyStore(engine: DatabaseEngine): BusyStore {
  return { audit: storedAudit(engine), sessions: storedSessions(engine), close: () => engine.close() };
}

/** The revision of a server is that of the whole store when it was last written: one that comes back is never mistaken. */
function storedServers({ db }: DatabaseEngine, outbox: Outbox): StoredServers {
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

const MANIFESTS_AT_ONCE = 50;

function storedSkills({ db }: DatabaseEngine, outbox: Outbox): StoredSkills {
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
        // Thousands of manifests as text take more memory than all the rest.
        for (const some of chunks(put, MANIFESTS_AT_ONCE)) {
          const rows = some.map(({ id, manifest }) => ({ id, manifest: JSON.stringify(manifest) }));
          await upsert(trx, "skills", ["id"], rows);
        }
        const subjects = [...new Set([...remove, ...put.map(({ id }) => id)])];
        return { result: undefined, subjects, stamp: ALL };
      });
    },
  };
}

function storedLists({ db }: DatabaseEngine, now: () => string): StoredLists {
  return {
    async get(keys) {
      const found: StoredList[] = [];
      for (const some of chunks(keys)) {
        const specs = some.map(({ spec }) => spec);
        found.push(
          ...(await db
            .selectFrom("serverLists")
            .select(["server", "spec", "lists"])
            .where("spec", "in", specs)
            .execute()),
        );
      }
      return found.filter(({ server, spec }) => keys.some((key) => key.server === server && key.spec === spec));
    },
    async put(entries) {
      const seenAt = now();
      const rows = entries.map((entry) => ({ ...entry, seenAt }));
      await upsert(db, "serverLists", ["server", "spec"], rows);
    },
    async remove(server) {
      await db.deleteFrom("serverLists").where("server", "=", server).execute();
    },
    async prune(before) {
      await db.deleteFrom("serverLists").where("seenAt", "<", before).execute();
    },
  };
}

function storedSkillFiles({ db }: DatabaseEngine, now: () => string): StoredSkillFiles {
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

function storedPins({ db }: DatabaseEngine, outbox: Outbox): StoredPins {
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
      return rows.map(({ scope: _scope, definition, ...pin }) => ({ ...pin, definition: parseObject(definition) }));
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
        const rows = put.map(({ server, kind, tool, fingerprint, definition, pinnedAt }) => {
          return { scope, server, kind, tool, fingerprint, definition: JSON.stringify(definition), pinnedAt };
        });
        await upsert(trx, "pins", ["scope", "server", "kind", "tool"], rows);
        return { result: undefined, subjects: [scope], stamp: scope };
      });
    },
  };
}

interface Listing<Row, Entry> extends PageOptions {
  /** The column that the list is sorted by. */
  readonly time: keyof Row & keyof Entry & string;
  readonly fromRow: (row: Row) => Entry;
}

/** One page of the rows, the newest first; by id where the times are the same. */
async function listPage<Db, Table extends keyof Db, Row, Entry extends { readonly id: string }>(
  rows: SelectQueryBuilder<Db, Table, unknown>,
  { limit, cursor, time, fromRow }: Listing<Row, Entry>,
): Promise<Page<Entry>> {
  const count = rows.select((eb) => eb.fn.countAll().as("total")).$castTo<{ total: string | number | bigint }>();
  const { total } = await count.executeTakeFirstOrThrow();
  let sorted = rows
    .selectAll()
    .orderBy(sql.ref(time), "desc")
    .orderBy(sql.ref("id"), "desc")
    .limit(limit + 1);
  if (cursor !== undefined) {
    const [before, id] = readCursor(cursor, ["", ""] as const satisfies [string, string]);
    sorted = sorted.where(sql<boolean>`(${sql.ref(time)}, ${sql.ref("id")}) < (${before}, ${id})`);
  }
  const found = await sorted.$castTo<Row>().execute();
  const entries = found.slice(0, limit).map(fromRow);
  const last = found.length > limit ? entries.at(-1) : undefined;
  const nextCursor = last === undefined ? undefined : makeCursor([String(last[time]), last.id]);
  return { entries, total: Number(total), nextCursor };
}

function ofOtherHubs(hubs: readonly string[]): RawBuilder<boolean> {
  return hubs.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`hub not in (${sql.join(hubs)})`;
}

function storedSessions({ db }: DatabaseEngine): StoredSessions {
  return {
    async put(sessions) {
      // The last one of an id counts: one statement must not touch a row twice.
      const rows = [...new Map(sessions.map((session) => [session.id, rowOfSession(session)])).values()];
      if (rows.length > 0) await db.transaction().execute((trx) => upsert(trx, "sessions", ["id"], rows));
    },
    async get(id) {
      const row = await db.selectFrom("sessions").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : sessionOfRow(row);
    },
    async list({ limit, cursor, state, door }) {
      let fitting = db.selectFrom("sessions");
      if (state !== undefined) fitting = fitting.where("closedAt", state === "open" ? "is" : "is not", null);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      return listPage(fitting, { limit, cursor, time: "openedAt", fromRow: sessionOfRow });
    },
    async closeLeftOver(livingHubs, closedAt) {
      const { numUpdatedRows } = await db
        .updateTable("sessions")
        .set({ closedAt })
        .where("closedAt", "is", null)
        .where(ofOtherHubs(livingHubs))
        .executeTakeFirst();
      return Number(numUpdatedRows);
    },
    async prune(before) {
      const { numDeletedRows } = await db.deleteFrom("sessions").where("closedAt", "<", before).executeTakeFirst();
      return Number(numDeletedRows);
    },
  };
}

function rowOfSession({ owner, taint, client, ...rest }: StoredSession): Tables["sessions"] {
  const text = (value: JsonObject | null): string | null => (value === null ? null : JSON.stringify(value));
  return { ...rest, owner: owner ? 1 : 0, taint: text(taint), client: text(client) };
}

function sessionOfRow({ owner, taint, client, ...rest }: Tables["sessions"]): StoredSession {
  const object = (text: string | null): JsonObject | null => (text === null ? null : parseObject(text));
  return { ...rest, owner: owner === 1, taint: object(taint), client: object(client) };
}

function storedApprovals({ db }: DatabaseEngine, outbox: Outbox): StoredApprovals {
  return {
    put: (...approvals) =>
      outbox.write("approvals", async (trx) => {
        const last = new Map(approvals.map((each) => [each.id, { ...each, request: JSON.stringify(each.request) }]));
        await upsert(trx, "approvals", ["id"], [...last.values()]);
        return { result: undefined, subjects: [...last.keys()] };
      }),
    async get(id) {
      const row = await db.selectFrom("approvals").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : approvalOfRow(row);
    },
    async list({ limit, cursor, status }) {
      let fitting = db.selectFrom("approvals");
      if (status !== undefined) fitting = fitting.where("status", "=", status);
      return listPage(fitting, { limit, cursor, time: "askedAt", fromRow: approvalOfRow });
    },
    expire: (livingHubs) =>
      outbox.write("approvals", async (trx) => {
        const expired = await trx
          .updateTable("approvals")
          .set({ status: "expired" })
          .where("status", "=", "pending")
          .where(ofOtherHubs(livingHubs))
          .returning("id")
          .execute();
        return { result: expired.length, subjects: expired.map(({ id }) => id) };
      }),
    prune: (before) =>
      outbox.write("approvals", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("approvals").where("askedAt", "<", before).executeTakeFirst();
        return { result: Number(numDeletedRows), subjects: numDeletedRows > 0n ? [ANY_SUBJECT] : [] };
      }),
  };
}

function approvalOfRow(row: Tables["approvals"]): StoredApproval {
  return { ...row, request: parseObject(row.request) };
}

/** Messages can have images in them: one statement should not carry too many. */
const MESSAGES_AT_ONCE = 16;

function storedConversations({ db }: DatabaseEngine, now: () => string): StoredConversations {
  return {
    async get(id) {
      const row = await db.selectFrom("conversations").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : conversationOfRow(row);
    },
    async list({ limit, cursor, cwd, door }) {
      let fitting = db.selectFrom("conversations");
      if (cwd !== undefined) fitting = fitting.where("cwd", "=", cwd);
      if (door !== undefined) fitting = fitting.where("door", "=", door);
      return listPage(fitting, { limit, cursor, time: "updatedAt", fromRow: conversationOfRow });
    },
    put: (conversation) =>
      upsert(db, "conversations", ["id"], [{ ...conversation, facts: JSON.stringify(conversation.facts) }]),
    change: (id, { facts, ...rest }) =>
      db.transaction().execute(async (trx) => {
        // Changing the row first makes writers come one after another: what is read then is what the last one left.
        const row = await trx
          .updateTable("conversations")
          .set({ ...rest, updatedAt: now() })
          .where("id", "=", id)
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) throw conversationNotFoundError(id);
        const found = conversationOfRow(row);
        if (facts === undefined) return found;
        const changed = { ...found, facts: mergeFacts(found.facts, facts) };
        await trx
          .updateTable("conversations")
          .set({ facts: JSON.stringify(changed.facts) })
          .where("id", "=", id)
          .execute();
        return changed;
      }),
    async messages(id) {
      const rows = await db
        .selectFrom("conversationMessages")
        .select("message")
        .where("conversation", "=", id)
        .orderBy("seq")
        .execute();
      return rows.map(({ message }) => parseObject(message));
    },
    append: (id, after, messages) =>
      db.transaction().execute(async (trx) => {
        // Changing the row first makes writers of one conversation come one after another.
        const found = await trx
          .updateTable("conversations")
          .set({ updatedAt: now() })
          .where("id", "=", id)
          .returning("id")
          .executeTakeFirst();
        if (found === undefined) throw conversationNotFoundError(id);
        const { last } = await trx
          .selectFrom("conversationMessages")
          .select((eb) => eb.fn.max("seq").as("last"))
          .where("conversation", "=", id)
          .executeTakeFirstOrThrow();
        const length = last === null ? 0 : last + 1;
        if (length !== after) throw conversationConflictError(id, after, length);
        const rows = messages.map((message, index) => ({
          conversation: id,
          seq: after + index,
          message: JSON.stringify(message),
        }));
        for (const some of chunks(rows, MESSAGES_AT_ONCE)) {
          await trx.insertInto("conversationMessages").values(some).execute();
        }
      }),
    remove: (id) =>
      db.transaction().execute(async (trx) => {
        await trx.deleteFrom("conversationMessages").where("conversation", "=", id).execute();
        const { numDeletedRows } = await trx.deleteFrom("conversations").where("id", "=", id).executeTakeFirst();
        return numDeletedRows > 0n;
      }),
    prune: (before) =>
      db.transaction().execute(async (trx) => {
        const old = trx.selectFrom("conversations").select("id").where("updatedAt", "<", before);
        await trx.deleteFrom("conversationMessages").where("conversation", "in", old).execute();
        const gone = trx.deleteFrom("conversations").where("updatedAt", "<", before);
        const { numDeletedRows } = await gone.executeTakeFirst();
        return Number(numDeletedRows);
      }),
  };
}

function conversationOfRow({ facts, ...rest }: Tables["conversations"]): StoredConversation {
  return { ...rest, facts: parseObject(facts) };
}

function storedTaints({ db }: DatabaseEngine, outbox: Outbox): StoredTaints {
  const get = async (key: string, within: Kysely<Tables> = db): Promise<StoredTaint | undefined> => {
    const row = await within.selectFrom("taints").selectAll().where("key", "=", key).executeTakeFirst();
    return row && taintOfRow(row);
  };
  return {
    get: (key) => get(key),
    async list(prefix) {
      const rows = await db
        .selectFrom("taints")
        .selectAll()
        .where("key", "like", `${prefix}%`)
        .orderBy("key")
        .execute();
      return rows.map(taintOfRow);
    },
    change: (key, change) =>
      outbox.write("taints", async (trx) => {
        const { origins, clearedAt } = change(await get(key, trx));
        const row = { key, origins: JSON.stringify(origins), clearedAt, updatedAt: outbox.now() };
        await upsert(trx, "taints", ["key"], [row]);
        return { result: undefined, subjects: [key] };
      }),
    remove: async (key) => void (await db.deleteFrom("taints").where("key", "=", key).execute()),
    async prune(prefix, before) {
      const old = db.deleteFrom("taints").where("key", "like", `${prefix}%`).where("updatedAt", "<", before);
      return Number((await old.executeTakeFirst()).numDeletedRows);
    },
  };
}

function taintOfRow({ origins, ...rest }: Tables["taints"]): StoredTaint {
  const parsed = parseJson(origins);
  return { ...rest, origins: Array.isArray(parsed) ? parsed.filter(isJsonObject) : [] };
}

function storedSettings({ db }: DatabaseEngine, outbox: Outbox): Settings {
  const get = async (key: string, within: Kysely<Tables> = db): Promise<string | undefined> =>
    (await within.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst())?.value;
  return {
    get: (key) => get(key),
    set: (key, value) =>
      outbox.write("settings", async (trx) => {
        await upsert(trx, "settings", ["key"], [{ key, value }]);
        return { result: undefined, subjects: [key] };
      }),
    async setOnce(key, value) {
      const known = await get(key);
      if (known !== undefined) return known;
      return outbox.write("settings", async (trx) => {
        const found = await get(key, trx);
        if (found !== undefined) return { result: found, subjects: [] };
        await trx.insertInto("settings").values({ key, value }).execute();
        return { result: value, subjects: [key] };
      });
    },
    exchange: (key, before, after) =>
      outbox.write("settings", async (trx) => {
        if ((await get(key, trx)) !== before) return { result: false, subjects: [] };
        await upsert(trx, "settings", ["key"], [{ key, value: after }]);
        return { result: true, subjects: [key] };
      }),
    remove: (key) =>
      outbox.write("settings", async (trx) => {
        const { numDeletedRows } = await trx.deleteFrom("settings").where("key", "=", key).executeTakeFirst();
        return { result: numDeletedRows > 0n, subjects: numDeletedRows > 0n ? [key] : [] };
      }),
  };
}

function storedLimits(engine: DatabaseEngine): StoredLimits {
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

function sealedValues({ db }: DatabaseEngine): SealedValues {
  return {
    get: (name) => db.selectFrom("sealedValues").selectAll().where("name", "=", name).executeTakeFirst(),
    async names() {
      const rows = await db.selectFrom("sealedValues").select("name").orderBy("name").execute();
      return rows.map(({ name }) => name);
    },
    put: (value) => upsert(db, "sealedValues", ["name"], [value]),
    async remove(name) {
      const { numDeletedRows } = await db.deleteFrom("sealedValues").where("name", "=", name).executeTakeFirst();
      return numDeletedRows > 0n;
    },
  };
}
