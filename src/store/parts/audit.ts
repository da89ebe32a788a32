/** The audit log as blocks of lines, each line exactly as it was written. What a line says is known to others. */
import { sql } from "kysely";
import type { AuditBlock, AuditText, KeptFile } from "../../model/audit-blocks.ts";
import { chunks, type DatabaseEngine } from "../database.ts";
import type { Trx } from "../outbox.ts";
import type { CountedCall, StoredAudit } from "../store.ts";
import { CallCounters } from "./call-sums.ts";

/** A smaller block grows with what comes next: a quiet hub appends a line or two at a time. */
const GROWING_BYTES = 32 * 1024;
/** Added to the sums together: each sum is written once for all of them. */
const CALLS_AT_ONCE = 10_000;

const FILE_COLUMNS = ["file", "chain", "bytes", "lines", "firstTime", "lastTime"] as const;
const BLOCK_COLUMNS = [...FILE_COLUMNS, "firstLine"] as const;

export function storedAudit(engine: DatabaseEngine): StoredAudit {
  const { db } = engine;
  const callSums = new CallCounters(engine);
  const blocksOf = (file: string) => db.selectFrom("auditBlocks").where("file", "=", file).orderBy("firstLine");
  const stored: StoredAudit = {
    append: (block) =>
      db.transaction().execute(async (trx) => {
        // Whoever appends to the same file waits here, and then finds that there are more lines.
        if (!(await addToFile(trx, block))) return false;
        if (!(await addToLastBlock(trx, block))) await trx.insertInto("auditBlocks").values(block).execute();
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
      const calls: CountedCall[] = [];
      let counted = summed;
      // One that somebody removed does not keep those behind it from being counted.
      const blocks = (await stored.blocks(file)).filter((block) => block.firstLine + block.lines > summed);
      while (counted < lines && calls.length < CALLS_AT_ONCE) {
        const block = blocks.shift();
        const [first, end] = block === undefined ? [0, lines] : [block.firstLine, block.firstLine + block.lines];
        const text = block === undefined ? "" : await stored.textOf(file, first);
        const some = text.split("\n").slice(Math.max(0, counted - first), Math.min(lines, end) - first);
        calls.push(...some.flatMap((line) => read(line) ?? []));
        counted = Math.min(lines, end);
      }
      await db.transaction().execute(async (trx) => {
        const marked = await trx
          .updateTable("auditFiles")
          .set({ summed: counted })
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
    async pruneSums(now, maxDays) {
      await callSums.prune(now, maxDays);
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
  return stored;

  /** What cannot be given back now is given back the next time. */
  async function giveBackSpace(): Promise<void> {
    await engine.giveBackSpace?.().catch(() => {});
  }
}

/** False if the file does not have the lines that come before these. */
async function addToFile(trx: Trx, block: AuditBlock): Promise<boolean> {
  const { file, chain, firstLine, lines, bytes, firstTime, lastTime } = block;
  if (firstLine === 0)
    await trx
      .insertInto("auditFiles")
      .values({ file, chain, lines: 0, bytes: 0, firstTime, lastTime, summed: 0 })
      .onConflict((conflict) => conflict.column("file").doNothing())
      .execute();
  const grown = await trx
    .updateTable("auditFiles")
    .set((eb) => ({
      lines: eb("lines", "+", lines),
      bytes: eb("bytes", "+", bytes),
      firstTime: sql`case when first_time < ${firstTime} then first_time else ${firstTime} end`,
      lastTime: sql`case when last_time > ${lastTime} then last_time else ${lastTime} end`,
    }))
    .where("file", "=", file)
    .where("lines", "=", firstLine)
    .returning("file")
    .execute();
  return grown.length > 0;
}

/** False if that block is large enough. */
async function addToLastBlock(trx: Trx, block: AuditText): Promise<boolean> {
  const last = await trx
    .selectFrom("auditBlocks")
    .selectAll()
    .where("file", "=", block.file)
    .where(sql<number>`first_line + lines`, "=", block.firstLine)
    .where("bytes", "<", GROWING_BYTES)
    .executeTakeFirst();
  if (last === undefined) return false;
  await trx
    .updateTable("auditBlocks")
    .set({
      lines: last.lines + block.lines,
      bytes: last.bytes + block.bytes,
      firstTime: last.firstTime < block.firstTime ? last.firstTime : block.firstTime,
      lastTime: last.lastTime > block.lastTime ? last.lastTime : block.lastTime,
      text: last.text + block.text,
    })
    .where("file", "=", last.file)
    .where("firstLine", "=", last.firstLine)
    .execute();
  return true;
}
