import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AuditFile, endsOf, fileName, filesToPrune, isInUse, listFiles } from "../../src/telemetry/audit/files.ts";
import { openLine, parseLine, sealLine } from "../../src/telemetry/audit/line.ts";
import { AuditPlace, numbered } from "./audit-place.ts";

const DEAD_PID = 4_194_999;
const CHAIN = "0123456789abcdef";

describe("[guard-18b] a line", () => {
  it("opens as what was sealed, whatever the text", () => {
    fc.assert(
      fc.property(fc.nat(), fc.string({ unit: "binary" }), (seq, text) => {
        const body = JSON.stringify({ type: "event", time: "2026-11-15T10:00:00.000Z", event: text });
        const { line, hash } = sealLine(seq, null, body);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        const opened = openLine(line.slice(0, -1));
        expect(opened).toMatchObject({ intact: true, record: { seq, prev: null, hash } });
        expect(opened?.record).toHaveProperty("event", text);
      }),
    );
  });

  it("is no record without the members that readers rely on", () => {
    const good = { seq: 1, prev: null, hash: "x", type: "event", time: "t" };
    expect(parseLine(JSON.stringify(good))).toEqual(good);
    const bad = [{ seq: "1" }, { seq: 1.5 }, { prev: 1 }, { hash: 1 }, { type: "other" }, { time: 1 }, { origin: "x" }];
    for (const change of [...bad, { type: "header" }, { type: "pruned" }, { type: "pruned", files: [1] }]) {
      expect(parseLine(JSON.stringify({ ...good, ...change })), JSON.stringify(change)).toBeUndefined();
    }
    for (const text of ["", "null", "[]", "1", "{"]) expect(parseLine(text)).toBeUndefined();
  });
});

describe("[guard-18a] files", () => {
  it("have names that sort by age and tell start, process and chain", () => {
    const place = new AuditPlace();
    mkdirSync(place.dir);
    const starts = [Date.parse("2026-11-15T10:00:00.007Z"), Date.parse("1999-01-02T03:04:05.678Z")];
    for (const start of starts) writeFileSync(join(place.dir, fileName(start, 42, CHAIN)), "");
    for (const other of ["notes.txt", `x-1-${CHAIN}.jsonl`, `20261115T100000.000Z-1-${CHAIN}.jsonl.bak`]) {
      writeFileSync(join(place.dir, other), "");
    }
    mkdirSync(join(place.dir, fileName(0, 1, CHAIN)));
    expect(listFiles(place.dir).map(({ start, pid, chain }) => [start, pid, chain])).toEqual(
      starts.toReversed().map((start) => [start, 42, CHAIN]),
    );
  });

  it("give their first and last record, torn ends apart", () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "n", 3);
    log.flush();
    const path = join(place.dir, place.files()[0] ?? "");
    writeFileSync(path, `${readFileSync(path, "utf8")}{"torn`);
    expect(endsOf(path).last).toMatchObject({ type: "call", name: "n3", seq: 3 });
    expect(endsOf(path).header).toMatchObject({
      part: 0,
      seq: 0,
      prev: null,
      process: { pid: process.pid, host: hostname() },
    });
    expect(endsOf(join(place.dir, "absent"))).toEqual({});
    log.close();
  });

  it("are in use while their process lives, or on another machine while they are young", () => {
    const place = new AuditPlace();
    const listed = (chain: string): AuditFile => {
      const file = listFiles(place.dir).find((each) => each.chain === chain);
      if (file === undefined) throw new Error("not there");
      return file;
    };
    const [living, dead] = [place.log(), place.log({ pid: DEAD_PID })];
    for (const log of [living, dead]) {
      numbered(log, "n", 1);
      log.flush();
    }
    const now = Date.now();
    expect(isInUse(listed(living.chain), now)).toBe(true);
    expect(isInUse(listed(dead.chain), now)).toBe(false);
    const foreign = listed(dead.chain);
    writeFileSync(foreign.path, readFileSync(foreign.path, "utf8").replace(hostname(), "elsewhere.example"));
    expect(isInUse(listed(dead.chain), now)).toBe(true);
    const yesterday = new Date(now - 25 * 60 * 60 * 1000);
    utimesSync(foreign.path, yesterday, yesterday);
    expect(isInUse(listed(dead.chain), now)).toBe(false);
    living.close();
    expect(isInUse(listed(living.chain), now)).toBe(false);
    dead.close();
  });

  it("are pruned oldest first, as many as needed, and never one's own", () => {
    const file = (start: number, size: number): AuditFile => {
      const name = fileName(start, DEAD_PID, CHAIN);
      return { name, path: join("/nowhere", name), chain: CHAIN, pid: DEAD_PID, start, size, modified: start };
    };
    const files = [file(1, 100), file(2, 100), file(3, 100), file(4, 100)];
    const pruned = (own: number, bounds: { maxBytes: number; maxFiles?: number; reserve?: number }): number[] =>
      filesToPrune(files, files[own]?.name ?? "", { maxFiles: 100, reserve: 0, now: 0, ...bounds }).map(
        ({ start }) => start,
      );
    expect(pruned(3, { maxBytes: 400 })).toEqual([]);
    expect(pruned(3, { maxBytes: 399 })).toEqual([1]);
    expect(pruned(3, { maxBytes: 400, reserve: 150 })).toEqual([1, 2]);
    expect(pruned(0, { maxBytes: 250 })).toEqual([2, 3]);
    expect(pruned(3, { maxBytes: 1 })).toEqual([1, 2, 3]);
    expect(pruned(3, { maxBytes: 400, maxFiles: 2 })).toEqual([1, 2]);
  });
});
