import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sealLine } from "../../src/telemetry/audit/line.ts";
import { type AuditProblem, verifyAudit } from "../../src/telemetry/audit/verify.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { AuditPlace, numbered } from "./audit-place.ts";

/** Line 1 is the header, lines 2 to 11 the records n1 to n10, line 12 the end. */
function closedLog(): AuditPlace {
  const place = new AuditPlace();
  const log = place.log();
  numbered(log, "n", 10);
  log.close();
  return place;
}

async function problems(place: AuditPlace): Promise<AuditProblem[]> {
  return (await verifyAudit(place.dir)).chains.flatMap((chain) => [...chain.problems]);
}

async function brief(place: AuditPlace): Promise<string[]> {
  return (await problems(place)).map(({ severity, what, line }) => `${severity} ${what} ${line}`);
}

describe("[guard-18b] verify finds what was done to a chain", () => {
  it("finds nothing in a log that nobody touched", async () => {
    const place = closedLog();
    const report = await verifyAudit(place.dir);
    expect(report).toMatchObject({ ok: true, chains: [{ state: "closed", records: 12, problems: [] }] });
    expect(report.chains[0]?.head?.hash).toBe((JSON.parse(place.lines().at(-1) ?? "") as { hash: string }).hash);
  });

  it("an empty or absent folder is fine", async () => {
    expect(await verifyAudit(new AuditPlace().dir)).toEqual({ ok: true, problems: [], chains: [] });
  });

  it("a removed line, two, and the first", async () => {
    const one = closedLog();
    one.rewrite((lines) => lines.toSpliced(4, 1));
    expect(await brief(one)).toEqual(["error removed 5"]);
    expect((await problems(one))[0]?.message).toContain("a line is missing");
    const two = closedLog();
    two.rewrite((lines) => lines.toSpliced(4, 2));
    expect((await problems(two))[0]?.message).toContain("2 lines are missing");
    const first = closedLog();
    first.rewrite((lines) => lines.slice(1));
    expect(await brief(first)).toEqual(["error removed 1"]);
  });

  it("the last record before the end", async () => {
    const place = closedLog();
    place.rewrite((lines) => lines.toSpliced(-2, 1));
    expect(await brief(place)).toEqual(["error removed 11"]);
  });

  it("a changed line, also one that was given a fitting hash, and one that is no JSON any more", async () => {
    const plain = closedLog();
    plain.rewrite((lines) => lines.with(4, (lines[4] ?? "").replace('"name":"n4"', '"name":"n9"')));
    expect(await brief(plain)).toEqual(["error changed 5"]);
    const spaced = closedLog();
    spaced.rewrite((lines) => lines.with(4, (lines[4] ?? "").replace('"seq":', '"seq": ')));
    expect(await brief(spaced)).toEqual(["error changed 5"]);
    const rehashed = closedLog();
    rehashed.rewrite((lines) => {
      const {
        seq,
        prev,
        hash: _hash,
        ...body
      } = JSON.parse(lines[4] ?? "") as { seq: number; prev: string; hash: string };
      return lines.with(4, sealLine(seq, prev, JSON.stringify({ ...body, name: "n9" })).line.trimEnd());
    });
    expect(await brief(rehashed)).toEqual(["error changed 6"]);
    const broken = closedLog();
    broken.rewrite((lines) => lines.with(4, "{}"));
    expect(await brief(broken)).toEqual(["error changed 5"]);
  });

  it("lines in another order, a copied line, a foreign line, a line after the end", async () => {
    const swapped = closedLog();
    swapped.rewrite((lines) => lines.with(4, lines[5] ?? "").with(5, lines[4] ?? ""));
    expect(await brief(swapped)).toEqual(["error reordered 6"]);
    const copied = closedLog();
    copied.rewrite((lines) => lines.toSpliced(7, 0, lines[3] ?? ""));
    expect(await brief(copied)).toEqual(["error foreign 8"]);
    const foreign = closedLog();
    foreign.rewrite((lines) => lines.toSpliced(7, 0, '{"hello":1}'));
    expect(await brief(foreign)).toEqual(["error foreign 8"]);
    const late = closedLog();
    late.rewrite((lines) => {
      const last = JSON.parse(lines.at(-1) ?? "") as { seq: number; hash: string };
      return [...lines, sealLine(last.seq + 1, last.hash, '{"type":"event","time":"x","event":"y"}').line.trimEnd()];
    });
    expect(await brief(late)).toEqual(["error foreign 13"]);
  });

  it("a file of another chain under this name", async () => {
    const place = closedLog();
    const [file = ""] = place.files();
    const text = readFileSync(join(place.dir, file), "utf8");
    rmSync(join(place.dir, file));
    writeFileSync(join(place.dir, file.replace(/[0-9a-f]{16}\.jsonl$/, "0123456789abcdef.jsonl")), text);
    expect(await brief(place)).toEqual(["error removed 0", "error foreign 1"]);
  });

  it("an end that was cut off", async () => {
    const place = closedLog();
    place.rewrite((lines) => lines.slice(0, 6));
    expect((await problems(place))[0]).toMatchObject({
      severity: "error",
      what: "truncated",
      message: expect.stringContaining("before record 11") as string,
    });
    const [file = ""] = place.files();
    truncateSync(join(place.dir, file), 0);
    expect((await verifyAudit(place.dir)).ok).toBe(false);
  });

  it("an end that is not there is a warning where nobody knows of one, because a killed process looks the same", async () => {
    const place = new AuditPlace();
    // No process has this pid.
    const log = place.log({ pid: 4_194_999, clock: new FakeClock() });
    numbered(log, "n", 5);
    log.flush();
    numbered(log, "n", 5);
    log.flush();
    // The head stands at the first five still.
    expect(await brief(place)).toEqual(["warning truncated 0"]);
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true, chains: [{ state: "unclosed", records: 11 }] });
    const [file = ""] = place.files();
    truncateSync(join(place.dir, file), readFileSync(join(place.dir, file)).length - 5);
    expect(await brief(place)).toEqual(["warning truncated 11", "warning truncated 0"]);
    log.close();
  });

  it("an end that was cut off, or a file that was removed, is an error once another chain has seen it", async () => {
    const cut = new AuditPlace();
    for (const name of ["first", "second"]) {
      const log = cut.log({ pid: 4_194_999 });
      numbered(log, name, 5);
      log.close();
    }
    const first = cut.files().find((file) => cut.lines(file).some((line) => line.includes("first1"))) ?? "";
    cut.rewrite((lines) => lines.slice(0, 4), first);
    expect((await problems(cut)).filter(({ severity }) => severity === "error")).toMatchObject([
      { what: "truncated", file: first },
    ]);
    rmSync(join(cut.dir, first));
    expect(await problems(cut)).toMatchObject([{ severity: "error", what: "removed", file: first }]);
  });

  it("a file missing in the middle or at the end of a chain, or cut before the next, is an error; one that was pruned is not", async () => {
    const build = (): AuditPlace => {
      const place = new AuditPlace();
      const log = place.log({ maxBytes: 32 * 1024 });
      numbered(log, "n", 30);
      log.close();
      expect(place.files().length).toBeGreaterThan(3);
      return place;
    };
    const middle = build();
    rmSync(join(middle.dir, middle.files()[1] ?? ""));
    expect(await brief(middle)).toEqual(["error removed 0"]);
    const begin = build();
    rmSync(join(begin.dir, begin.files()[0] ?? ""));
    expect(await problems(begin)).toMatchObject([
      { severity: "error", what: "removed", line: 0, message: "the file before this one is missing" },
    ]);
    const end = build();
    rmSync(join(end.dir, end.files().at(-1) ?? ""));
    expect(await brief(end)).toEqual(["error removed 0"]);
    const cut = build();
    cut.rewrite((lines) => lines.slice(0, -2));
    expect(await problems(cut)).toMatchObject([{ what: "truncated", file: cut.files()[0] }]);
    const pruned = build();
    const log = pruned.log({ maxBytes: 8 * 1024 });
    numbered(log, "later", 1);
    log.close();
    expect(await problems(pruned)).toEqual([]);
  });

  it("a file of several that was emptied, wherever its chain goes on, and one that was put there twice", async () => {
    const build = (): AuditPlace => {
      const place = new AuditPlace();
      const log = place.log({ maxBytes: 32 * 1024 });
      numbered(log, "n", 30);
      log.close();
      return place;
    };
    const length = build().files().length;
    expect(length).toBeGreaterThan(3);
    for (const index of Array.from({ length }, (_, each) => each)) {
      for (const left of [0, 100]) {
        const place = build();
        const file = place.files()[index] ?? "";
        truncateSync(join(place.dir, file), left);
        expect((await problems(place)).filter(({ severity }) => severity === "error")).toMatchObject([
          { what: "truncated", file },
        ]);
      }
    }
    const twice = closedLog();
    const [only = ""] = twice.files();
    copyFileSync(join(twice.dir, only), join(twice.dir, only.replace(/^\d{4}/, "9999")));
    expect(await brief(twice)).toEqual(["error foreign 0"]);
  });

  it("any cut of any file of a log but of the last line that a process wrote is an error", async () => {
    const place = new AuditPlace();
    for (const name of ["a", "b"]) {
      const log = place.log({ maxBytes: 32 * 1024 });
      numbered(log, name, 15);
      log.close();
    }
    const files = place.files();
    await fc.assert(
      fc.asyncProperty(fc.nat(files.length - 1), fc.double({ min: 0, max: 1, noNaN: true }), async (index, share) => {
        const path = join(place.dir, files[index] ?? "");
        const bytes = readFileSync(path);
        writeFileSync(path, bytes.subarray(0, Math.floor(share * (bytes.length - 1))));
        const { ok } = await verifyAudit(place.dir);
        writeFileSync(path, bytes);
        return !ok;
      }),
      { numRuns: 100 },
    );
  });

  it("any one byte changed anywhere but in the last line's newline is an error", async () => {
    const place = closedLog();
    const path = join(place.dir, place.files()[0] ?? "");
    const bytes = readFileSync(path);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 2), fc.integer({ min: 1, max: 127 }), async (at, by) => {
        const changed = Buffer.from(bytes);
        changed[at] = ((changed[at] ?? 0) + by) % 128;
        writeFileSync(path, changed);
        return !(await verifyAudit(place.dir)).ok;
      }),
      { numRuns: 300 },
    );
  });

  it("any set of lines removed from before the end is an error", async () => {
    const place = closedLog();
    const all = place.lines();
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(all.length - 2), { minLength: 1 }), async (removed) => {
        place.rewrite(() => all.filter((_, index) => !removed.includes(index)));
        return !(await verifyAudit(place.dir)).ok;
      }),
      { numRuns: 200 },
    );
  });
});
