import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyAudit } from "../../src/telemetry/audit/verify.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { callRecord } from "../support/call-record.ts";
import { AuditPlace, numbered, startRecord } from "./audit-place.ts";

describe("[guard-18a] a record per call and per decision", () => {
  it("keeps who, what, decision, outcome, duration, sizes and findings", async () => {
    const place = new AuditPlace();
    const log = place.log();
    const rule = { level: "server", list: "deny", pattern: "delete_*", where: "toolcrib.json (server files)" } as const;
    const record = callRecord({
      role: "reviewer",
      user: "ada",
      decision: "deny",
      rule,
      outcome: "denied",
      findings: [{ code: "hidden_text", severity: "high" }],
      notes: { ticket: 7 },
    });
    void log.write(record, { arguments: { path: "ä" } });
    log.close();
    const [entry] = await place.read();
    expect(entry?.record).toMatchObject({ ...record, type: "call", argumentBytes: 13 });
    expect(entry?.record.argumentsHash).toMatch(/^[0-9a-f]{64}$/);
    expect(entry?.record).not.toHaveProperty("arguments");
    expect(readFileSync(join(place.dir, place.files()[0] ?? ""), "utf8")).not.toContain('"path"');
  });

  it("[gate-13a] tells the end of a call as it is told, also where it differs from the beginning", async () => {
    const place = new AuditPlace();
    const log = place.log({ redact: (text) => text.replace("hush", "[masked]") });
    const begun = startRecord({ name: "hush", role: "bot" });
    const ends = [
      callRecord({ ...begun }),
      callRecord({ ...begun, name: "other", decision: "deny", user: "ada", origin: { source: "x", name: "hush" } }),
    ];
    for (const end of ends) {
      void log.begin(begun, { arguments: { a: 1 } });
      void log.write(end, { arguments: { a: 2 } });
    }
    log.close();
    const lines = place.lines().flatMap((line) => {
      const { seq: _seq, prev: _prev, hash: _hash, ...record } = JSON.parse(line) as Record<string, unknown>;
      return record["type"] === "call" ? [record] : [];
    });
    const { name: _name, origin: _origin, notes: _notes, ...same } = ends[0] ?? callRecord();
    expect(lines[0]).toMatchObject({ ...same, name: "[masked]", argumentBytes: 7 });
    expect(lines[1]).toMatchObject({ name: "other", decision: "deny", user: "ada", origin: { name: "[masked]" } });
    expect(lines[0]?.["argumentsHash"]).toBe(lines[1]?.["argumentsHash"]);
  });

  it("keeps decisions and events as records of their own", async () => {
    const place = new AuditPlace();
    const log = place.log();
    const time = "2026-11-15T10:00:00.000Z";
    const common = { time, session: "s", door: "cli", kind: "tool", name: "files__delete", origin: null };
    log.decision({ ...common, decision: "ask", rule: null, answer: "no" });
    log.event({ time, event: "pin.approved", origin: { source: "files", name: "read" }, details: { before: "a" } });
    log.close();
    const records = (await place.read()).map(({ record }) => record);
    expect(records[0]).toMatchObject({ type: "decision", decision: "ask", answer: "no", name: "files__delete" });
    expect(records[1]).toMatchObject({ type: "event", event: "pin.approved", details: { before: "a" } });
  });

  it("[gate-13a] writes the beginnings of calls that begin together at once, before any of them goes on", async () => {
    const place = new AuditPlace();
    const log = place.log();
    void log.begin(startRecord());
    const together = [startRecord(), startRecord(), startRecord()].map((record) => log.begin(record));
    expect(place.lines()).toHaveLength(2);
    await together[0];
    expect(place.lines()).toHaveLength(5);
    expect(new Set(together).size).toBe(1);
    log.close();
  });

  it("writes that a call began before begin lets it go on, and shows it only where the end is missing", async () => {
    const place = new AuditPlace();
    const log = place.log();
    const [ended, hanging, kept] = [startRecord(), startRecord({ user: "ada" }), startRecord()];
    for (const each of [ended, hanging, kept]) await log.begin(each, { arguments: { path: "x" } });
    expect(place.lines().map((line) => (JSON.parse(line) as { type: string }).type)).toEqual([
      "header",
      "start",
      "start",
      "start",
    ]);
    expect((await place.read()).map(({ record }) => record.callId)).toEqual(
      [ended, hanging, kept].map(({ callId }) => callId),
    );
    // Whatever became of the arguments meanwhile: these were sent.
    void log.write(callRecord({ callId: ended.callId }), { arguments: { path: "changed" } });
    log.withhold(kept.callId);
    log.close();
    const records = (await place.read()).map(({ record }) => record);
    expect(records).toMatchObject([
      { type: "call", callId: ended.callId, outcome: "ok", argumentBytes: 12 },
      { type: "event", event: "call.withheld", callId: kept.callId },
      {
        type: "start",
        callId: hanging.callId,
        outcome: "unfinished",
        user: "ada",
        decision: "allow",
        argumentBytes: 12,
      },
    ]);
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true, chains: [{ problems: [] }] });
  });

  it("hashes arguments by value, differently in each chain", async () => {
    const place = new AuditPlace();
    for (const log of [place.log(), place.log()]) {
      void log.write(callRecord(), { arguments: { a: 1, b: [2] } });
      void log.write(callRecord(), { arguments: { b: [2], a: 1 } });
      void log.write(callRecord(), { arguments: { a: 1, b: [3] } });
      log.close();
    }
    const hashes = Map.groupBy(await place.read(), (entry) => entry.chain);
    const [first, second] = [...hashes.values()].map((entries) => entries.map(({ record }) => record.argumentsHash));
    expect(first?.[0]).toBe(first?.[1]);
    expect(first?.[0]).not.toBe(first?.[2]);
    expect(first?.[0]).not.toBe(second?.[0]);
  });

  it("keeps arguments as masked text, cut at 4 KiB, only when told to", async () => {
    const place = new AuditPlace();
    const log = place.log({ keepsArguments: () => true, redact: (text) => text.replaceAll("hunter2", "[redacted]") });
    void log.write(callRecord({ name: "call hunter2", notes: { said: "hunter2" } }), {
      arguments: { password: "hunter2" },
    });
    // The secret stands across the place where the text is cut.
    void log.write(callRecord(), { arguments: { text: `${"x".repeat(4096 - 12)}hunter2` } });
    void log.write(callRecord(), { arguments: { text: "y".repeat(2_000_000) } });
    log.close();
    const records = (await place.read()).map(({ record }) => record);
    expect(records[0]).toMatchObject({
      name: "call [redacted]",
      notes: { said: "[redacted]" },
      arguments: '{"password":"[redacted]"}',
    });
    expect(Buffer.byteLength(records[1]?.arguments ?? "")).toBeLessThanOrEqual(4096 + 3);
    expect(records[2]?.arguments).toBe("(too long to keep)");
    expect(place.lines().join("\n")).not.toContain("hunt");
  });

  it("bounds a record whatever a caller sends", async () => {
    const place = new AuditPlace();
    const log = place.log({ keepsArguments: () => true });
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown;
    const huge = "\u0000".repeat(1_000_000);
    void log.write(callRecord({ name: huge, notes: { huge }, role: huge }), { arguments: { huge } });
    void log.write(callRecord({ notes: { number: 1n } }), { arguments: deep });
    log.close();
    expect(await place.read()).toHaveLength(2);
    expect(Math.max(...place.lines().map((line) => line.length))).toBeLessThan(128 * 1024);
    expect(log.lost).toBe(0);
  });

  it("writes all records of a turn of the event loop at its end", async () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "n", 3);
    await settle(1);
    expect(place.lines()).toHaveLength(4);
    log.close();
    expect(place.lines()).toHaveLength(5);
  });

  it("makes neither folder nor file before there is something to keep, and lets nobody else read them", () => {
    const place = new AuditPlace();
    const log = place.log();
    log.close();
    expect(() => place.files()).toThrow("ENOENT");
    const second = place.log();
    numbered(second, "n", 1);
    second.close();
    expect(statSync(place.dir).mode & 0o777).toBe(0o700);
    expect(statSync(join(place.dir, place.files()[0] ?? "")).mode & 0o777).toBe(0o600);
  });

  it("goes on into new files and removes the oldest, and the log still verifies", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ maxBytes: 64 * 1024, clock });
    for (let round = 0; round < 40; round += 1) {
      numbered(log, `round${round}-`, 10);
      log.flush();
      await clock.advance(1000);
    }
    const bytes = place.files().reduce((sum, file) => sum + statSync(join(place.dir, file)).size, 0);
    expect(bytes).toBeLessThanOrEqual(64 * 1024);
    expect(bytes).toBeGreaterThan(40 * 1024);
    log.close();
    const report = await verifyAudit(place.dir);
    expect(report).toMatchObject({ ok: true, chains: [{ state: "closed", problems: [] }] });
    const names = await place.names();
    expect(names.at(-1)).toBe("round39-10");
    expect(names).not.toContain("round0-1");
  });

  it("bounds the number of files that many short processes leave", async () => {
    const place = new AuditPlace();
    for (let number = 0; number < 20; number += 1) {
      const log = place.log({ maxFiles: 5 });
      numbered(log, `n${number}-`, 1);
      log.close();
    }
    expect(place.files()).toHaveLength(5);
    expect((await verifyAudit(place.dir)).ok).toBe(true);
  });
});

