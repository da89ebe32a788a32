import { utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listLog } from "../../../src/telemetry/audit/files.ts";
import { parseLine } from "../../../src/telemetry/audit/line.ts";
import { verifyAudit } from "../../../src/telemetry/audit/verify.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { callRecord } from "../../support/call-record.ts";
import { AuditPlace, numbered } from "../../telemetry/audit-place.ts";
import { DEAD_PID, JournalPlace } from "./journal-place.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const KIB = 1024;

describe("[oper-14b] retention", () => {
  it("keeps folder and store together within maxBytes, oldest first, and the chain stays whole", async () => {
    const place = await JournalPlace.open();
    place.leaveBehind(["a", "b", "c", "d"], 30);
    const names = place.files();
    const log = place.log({ isJournal: true });
    const generous = place.keeper(log);
    await generous.takeIn();
    expect(await place.store.audit.files()).toHaveLength(4);
    const before = (await listLog(place.dir, place.store.audit)).reduce((sum, { size }) => sum + size, 0);
    // Room for a good half of it, beside what the log keeps free for its own next file.
    const maxBytes = log.fileBytes + Math.floor(before * 0.6);
    await place.keeper(log, { maxBytes }).takeIn();
    const left = (await listLog(place.dir, place.store.audit)).map(({ name }) => name);
    expect(left).toEqual([...names.slice(2), log.currentFile]);
    expect(await place.verify()).toEqual([]);
    log.close();
    await place.takeIn();
    // Also when the record of it is in the store.
    expect(await place.verify()).toEqual([]);
    const lines = [...(await place.storedTexts()).values()].join("").split("\n").slice(0, -1);
    const pruned = lines.map((line) => parseLine(line)).filter((record) => record?.type === "pruned");
    expect(pruned).toMatchObject([
      {
        files: [
          { file: names[0], seq: 31 },
          { file: names[1], seq: 31 },
        ],
      },
    ]);
  });

  it("lets whole files go that are older than maxDays, also while nothing is written", async () => {
    const place = await JournalPlace.open();
    const clock = new FakeClock();
    const old = place.log({ pid: DEAD_PID, clock });
    void old.write(callRecord({ name: "old", time: new Date(clock.now()).toISOString() }));
    old.close();
    place.leaveBehind(["young"]);
    await place.takeIn();
    const log = place.log({ isJournal: true });
    const chains = async (): Promise<string[]> => (await place.store.audit.files()).map(({ chain }) => chain);
    const intake = place.keeper(log, { clock, maxDays: 30 });
    await place.keeper(log, { clock }).takeIn();
    expect(await chains()).toHaveLength(2);
    await intake.takeIn();
    expect(await chains()).toHaveLength(1);
    expect(await chains()).not.toContain(old.chain);
    expect(await place.verify()).toEqual([]);
    // What has become old since goes an hour later at most.
    place.edit("update audit_files set last_time = '2001-01-01T00:00:00.000Z' where chain <> ?", log.chain);
    await clock.advance(61 * 60 * 1000);
    await intake.takeIn();
    expect(await chains()).toEqual([log.chain]);
    log.close();
    await intake.close();
  });

  it("begins a new file each day where files go by age, so that old records can go", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ clock, maxDays: 7 });
    numbered(log, "a", 1);
    log.flush();
    await clock.advance(DAY_MS + 1);
    numbered(log, "b", 1);
    log.flush();
    expect(place.files()).toHaveLength(2);
    log.renew();
    expect(place.files()).toHaveLength(2);
    await clock.advance(DAY_MS + 1);
    log.renew();
    log.renew();
    expect(place.files()).toHaveLength(3);
    log.close();
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true, chains: [{ state: "closed", problems: [] }] });
  });

  it("without a store the log itself lets old files go when it begins one", async () => {
    const place = new AuditPlace();
    for (const name of ["old", "young"]) {
      const log = place.log({ pid: DEAD_PID });
      numbered(log, name, 2);
      log.close();
    }
    const [old = ""] = place.files();
    const then = new Date(Date.now() - 31 * DAY_MS);
    utimesSync(join(place.dir, old), then, then);
    const log = place.log({ maxDays: 30 });
    numbered(log, "new", 1);
    log.close();
    expect(place.files()).toHaveLength(2);
    expect(place.files()).not.toContain(old);
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true });
  });

  it("never takes a file that a living process writes to, nor goes on where its record cannot be written", async () => {
    const place = await JournalPlace.open();
    const living = place.log({ maxBytes: 512 * KIB });
    numbered(living, "living", 20);
    living.flush();
    const log = place.log({ isJournal: true, maxBytes: 8 * KIB });
    const intake = place.keeper(log, { maxBytes: 8 * KIB });
    numbered(log, "n", 40);
    log.flush();
    await intake.takeIn();
    const chains = (await listLog(place.dir, place.store.audit)).map(({ chain }) => chain);
    expect(chains.filter((chain) => chain === living.chain)).toHaveLength(1);
    // Its own files beyond the newest have made room.
    expect(chains.filter((chain) => chain === log.chain).length).toBeLessThan(10);
    expect(await place.verify()).toEqual([]);
    log.close();
    const closed = place.keeper(log, { maxBytes: 1 });
    await closed.takeIn();
    expect((await listLog(place.dir, place.store.audit)).length).toBe(chains.length);
    living.close();
  });
});
