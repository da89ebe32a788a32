/** One page of audit lines that fit a query, in order of time. */
import { sql } from "kysely";
import type { DatabaseEngine } from "../database.ts";
import { makeCursor, readCursor } from "../page-cursor.ts";
import type { AuditQuery, StoredAudit } from "../store.ts";

const EQUAL = ["server", "session", "user", "client", "door", "callId"] as const;
/** Columns in which a text is searched for. */
const SEARCHED = ["name", "event", "user", "client", "callId"] as const;

export async function queryAudit(engine: DatabaseEngine, wanted: AuditQuery): ReturnType<StoredAudit["query"]> {
  const { limit, cursor, since, until, types, name, outcome, text } = wanted;
  const oldestFirst = wanted.order === "oldest";
  const direction = oldestFirst ? "asc" : "desc";
  let query = engine.db
    .selectFrom("audit")
    .selectAll()
    .orderBy("time", direction)
    .orderBy("file", direction)
    .orderBy("seq", direction)
    .limit(limit + 1);
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
  const rows = await query.execute();
  const entries = rows.slice(0, limit);
  const last = rows.length > limit ? entries.at(-1) : undefined;
  return { entries, ...(last === undefined ? {} : { nextCursor: makeCursor([last.time, last.file, last.seq]) }) };
}

/** As `lower` of both databases does it on these columns. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
