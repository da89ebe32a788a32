/** The lines of the audit log, each exactly as it was written, with what can be asked for beside it. */
import { CompiledQuery, type Kysely, sql } from "kysely";
import { chunks, type DatabaseEngine, type Tables } from "../database.ts";
import type { Trx } from "../outbox.ts";
import { makeCursor, readCursor } from "../page-cursor.ts";
import type { AuditQuery, CountedCall, StoredAudit, StoredAuditFile, StoredAuditLine } from "../store.ts";
import { CallCounters } from "./call-sums.ts";

/** Of one statement. A file may have tens of thousands of lines, and SQLite blocks its thread as long as a statement takes. */
const LINES_AT_ONCE = 1000;
/** Added to the sums together: each sum is written once for all of them. */
const CALLS_AT_ONCE = 10_000;

const COLUMNS = {
  file: "file",
  seq: "seq",
  chain: "chain",
  line: "line",
  type: "type",
  time: "time",
  callId: "call_id",
  session: "session",
  user: "user",
  client: "client",
  role: "role",
  door: "door",
  name: "name",
  server: "server",
  outcome: "outcome",
  event: "event",
} as const satisfies Record<keyof StoredAuditLine, string>;
// The keys of an object literal are known, which `Object.keys` does not say.
const KEYS = Object.keys(COLUMNS) as (keyof StoredAuditLine)[];

const FILE_COLUMNS = ["file", "chain", "bytes", "lines", "lastSeq", "firstTime", "lastTime"] as const;

export function storedAudit(engine: DatabaseEngine): StoredAudit {
  const { db } = engine;
  const callSums = new CallCounters(engine);
  const someLines = (file: string, from: number) =>
    db
      .selectFrom("audit")
      .select(["seq", "line"])
      .where("file", "=", file)
      .where("seq", ">=", from)
      .orderBy("seq")
      .limit(LINES_AT_ONCE)
      .execute();
  const someCalls = (file: string, from: number, to: number) =>
    db
      .selectFrom("audit")
      .select(["seq", "line", "time", "callId", "server", "name", "client", "role", "outcome"])
      .where("file", "=", file)
      .where("seq", ">=", from)
      .where("seq", "<=", to)
      .where("type", "=", "call")
      .orderBy("seq")
      .limit(LINES_AT_ONCE)
      .execute();
  return {
    async append(lines) {
      if (lines.length === 0) return;
      await db.transaction().execute(async (trx) => {
        const added: StoredAuditLine[] = [];
        for (const some of chunks(lines)) added.push(...(await insert(engine, trx, some)));
        for (const file of sums(added)) await addTo(trx, file);
      });
    },
    async sumUpSome(read, now) {
      const uncounted = db.selectFrom("auditFiles").select(["file", "lastSeq", "summed"]);
      // The newest is what people look at first.
      const newest = uncounted.whereRef("summed", "<=", "lastSeq").orderBy("lastTime", "desc").limit(1);
      const next = await newest.executeTakeFirst();
      if (next === undefined) return false;
      const { file, summed, lastSeq } = next;
      // Read before the transaction, which blocks others.
      const calls: CountedCall[] = [];
      let [from, rows] = [summed, await someCalls(file, summed, lastSeq)];
      while (rows.length > 0) {
        for (const { seq, line, ...columns } of rows) {
          const figures = read(line);
          if (figures !== undefined) calls.push({ ...columns, ...figures });
          from = seq + 1;
        }
        rows = calls.length < CALLS_AT_ONCE ? await someCalls(file, from, lastSeq) : [];
      }
      if (calls.length < CALLS_AT_ONCE) from = lastSeq + 1;
      await db.transaction().execute(async (trx) => {
        const marked = await trx
          .updateTable("auditFiles")
          .set({ summed: from })
          .where("file", "=", file)
          // Unless somebody else has counted them meanwhile.
          .where("summed", "=", summed)
          .returning("file")
          .execute();
        if (marked.length > 0) await callSums.add(trx, calls, now);
      });
      return true;
    },
    sums: (query) => callSums.query(query),
    pruneSums: (now, maxDays) => callSums.prune(now, maxDays),
    query: (query) => queryAudit(engine, query),
    files: () => db.selectFrom("auditFiles").select(FILE_COLUMNS).orderBy("firstTime").orderBy("file").execute(),
    async linesOf(file) {
      const lines: string[] = [];
      for (let from = 0; ;) {
        const rows = await someLines(file, from);
        for (const { line } of rows) lines.push(line);
        const last = rows.at(-1);
        if (last === undefined || rows.length < LINES_AT_ONCE) return lines;
        from = last.seq + 1;
      }
    },
    async removeFiles(files) {
      if (files.length === 0) return;
      await db.transaction().execute(async (trx) => {
        for (const some of chunks(files)) {
          for (const table of ["audit", "auditFiles"] as const)
            await trx.deleteFrom(table).where("file", "in", some).execute();
        }
      });
      // What cannot be given back now is given back the next time.
      await engine.giveBackSpace?.().catch(() => {});
    },
  };
}

/** As text: the query builder would take longer to write it than the database to run it. */
function insertOf(rows: string): string {
  const columns = KEYS.map((key) => `"${COLUMNS[key]}"`).join(",");
  return `insert into "audit" (${columns}) values ${rows} on conflict ("file", "seq") do nothing`;
}

