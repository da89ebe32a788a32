/** The audit log as blocks of lines, each line exactly as it was written. What a line says is known to others. */
import { sql } from "kysely";
import type { AuditBlock, AuditText, KeptFile } from "../../model/audit-blocks.ts";
import { chunks, type DatabaseEngine } from "../database.ts";
import type { Trx } from "../outbox.ts";
import type { StoredAudit } from "../store.ts";
import { addCalls, pruneSums, querySums } from "./call-sums.ts";

/** A smaller block grows with what comes next: a quiet hub appends a line or two at a time. */
const GROWING_BYTES = 32 * 1024;

const FILE_COLUMNS = ["file", "chain", "bytes", "lines", "firstTime", "lastTime"] as const;
const BLOCK_COLUMNS = [...FILE_COLUMNS, "firstLine"] as const;

export function storedAudit(engine: DatabaseEngine): StoredAudit {
  const { db } = engine;
  const blocksOf = (file: string) => db.selectFrom("auditBlocks").where("file", "=", file).orderBy("firstLine");
  return {
    append: (block) =>
      db.transaction().execute(async (trx) => {
        if (!(await addToFile(trx, block))) return false;
        const last = await trx
          .selectFrom("auditBlocks")
          .selectAll()
          .where("file", "=", block.file)
          .where(sql<number>`first_line + lines`, "=", block.firstLine)
          .where("bytes", "<", GROWING_BYTES)
          .executeTakeFirst();
        if (last === undefined) await trx.insertInto("auditBlocks").values(block).execute();
        else
          await trx
            .updateTable("auditBlocks")
            .set({ ...joined(last, block), text: last.text + block.text })
            .where("file", "=", last.file)
            .where("firstLine", "=", last.firstLine)
            .execute();
        return true;
      }),
    async sumUpSome(read, now) {
      const uncounted = db.selectFrom("auditFiles").select(["file", "lines", "summed"]);
      // The newest is what people look at first.
      const newest = uncounted.whereRef("summed", "<", "lines").orderBy("lastTime", "desc").limit(1);
      const next = await newest.executeTakeFirst();
      if (next === undefined) return false;
      const { file, summed, lines } = next;
      // Read before the transaction, which blocks others.
      const blocks = await blocksOf(file)
        .select(["firstLine", "text"])
        .where(sql<number>`first_line + lines`, ">", summed)
        .execute();
      const calls = blocks.flatMap(({ firstLine, text }) => {
        const all = text.split("\n").slice(0, -1);
        return all.slice(Math.max(0, summed - firstLine), lines - firstLine).flatMap((line) => read(line) ?? []);
      });
      await db.transaction().execute(async (trx) => {
        const marked = await trx
          .updateTable("auditFiles")
          .set({ summed: lines })
          .where("file", "=", file)
          // Unless somebody else has counted them meanwhile.
          .where("summed", "=", summed)
          .returning("file")
          .execute();
        if (marked.length > 0) await addCalls(engine, trx, calls, now);
      });
      return true;
    },
    sums: (query) => querySums(engine, query),
    async pruneSums(now, maxDays) {
      await pruneSums(engine, now, maxDays);
      await giveBackSpace();
    },
    async files(names) {
      const all = db.selectFrom("auditFiles").select(FILE_COLUMNS).orderBy("firstTime").orderBy("file");
      if (names === undefined) return all.execute();
      const found: KeptFile[] = [];
      for (const some of chunks(names)) found.push(...(await all.where("file", "in", some).execute()));
      return found;
    },
    blocks(file) {
      const all = db.selectFrom("auditBlocks").select(BLOCK_COLUMNS).orderBy("file").orderBy("firstLine");
      return (file === undefined ? all : all.where("file", "=", file)).execute();
    },
    wholeBlocks: (file) => blocksOf(file).select(BLOCK_COLUMNS).select("text").execute(),
    async textOf(file, firstLine) {
      const all = blocksOf(file).select("text");
      const rows = await (firstLine === undefined ? all : all.where("firstLine", "=", firstLine)).execute();
      return rows.map(({ text }) => text).join("");
    },
    async removeFiles(files) {
      if (files.length === 0) return;
      await db.transaction().execute(async (trx) => {
        for (const some of chunks(files)) {
          // In the order in which `append` takes them: it waits for the row of the file, and then finds that there is none.
          for (const table of ["auditFiles", "auditBlocks"] as const)
            await trx.deleteFrom(table).where("file", "in", some).execute();
        }
      });
      await giveBackSpace();
    },
  };

  /** What cannot be given back now is given back the next time. */
  async function giveBackSpace(): Promise<void> {
    await engine.giveBackSpace?.().catch(() => {});
  }
}

/** False if the file does not have the lines that come before these. */
async function addToFile(trx: Trx, block: AuditText): Promise<boolean> {
  const { firstLine, text: _text, ...added } = block;
  const files = trx.selectFrom("auditFiles").select(["lines", "bytes", "firstTime", "lastTime"]);
  const before = await files.where("file", "=", block.file).executeTakeFirst();
  if ((before?.lines ?? 0) !== firstLine) return false;
  // Whoever adds to the same file at once waits here, and then finds that there are more lines.
  if (before === undefined) {
    const insert = trx.insertInto("auditFiles").values({ ...added, summed: 0 });
    const inserted = insert.onConflict((conflict) => conflict.column("file").doNothing()).returning("file");
    return (await inserted.execute()).length > 0;
  }
  const update = trx.updateTable("auditFiles").set(joined(before, block)).where("file", "=", block.file);
  return (await update.where("lines", "=", firstLine).returning("file").execute()).length > 0;
}

type Extent = Pick<AuditBlock, "lines" | "bytes" | "firstTime" | "lastTime">;

/** What there was, with what comes behind it. */
function joined(before: Extent, more: Extent): Extent {
  return {
    lines: before.lines + more.lines,
    bytes: before.bytes + more.bytes,
    firstTime: before.firstTime < more.firstTime ? before.firstTime : more.firstTime,
    lastTime: before.lastTime > more.lastTime ? before.lastTime : more.lastTime,
  };
}