describe("[guard-18a] trouble with the disk stops no call", () => {
  it("tells once, keeps what it can, counts what it cannot, and goes on when it can again", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    writeFileSync(place.dir, "a file where the folder should be");
    const log = place.log({ clock });
    for (let round = 0; round < 3; round += 1) {
      numbered(log, `before${round}-`, 1);
      await settle(1);
    }
    expect(place.problems).toHaveLength(1);
    expect(place.problems[0]).toContain(place.dir);
    const long = "x".repeat(1000);
    for (let number = 0; number < 6000; number += 1) void log.write(callRecord({ name: long }));
    expect(log.lost).toBeGreaterThan(0);

    rmSync(place.dir);
    await clock.advance(5000);
    numbered(log, "after", 1);
    log.close();
    const records = (await place.read()).map(({ record }) => record);
    expect(records[0]).toMatchObject({ event: "audit.lost", details: { count: log.lost } });
    expect(records.at(-1)).toMatchObject({ name: "after1" });
    expect(records).toHaveLength(6000 + 3 + 1 - log.lost + 1);
    expect((await verifyAudit(place.dir)).ok).toBe(true);
  });

  it.skipIf(process.getuid?.() === 0)("survives a folder that it may not write to", () => {
    const place = new AuditPlace();
    chmodSync(place.root, 0o500);
    const log = place.log();
    numbered(log, "n", 1);
    log.close();
    chmodSync(place.root, 0o700);
    expect(place.problems).toHaveLength(1);
    expect(log.lost).toBe(1);
  });

  it("leaves no half line behind when the disk takes only part of a batch", async () => {
    const place = new AuditPlace();
    const main = resolve(import.meta.dirname, "../fixtures/audit-writer.mjs");
    // A limit on the size of files is what a full disk looks like from inside.
    const done = spawnSync(
      "bash",
      ["-c", `ulimit -f 8; trap '' XFSZ; exec "$0" "$@"`, process.execPath, main, place.dir, "fill"],
      {
        encoding: "utf8",
      },
    );
    expect(done.stderr).toContain("cannot be written");
    const report = await verifyAudit(place.dir);
    expect(report.ok).toBe(true);
    expect(report.chains[0]?.records).toBeGreaterThan(5);
    expect(statSync(join(place.dir, place.files()[0] ?? "")).size).toBeLessThanOrEqual(8 * 1024);
  });

  it("begins a new file when somebody removes the one in use, and verify shows it", async () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "gone", 2);
    log.flush();
    rmSync(join(place.dir, place.files()[0] ?? ""));
    numbered(log, "kept", 2);
    log.close();
    expect(place.problems).toHaveLength(1);
    expect(await place.names()).toEqual(["kept1", "kept2"]);
    expect((await verifyAudit(place.dir)).chains[0]?.problems).toMatchObject([{ what: "removed", severity: "error" }]);
  });

  it("[gate-13a] writes again what went into a removed file since it was last looked at", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ clock });
    numbered(log, "gone", 2);
    log.flush();
    rmSync(join(place.dir, place.files()[0] ?? ""));
    void log.begin(startRecord({ name: "began" }));
    numbered(log, "ended", 1);
    await settle();
    expect(place.files()).toEqual([]);
    await clock.advance(1000);
    expect(await place.names()).toEqual(["ended1", "began"]);
    numbered(log, "later", 1);
    log.close();
    expect(await place.names()).toEqual(["ended1", "later1", "began"]);
    expect(place.problems).toHaveLength(1);
    const { problems, records } = (await verifyAudit(place.dir)).chains[0] ?? {};
    expect(problems).toMatchObject([{ what: "removed", severity: "error" }]);
    // With the header and the end.
    expect(records).toBe(5);
  });

  it("[gate-13a] looks by itself where much is written in one turn", () => {
    const place = new AuditPlace();
    const log = place.log({ clock: new FakeClock() });
    void log.begin(startRecord());
    rmSync(join(place.dir, place.files()[0] ?? ""));
    for (let n = 0; n < 3000; n++) void log.begin(startRecord());
    log.flush();
    expect(place.files()).toHaveLength(1);
    log.close();
    expect(place.problems).toHaveLength(1);
  });
});