const INSERT_ONE = insertOf(`(${KEYS.map(() => "?").join(",")})`);

/** Those that were not there yet. */
async function insert(
  engine: DatabaseEngine,
  trx: Trx,
  lines: readonly StoredAuditLine[],
): Promise<readonly StoredAuditLine[]> {
  if (engine.runForEach !== undefined) {
    const values = lines.map((line) => KEYS.map((key) => line[key]));
    const isNew = engine.runForEach(INSERT_ONE, values);
    return lines.filter((_, index) => isNew[index]);
  }
  const values = lines.flatMap((line) => KEYS.map((key) => line[key]));
  const places = lines.map((_, n) => `(${KEYS.map((__, column) => `$${n * KEYS.length + column + 1}`).join(",")})`);
  const query = CompiledQuery.raw(`${insertOf(places.join(","))} returning "file", "seq"`, values);
  const { rows } = await trx.executeQuery<Pick<StoredAuditLine, "file" | "seq">>(query);
  if (rows.length === lines.length) return lines;
  const added = new Set(rows.map(({ file, seq }) => `${seq} ${file}`));
  // Of two that are the same only the first was added.
  return lines.filter(({ file, seq }) => added.delete(`${seq} ${file}`));
}

function sums(added: readonly StoredAuditLine[]): StoredAuditFile[] {
  const files = new Map<string, { -readonly [Key in keyof StoredAuditFile]: StoredAuditFile[Key] }>();
  for (const { file, chain, seq, line, time } of added) {
    let sum = files.get(file);
    if (sum === undefined)
      files.set(file, (sum = { file, chain, bytes: 0, lines: 0, lastSeq: -1, firstTime: time, lastTime: time }));
    sum.bytes += Buffer.byteLength(line) + 1;
    sum.lines += 1;
    if (seq > sum.lastSeq) sum.lastSeq = seq;
    if (time < sum.firstTime) sum.firstTime = time;
    if (time > sum.lastTime) sum.lastTime = time;
  }
  return [...files.values()];
}

/** Read and written inside the transaction that added the lines; those who append to the same file wait for it. */
async function addTo(trx: Kysely<Tables>, more: StoredAuditFile): Promise<void> {
  await trx
    .insertInto("auditFiles")
    .values({ ...more, summed: 0 })
    .onConflict((conflict) =>
      conflict.column("file").doUpdateSet({
        bytes: sql`audit_files.bytes + excluded.bytes`,
        lines: sql`audit_files.lines + excluded.lines`,
        lastSeq: sql`case when audit_files.last_seq > excluded.last_seq then audit_files.last_seq else excluded.last_seq end`,
        firstTime: sql`case when audit_files.first_time < excluded.first_time then audit_files.first_time else excluded.first_time end`,
        lastTime: sql`case when audit_files.last_time > excluded.last_time then audit_files.last_time else excluded.last_time end`,
      }),
    )
    .execute();
}

const EQUAL = ["server", "session", "user", "client", "door", "callId"] as const;
/** Columns in which a text is searched for. */
const SEARCHED = ["name", "event", "user", "client", "callId"] as const;

/** One page of lines that fit a query, in order of time. */
async function queryAudit(engine: DatabaseEngine, wanted: AuditQuery): ReturnType<StoredAudit["query"]> {
  const { limit, cursor, since, until, types, name, outcome, text } = wanted;
  const oldestFirst = wanted.order === "oldest";
  let query = engine.db.selectFrom("audit").selectAll();
  for (const column of ["time", "file", "seq"] as const) query = query.orderBy(column, oldestFirst ? "asc" : "desc");
  if (since !== undefined) query = query.where("time", ">=", since);
  if (until !== undefined) query = query.where("time", "<=", until);
  if (types !== undefined)
    query = types.length === 0 ? query.where(sql<boolean>`1 = 0`) : query.where("type", "in", types);
  for (const column of EQUAL) {
    const value = wanted[column];
    if (value !== undefined) query = query.where(column, "=", value);
  }
  if (name !== undefined) query = query.where((eb) => engine.matches(eb.ref("name"), name));
  if (outcome === "failed") query = query.where("outcome", "is not", null).where("outcome", "!=", "ok");
  else if (outcome !== undefined) query = query.where("outcome", "=", outcome);
  if (text !== undefined && text !== "") {
    const pattern = `%${lowerAscii(text).replace(/[\\%_]/g, "\\$&")}%`;
    query = query.where((eb) =>
      eb.or(SEARCHED.map((column) => sql<boolean>`lower(${eb.ref(column)}) like ${pattern} escape '\\'`)),
    );
  }
  if (cursor !== undefined) {
    const [time, file, seq] = readCursor(cursor, ["", "", 0] as const satisfies [string, string, number]);
    query = query.where((eb) =>
      eb(eb.refTuple("time", "file", "seq"), oldestFirst ? ">" : "<", eb.tuple(time, file, seq)),
    );
  }
  const rows = await query.limit(limit + 1).execute();
  const entries = rows.slice(0, limit);
  const last = rows.length > limit ? entries.at(-1) : undefined;
  return { entries, ...(last === undefined ? {} : { nextCursor: makeCursor([last.time, last.file, last.seq]) }) };
}

/** As `lower` of both databases does it on these columns. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
