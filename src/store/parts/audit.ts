import { setImmediate as turn } from "node:timers/promises";
import { chunks, type DatabaseEngine } from "../database.ts";
import type { Trx } from "../outbox.ts";
import type { StoredAudit, StoredAuditFile, StoredAuditLine } from "../store.ts";
import { queryAudit } from "./audit-query.ts";

/** A file may have tens of thousands of lines, and SQLite holds everything else up as long as a statement takes. */
const LINES_AT_ONCE = 1000;

export function storedAudit(engine: DatabaseEngine): StoredAudit {
  const { db } = engine;
  return {
    async append(lines) {
      if (lines.length === 0) return;
      await db.transaction().execute(async (trx) => {
        const added: Added[] = [];
        for (const some of chunks(lines)) added.push(...(await insert(trx, some)));
        for (const file of sums(added)) await addTo(trx, file);
      });
    },
    query: (query) => queryAudit(engine, query),
    files: () => db.selectFrom("auditFiles").selectAll().orderBy("firstTime").orderBy("file").execute(),
    async linesOf(file) {
      const lines: string[] = [];
      const all = db.selectFrom("audit").select(["seq", "line"]).where("file", "=", file).orderBy("seq");
      for (let next = all; ;) {
        const rows = await next.limit(LINES_AT_ONCE).execute();
        for (const { line } of rows) lines.push(line);
        const last = rows.at(-1);
        if (last === undefined || rows.length < LINES_AT_ONCE) return lines;
        next = all.where("seq", ">", last.seq);
      }
    },
    async removeFiles(files) {
      if (files.length === 0) return;
      await db.transaction().execute(async (trx) => {
        for (const file of files) await removeLines(trx, file);
        for (const some of chunks(files)) await trx.deleteFrom("auditFiles").where("file", "in", some).execute();
      });
      // What cannot be given back now is so the next time.
      await engine.giveBackSpace?.().catch(() => {});
    },
  };
}

async function removeLines(trx: Trx, file: string): Promise<void> {
  for (;;) {
    const lines = trx.selectFrom("audit").select("seq").where("file", "=", file).orderBy("seq");
    const last = await lines
      .offset(LINES_AT_ONCE - 1)
      .limit(1)
      .executeTakeFirst();
    const rest = trx.deleteFrom("audit").where("file", "=", file);
    if (last === undefined) return void (await rest.execute());
    await rest.where("seq", "<=", last.seq).execute();
    await turn();
  }
}

type Added = Pick<StoredAuditLine, "file" | "chain" | "seq" | "line" | "time">;

/** Those that were not there yet. */
function insert(trx: Trx, lines: readonly StoredAuditLine[]): Promise<Added[]> {
  return trx
    .insertInto("audit")
    .values(lines)
    .onConflict((conflict) => conflict.columns(["file", "seq"]).doNothing())
    .returning(["file", "chain", "seq", "line", "time"])
    .execute();
}

function sums(added: readonly Added[]): StoredAuditFile[] {
  const files = new Map<string, StoredAuditFile>();
  for (const { file, chain, seq, line, time } of added) {
    const sum = files.get(file) ?? { file, chain, bytes: 0, lines: 0, lastSeq: seq, firstTime: time, lastTime: time };
    files.set(file, {
      ...sum,
      bytes: sum.bytes + Buffer.byteLength(line) + 1,
      lines: sum.lines + 1,
      lastSeq: Math.max(sum.lastSeq, seq),
      firstTime: time < sum.firstTime ? time : sum.firstTime,
      lastTime: time > sum.lastTime ? time : sum.lastTime,
    });
  }
  return [...files.values()];
}

/** Read and written inside the transaction that added the lines; those who append to the same file wait for it. */
async function addTo(trx: Trx, more: StoredAuditFile): Promise<void> {
  await trx
    .insertInto("auditFiles")
    .values(more)
    .onConflict((conflict) =>
      conflict.column("file").doUpdateSet((eb) => {
        const [kept, added] = ["auditFiles", "excluded"] as const;
        return {
          bytes: eb(`${kept}.bytes`, "+", eb.ref(`${added}.bytes`)),
          lines: eb(`${kept}.lines`, "+", eb.ref(`${added}.lines`)),
          lastSeq: eb
            .case()
            .when(`${kept}.lastSeq`, ">", eb.ref(`${added}.lastSeq`))
            .then(eb.ref(`${kept}.lastSeq`))
            .else(eb.ref(`${added}.lastSeq`))
            .end(),
          firstTime: eb
            .case()
            .when(`${kept}.firstTime`, "<", eb.ref(`${added}.firstTime`))
            .then(eb.ref(`${kept}.firstTime`))
            .else(eb.ref(`${added}.firstTime`))
            .end(),
          lastTime: eb
            .case()
            .when(`${kept}.lastTime`, ">", eb.ref(`${added}.lastTime`))
            .then(eb.ref(`${kept}.lastTime`))
            .else(eb.ref(`${added}.lastTime`))
            .end(),
        };
      }),
    )
    .execute();
}