describe("[guard-18d] several processes, and processes that end badly", () => {
  const writer = resolve(import.meta.dirname, "../fixtures/audit-writer.mjs");
  const run = (place: AuditPlace, ...args: string[]): { status: number | null; signal: NodeJS.Signals | null } =>
    spawnSync(process.execPath, [writer, place.dir, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "ignore", "inherit"],
    });

  it("kill -9 leaves a chain that reads and verifies, with a warning", async () => {
    const place = new AuditPlace();
    expect(run(place, "kill", "25").signal).toBe("SIGKILL");
    expect(await place.names()).toHaveLength(25);
    const report = await verifyAudit(place.dir);
    expect(report.ok).toBe(true);
    expect(report.chains[0]).toMatchObject({
      state: "unclosed",
      problems: [{ what: "truncated", severity: "warning" }],
    });
    // Somebody else's log is not disturbed by it.
    const log = place.log();
    numbered(log, "later", 1);
    log.close();
    expect((await verifyAudit(place.dir)).ok).toBe(true);
  });

  it("a process that is killed during a call leaves that the call began", async () => {
    const place = new AuditPlace();
    expect(run(place, "begin").signal).toBe("SIGKILL");
    const [entry, ...more] = await place.read();
    expect(more).toEqual([]);
    expect(entry?.record).toMatchObject({
      type: "start",
      name: "files__wipe",
      outcome: "unfinished",
      argumentBytes: 12,
    });
    expect(entry?.record.argumentsHash).toMatch(/^[0-9a-f]{64}$/);
    expect((await verifyAudit(place.dir)).ok).toBe(true);
    // What shows that the call began cannot be cut off again without a trace.
    place.rewrite((lines) => lines.slice(0, -1));
    expect(await verifyAudit(place.dir)).toMatchObject({
      ok: false,
      chains: [{ problems: [{ what: "truncated" }, {}] }],
    });
  });

  it("process.exit without closing loses nothing and closes the chain", async () => {
    const place = new AuditPlace();
    expect(run(place, "exit", "25").status).toBe(3);
    expect(await place.names()).toHaveLength(25);
    expect((await verifyAudit(place.dir)).chains[0]).toMatchObject({ state: "closed", problems: [] });
  });

  it("processes write at once, each its own chain, and their records are read in the order of time", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const logs = [place.log({ clock }), place.log({ clock }), place.log({ clock })];
    for (let number = 0; number < 30; number += 1) {
      const time = new Date(clock.now() + number * 1000).toISOString();
      void logs[number % 3]?.write(callRecord({ name: `n${number}`, time, durationMs: 1 }));
    }
    for (const log of logs) log.close();
    expect(place.files()).toHaveLength(3);
    expect(await place.names()).toEqual(Array.from({ length: 30 }, (_, number) => `n${number}`));
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true, chains: { length: 3 } });
  });

  it("never removes the file that a living process writes to", async () => {
    const place = new AuditPlace();
    const living = place.log({ maxBytes: 1024 * 1024 });
    numbered(living, "living", 20);
    living.flush();
    const small = place.log({ maxBytes: 8 * 1024 });
    for (let round = 0; round < 20; round += 1) {
      numbered(small, "small", 5);
      small.flush();
    }
    numbered(living, "later", 1);
    living.close();
    small.close();
    const names = await place.names();
    expect(names.filter((name) => name?.startsWith("living") === true)).toHaveLength(20);
    expect(names).toContain("later1");
    expect((await verifyAudit(place.dir)).ok).toBe(true);
  });
});
