import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { StoredAudit } from "../../../src/store/store.ts";
import { verifyAudit } from "../../../src/telemetry/audit/verify.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { numbered } from "../../telemetry/audit-place.ts";
import { DEAD_PID, JournalPlace } from "./journal-place.ts";

describe("[oper-02c] the audit journal goes into the store", () => {
  it("with files of earlier versions and of processes that are gone, byte for byte", async () => {
    const place = await JournalPlace.open();
    place.leaveBehind(["a", "b"]);
    const rotated = place.log({ pid: DEAD_PID, maxBytes: 16 * 1024 });
    numbered(rotated, "r\u2028ü", 20);
    rotated.close();
    const killed = place.log({ pid: DEAD_PID });
    numbered(killed, "k", 2);
    killed.flush();
    const before = place.texts();
    expect(before.size).toBeGreaterThan(5);
    await place.takeIn();
    expect(await place.storedTexts()).toEqual(before);
    expect(place.files()).toEqual([]);
    // The chain without an end, which a file would have told of too.
    expect(await place.verify()).toEqual(["warning truncated 0"]);
    killed.close();
  });

  it("while it is written, and a file stays until it has ended and rested", async () => {
    const place = await JournalPlace.open();
    const log = place.log({ isJournal: true, maxBytes: 64 * 1024 });
    const patient = place.keeper(log, { restMs: 60_000 });
    numbered(log, "n", 3);
    log.flush();
    await patient.takeIn();
    expect(await place.storedTexts()).toEqual(place.texts());
    numbered(log, "m", 40);
    log.flush();
    await patient.takeIn();
    expect(place.files().length).toBeGreaterThan(2);
    const all = place.texts();
    expect(await place.storedTexts()).toEqual(all);
    const hasty = place.keeper(log);
    await hasty.takeIn();
    expect(place.files()).toEqual([log.currentFile]);
    expect(await place.storedTexts()).toEqual(all);
    log.close();
    await hasty.close();
    expect(await place.verify()).toEqual([]);
    expect(place.warnings).toEqual([]);
  });

  it("soon after records were written, many at once, and again later after a failure", async () => {
    const place = await JournalPlace.open();
    const clock = new FakeClock();
    const appended: number[] = [];
    let isDown = false;
    const store: StoredAudit = {
      ...place.store.audit,
      append(block) {
        if (isDown) return Promise.reject(new Error("no connection"));
        appended.push(block.lines);
        return place.store.audit.append(block);
      },
    };
    const log = place.log({ isJournal: true, clock, onWritten: () => audit.soon() });
    const audit = place.audit(log, { store, clock });
    const write = (name: string): void => {
      numbered(log, name, 2);
      log.flush();
    };
    write("a");
    write("b");
    await clock.advance(999);
    expect(appended).toEqual([]);
    await clock.advance(1);
    await eventually(() => appended.length > 0);
    expect(appended).toEqual([5]);
    isDown = true;
    write("c");
    await clock.advance(1000);
    await eventually(() => place.warnings.length > 0);
    expect(place.warnings[0]).toContain("no connection");
    expect(place.warnings[0]).toContain(place.dir);
    // While it is down, what is written does not make it try more often.
    write("d");
    await clock.advance(1000);
    isDown = false;
    await clock.advance(3000);
    expect(appended).toEqual([5]);
    await clock.advance(2000);
    await eventually(() => appended.length > 1);
    expect(appended).toEqual([5, 4]);
    expect(place.warnings).toHaveLength(1);
    expect(await place.storedTexts()).toEqual(place.texts());
    await audit.close();
  });

  it("[speed-06a] not while nobody calls anything: what a start records is read where it is", async () => {
    const place = await JournalPlace.open();
    const clock = new FakeClock();
    const log = place.log({ isJournal: true, clock, onWritten: () => audit.soon() });
    const audit = place.audit(log, { clock, isReady: false });
    audit.start();
    log.event({ time: new Date().toISOString(), event: "server.started" });
    log.flush();
    await clock.advance(10 * 60_000);
    expect(await place.store.audit.files()).toEqual([]);
    expect((await audit.query({ limit: 10, order: "newest" })).entries).toMatchObject([{ event: "server.started" }]);
    numbered(log, "n", 1);
    log.flush();
    await clock.advance(5000);
    await eventually(async () => (await place.store.audit.files()).length > 0);
    expect(await place.storedTexts()).toEqual(place.texts());
    await audit.close();
  });

  it("goes on after a crash between any two steps", async () => {
    const place = await JournalPlace.open();
    place.leaveBehind(["a"], 600);
    place.leaveBehind(["b", "c"]);
    const before = place.texts();
    let steps = 0;
    for (let allowed = 0; ; allowed += 1) {
      steps = 0;
      const step = (): void => {
        steps += 1;
        if (steps > allowed) throw new Error("killed");
      };
      const { audit } = place.store;
      // A crash comes before a step or after it; both leave the same as one before the next.
      const store: StoredAudit = {
        ...audit,
        append: async (block) => {
          step();
          const isAdded = await audit.append(block);
          step();
          return isAdded;
        },
        textOf: async (file) => {
          step();
          return audit.textOf(file);
        },
      };
      const log = place.log();
      const done = await place
        .keeper(log, { store })
        .takeIn()
        .then(
          () => true,
          () => false,
        );
      log.close();
      const [stored, left] = [await place.storedTexts(), place.texts()];
      for (const [file, text] of before) {
        expect(text.startsWith(stored.get(file) ?? "")).toBe(true);
        expect(left.get(file) ?? stored.get(file)).toBe(text);
      }
      expect((await place.verify()).filter((each) => each.startsWith("error"))).toEqual([]);
      if (done) break;
    }
    expect(place.files()).toEqual([]);
    expect(await place.storedTexts()).toEqual(before);
  });

  it("also of a long file, and one that differs from the store anywhere stays", async () => {
    const place = await JournalPlace.open();
    place.leaveBehind(["long"], 3500);
    const [[name = "", text = ""] = []] = place.texts();
    await place.takeIn();
    expect(place.files()).toEqual([]);
    expect(await place.storedTexts()).toEqual(new Map([[name, text]]));
    expect(await place.verify()).toEqual([]);
    const cut = (lines: string[]): string[] => lines.slice(0, -1);
    for (const change of [cut, (lines: string[]) => lines.with(2500, "")]) {
      writeFileSync(join(place.dir, name), text);
      await place.rewriteStored(change, name);
      await place.takeIn();
      expect(place.files()).toEqual([name]);
      rmSync(join(place.dir, name));
      await place.store.audit.removeFiles([name]);
      expect([await place.store.audit.textOf(name), await place.store.audit.files()]).toEqual(["", []]);
      writeFileSync(join(place.dir, name), text);
      await place.takeIn();
      expect(place.files()).toEqual([]);
    }
  });

  it("of a file that another process takes in or prunes between two blocks is all there, or nothing", async () => {
    const place = await JournalPlace.open();
    const { audit } = place.store;
    const takingIn = async (between: (name: string) => Promise<void>): Promise<void> => {
      place.leaveBehind(["long"], 3500);
      const [name = ""] = place.files();
      let isFirst = true;
      const append: StoredAudit["append"] = async (block) => {
        const isAdded = await audit.append(block);
        if (isFirst) {
          isFirst = false;
          await between(name);
        }
        return isAdded;
      };
      const log = place.log({ isJournal: true });
      const keeper = place.keeper(log, { store: { ...audit, append } });
      await keeper.takeIn();
      await keeper.close();
    };
    let before = new Map<string, string>();
    await takingIn(async () => {
      before = place.texts();
      await place.takeIn();
      expect(place.files()).toEqual([]);
    });
    expect(await place.storedTexts()).toEqual(before);
    await audit.removeFiles([...before.keys()]);
    await takingIn(async (name) => rmSync(join(place.dir, name)));
    expect(await audit.files()).toEqual([]);
  });

  it("is done by several processes at once", async () => {
    const place = await JournalPlace.open();
    place.leaveBehind(["a", "b", "c", "d"], 300);
    const before = place.texts();
    const logs = [place.log({ isJournal: true }), place.log({ isJournal: true }), place.log({ isJournal: true })];
    const intakes = logs.map((log) => place.keeper(log));
    for (const log of logs) numbered(log, "live", 5);
    for (const log of logs) log.flush();
    await Promise.all(intakes.map((intake) => intake.takeIn()));
    for (const log of logs) log.close();
    for (const intake of intakes) await intake.takeIn();
    expect(place.files()).toEqual([]);
    const stored = await place.storedTexts();
    for (const [file, text] of before) expect(stored.get(file)).toBe(text);
    expect(stored.size).toBe(7);
    expect(await place.verify()).toEqual([]);
    expect(place.warnings).toEqual([]);
  });

  it("keeps lines that are no records, and leaves a torn end where it is; verify says what it said before", async () => {
    const torn = await JournalPlace.open();
    const killed = torn.log({ pid: DEAD_PID });
    numbered(killed, "n", 3);
    killed.flush();
    const path = join(torn.dir, torn.files()[0] ?? "");
    truncateSync(path, readFileSync(path).length - 9);
    const before = [...torn.texts()];
    const said = await torn.verify();
    expect(said).toContain("warning truncated 4");
    await torn.takeIn();
    expect([...torn.texts()]).toEqual(before);
    expect((await torn.store.audit.files())[0]?.lines).toBe(3);
    expect(await torn.verify()).toEqual(said);
    killed.close();

    const damaged = await JournalPlace.open();
    damaged.leaveBehind(["n"], 5);
    damaged.rewrite((lines) => lines.with(3, "\0nonsense").toSpliced(5, 0, lines[2] ?? ""));
    const told = await damaged.verify();
    expect(told.length).toBeGreaterThan(0);
    const texts = damaged.texts();
    await damaged.takeIn();
    expect(damaged.files()).toEqual([]);
    expect(await damaged.storedTexts()).toEqual(texts);
    expect(await damaged.verify()).toEqual(told);

    const bytes = await JournalPlace.open();
    bytes.leaveBehind(["n"], 2);
    appendFileSync(join(bytes.dir, bytes.files()[0] ?? ""), Buffer.from([0xff, 0xfe, 0x0a]));
    await bytes.takeIn();
    // Text cannot hold these bytes.
    expect(bytes.files()).toHaveLength(1);
    expect(bytes.warnings[0]).toContain("is not what the store has of it");
    expect(await bytes.verify()).toEqual(["error changed 5"]);
  });

  it("leaves a file that the store has otherwise, and verify tells", async () => {
    const place = await JournalPlace.open();
    const log = place.log({ isJournal: true });
    const intake = place.keeper(log);
    numbered(log, "n", 5);
    log.flush();
    await intake.takeIn();
    await place.rewriteStored((lines) => lines.with(3, (lines[3] ?? "").replace("n3", "n9")));
    expect(await place.verify()).toEqual(["error changed 4"]);
    log.close();
    await intake.takeIn();
    expect(place.files()).toHaveLength(1);
    expect(place.warnings).toHaveLength(1);
    expect((await verifyAudit(place.dir)).ok).toBe(true);
    expect(await place.verify()).toEqual(["error changed 4"]);
  });

  it("a database that is down does not let the folder grow without end", async () => {
    const place = await JournalPlace.open();
    const down: StoredAudit = { ...place.store.audit, append: () => Promise.reject(new Error("down")) };
    const log = place.log({ isJournal: true, maxBytes: 64 * 1024 });
    const intake = place.keeper(log, { store: down, maxBytes: 64 * 1024 });
    for (let round = 0; round < 4; round += 1) {
      numbered(log, `n${round}`, 60);
      log.flush();
      await expect(intake.takeIn()).rejects.toThrow("down");
    }
    const bytes = [...place.texts().values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(bytes).toBeLessThan(64 * 1024);
    expect(bytes).toBeGreaterThan(32 * 1024);
    log.close();
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true });
    expect(place.warnings).toHaveLength(1);
  });
});
