import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pageOf } from "../../../src/hub/audit/query.ts";
import { verdictOf, verifyAll } from "../../../src/hub/audit/verify.ts";
import type { StoredAudit } from "../../../src/store/store.ts";
import { blockOf } from "../../../src/telemetry/audit/files.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { numbered } from "../../telemetry/audit-place.ts";
import { DEAD_PID, JournalPlace } from "./journal-place.ts";

/** Everything is in the store: in each chain line 0 is the header, then the records 1 to 5, then the end. */
async function stored(chains: readonly string[] = ["a"]): Promise<JournalPlace> {
  const place = await JournalPlace.open();
  place.leaveBehind(chains, 5);
  await place.takeIn();
  expect(place.files()).toEqual([]);
  expect(await place.verify()).toEqual([]);
  return place;
}

function lengthOf(lines: readonly string[]): number {
  return Buffer.byteLength(lines.join(""));
}

describe("[oper-03b] verify finds what was done to the log in the store", () => {
  it("a changed line, a removed one, two that changed places, and one from elsewhere", async () => {
    const changed = await stored();
    await changed.rewriteStored((lines) => lines.with(3, (lines[3] ?? "").replace('"a3"', '"a9"')));
    expect(await changed.verify()).toEqual(["error changed 4"]);
    const removed = await stored();
    await removed.rewriteStored((lines) => lines.toSpliced(3, 1));
    expect(await removed.verify()).toEqual(["error removed 4"]);
    const swapped = await stored();
    await swapped.rewriteStored((lines) => lines.with(3, lines[4] ?? "").with(4, lines[3] ?? ""));
    expect(await swapped.verify()).toEqual(["error reordered 5"]);
    const foreign = await stored();
    await foreign.rewriteStored((lines) => lines.with(3, "{}"));
    expect(await foreign.verify()).toEqual(["error changed 4"]);
  });

  it("an end that was cut off, however well", async () => {
    const place = await stored();
    await place.rewriteStored((lines) => lines.slice(0, 4));
    expect(await place.verify()).toEqual(["error removed 0", "warning truncated 0"]);
    place.edit("update audit_files set lines = 4, bytes = (select sum(bytes) from audit_blocks)");
    // Its chain is shorter than heads.json knows.
    expect(await place.verify()).toContain("error truncated 0");
  });

  it("a file that was removed, also with its entry, and all of them", async () => {
    const place = await stored(["a", "b", "c"]);
    const [, middle] = await place.store.audit.files();
    place.edit("delete from audit_blocks where file = ?", middle?.file ?? "");
    expect((await verifyAll(place.dir, place.store)).ok).toBe(false);
    place.edit("delete from audit_files where file = ?", middle?.file ?? "");
    expect(await place.verify()).toEqual(["error removed 0"]);
    place.edit("delete from audit_blocks");
    place.edit("delete from audit_files");
    expect(await place.verify()).toEqual(["error removed 0", "error removed 0", "error removed 0"]);
  });

  it("a record that was hidden from queries while its line stayed", async () => {
    const times = ["first_time = '2030-01-01T00:00:00.000Z'", "last_time = '2001-01-01T00:00:00.000Z'"];
    for (const change of [...times, "chain = 'x'", "lines = 3", "bytes = 1", "first_line = 1"]) {
      const place = await stored();
      place.edit(`update audit_blocks set ${change}`);
      expect(await place.verify(), change).toEqual(["error changed 1"]);
    }
    const aged = await stored();
    aged.edit("update audit_files set last_time = '2001-01-01T00:00:00.000Z'");
    expect(await aged.verify()).toEqual(["error changed 0"]);
    const unlisted = await stored();
    unlisted.edit("update audit_files set file = 'elsewhere'");
    expect((await unlisted.verify()).length).toBeGreaterThan(1);
  });

  it("lines that were hidden from queries behind columns that fit the rest of them, or in another block", async () => {
    const hide = "update audit_blocks set lines = ?, bytes = ?, first_time = ?, last_time = ?";
    const place = await stored();
    const [file] = await place.store.audit.files();
    const [whole] = await place.store.audit.wholeBlocks(file?.file ?? "");
    const named = { name: file?.file ?? "", chain: file?.chain ?? "" };
    const lines = whole?.text.split(/(?<=\n)/) ?? [];
    for (const left of [4, 1, 0]) {
      const { lines: count, bytes, firstTime, lastTime } = blockOf(named, 0, lines.slice(0, left).join(""));
      place.edit(hide, count, bytes, firstTime, lastTime);
      expect(await place.verify(), `${left} left`).toEqual(["error changed 1"]);
    }
    place.edit("delete from audit_blocks");
    place.edit("delete from audit_files");
    await place.store.audit.append({ ...blockOf(named, 0, lines.slice(0, 3).join("")), bytes: 100_000 });
    await place.store.audit.append(blockOf(named, 3, lines.slice(3).join("")));
    place.edit("update audit_blocks set bytes = bytes - ? where first_line = 0", 100_000 - lengthOf(lines.slice(0, 3)));
    place.edit("update audit_files set bytes = bytes - ?", 100_000 - lengthOf(lines.slice(0, 3)));
    expect(await place.verify()).toEqual([]);
    place.edit("update audit_files set bytes = bytes + 1");
    expect(await place.verify()).toEqual(["error changed 0"]);
    place.edit("update audit_files set bytes = bytes - 1");
    place.edit("update audit_blocks set text = ? where first_line = 0", lines.slice(0, 2).join(""));
    place.edit("update audit_blocks set text = ? where first_line = 3", lines.slice(2).join(""));
    expect(await place.verify()).toEqual(["error changed 1"]);
  });

  it("any set of lines removed or changed", async () => {
    const place = await stored(["a", "b"]);
    const [first] = await place.store.audit.files();
    const file = first?.file ?? "";
    const [block] = await place.store.audit.blocks(file);
    const text = await place.store.audit.textOf(file);
    if (block === undefined) throw new Error("no block");
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(6), { minLength: 1, maxLength: 7 }), fc.boolean(), async (seqs, cut) => {
        const changed = (line: string, seq: number): string[] => {
          if (!seqs.includes(seq)) return [line];
          return cut ? [] : [`${line} `];
        };
        await place.rewriteStored((lines) => lines.flatMap(changed), file);
        const { ok } = await verifyAll(place.dir, place.store);
        await place.store.audit.removeFiles([file]);
        await place.store.audit.append({ ...block, text });
        return !ok;
      }),
      { numRuns: 20 },
    );
    expect(await place.verify()).toEqual([]);
  });

  it("heads.json that was removed: verify and the next process tell, though no file is in the folder", async () => {
    const place = await JournalPlace.open();
    // Its clock stands in the past: a file that is a moment old may not have its head yet.
    const first = place.log({ isJournal: true, pid: DEAD_PID, clock: new FakeClock() });
    numbered(first, "x", 1);
    await place.audit(first).close();
    await place.takeIn();
    expect([place.files(), await place.verify()]).toEqual([[], []]);
    rmSync(join(place.dir, "heads.json"));
    expect(await place.verify()).toEqual(["error removed 0"]);
    const log = place.log({ isJournal: true });
    const audit = place.audit(log);
    numbered(log, "n", 1);
    await audit.close();
    const lost = await pageOf(place.dir, place.store.audit, { limit: 10, q: "audit.heads_lost" });
    expect(lost.entries).toMatchObject([{ type: "event", chain: log.chain }]);
  });

  it("[trust-16a] not for processes that begin in a new home at the same moment, whoever is first", async () => {
    const place = await JournalPlace.open();
    const [one, two] = [place.log(), place.log()];
    for (const log of [one, two]) {
      numbered(log, "n", 1);
      log.flush();
    }
    // The second comes first here.
    for (const log of [two, one]) await place.audit(log).flush();
    for (const log of [two, one]) log.close();
    expect(place.problems).toEqual([]);
    expect(await place.verify()).toEqual([]);
  });

  it("what a later chain saw, when heads.json has forgotten it", async () => {
    const place = await stored(["a"]);
    place.leaveBehind(["b"]);
    await place.takeIn();
    const heads = join(place.dir, "heads.json");
    const [first] = await place.store.audit.files();
    const { version, chains } = JSON.parse(readFileSync(heads, "utf8")) as { version: number; chains: object };
    const left = Object.entries(chains).filter(([chain]) => chain !== first?.chain);
    writeFileSync(heads, JSON.stringify({ version, chains: Object.fromEntries(left) }));
    expect(await place.verify()).toEqual([]);
    await place.store.audit.removeFiles([first?.file ?? ""]);
    expect(await place.verify()).toEqual(["error removed 0"]);
  });

  it("nothing in a log that goes on into new files faster than all of it can be read", async () => {
    const place = await stored(["a", "b", "c", "d", "e", "f"]);
    const log = place.log({ isJournal: true, maxBytes: 64 * 1024 });
    numbered(log, "n", 1);
    log.flush();
    let reads = 0;
    const audit: StoredAudit = {
      ...place.store.audit,
      async wholeBlocks(file) {
        reads += 1;
        if (reads % 3 === 0) numbered(log, "more", 30);
        log.flush();
        return place.store.audit.wholeBlocks(file);
      },
    };
    const { problems, chains } = await verifyAll(place.dir, { ...place.store, audit });
    expect([...problems, ...chains.flatMap((chain) => chain.problems)]).toEqual([]);
    expect(chains.find(({ chain }) => chain === log.chain)?.files).toEqual(place.files());
    expect(reads).toBe(6);
    log.close();
  });

  it("gives a verdict that people can read, also while the log is written", async () => {
    const place = await stored(["a", "b"]);
    const clock = new FakeClock();
    const log = place.log({ isJournal: true, clock });
    const audit = place.audit(log, { clock });
    numbered(log, "n", 2);
    expect(await audit.verify()).toEqual({ ok: true, records: 17, chains: 3, problems: [] });
    const [first] = await place.store.audit.files();
    await place.rewriteStored((lines) => lines.toSpliced(3, 1), first?.file);
    const verdict = verdictOf(await verifyAll(place.dir, place.store));
    expect(verdict).toMatchObject({ ok: false, chains: 3 });
    expect(verdict.problems).toEqual([`removed: ${first?.file}:4: a line is missing before this one`]);
    log.close();
  });
});
