import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { type ChainHead, type Heads, readHeads, updateHeads } from "../../src/telemetry/audit/heads.ts";
import { AuditKey, auditKeysOf } from "../../src/telemetry/audit/key.ts";
import { type AuditReport, verifyAudit } from "../../src/telemetry/audit/verify.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { AuditPlace, numbered } from "./audit-place.ts";

function changeHeads(place: AuditPlace, change: (heads: { chains: Record<string, ChainHead> }) => object): void {
  const file = join(place.dir, "heads.json");
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, "utf8")) as Parameters<typeof change>[0])));
}

function stripSignature(place: AuditPlace): void {
  changeHeads(place, ({ chains }) => {
    const plain = Object.entries(chains).map(([chain, { key: _key, ...head }]) => [chain, head]);
    return { version: 1, chains: Object.fromEntries(plain) };
  });
}

function dropFirstChain(place: AuditPlace): void {
  changeHeads(place, (heads) => ({ ...heads, chains: Object.fromEntries(Object.entries(heads.chains).slice(1)) }));
}

function headsOf(place: AuditPlace): Heads {
  const { state, heads } = readHeads(place.dir);
  if (state === "missing" || state === "damaged") throw new Error(`heads.json is ${state}`);
  return heads;
}

function errors({ problems, chains }: AuditReport): string[] {
  const all = [...problems, ...chains.flatMap((chain) => chain.problems)];
  return all.filter(({ severity }) => severity === "error").map(({ what, file }) => `${what} ${file}`);
}

/** A log with three closed chains of two records. */
function threeChains(): AuditPlace {
  const place = new AuditPlace();
  for (const name of ["a", "b", "c"]) {
    const log = place.log({ pid: 4_194_999 });
    numbered(log, name, 2);
    log.close();
  }
  return place;
}

/** As if the files had been there for a while: what is a moment old may still be at its first record. */
function age(place: AuditPlace): void {
  for (const file of place.files()) utimesSync(join(place.dir, file), 1000, 1000);
}

describe("[guard-18b] the heads of chains", () => {
  it("are written at once for a new file and at the end, and once a second in between", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ clock });
    numbered(log, "n", 2);
    log.flush();
    const head = (): ChainHead | undefined => headsOf(place).get(log.chain);
    expect(head()).toMatchObject({ file: place.files()[0], seq: 2, closed: false });
    numbered(log, "n", 3);
    log.flush();
    await clock.advance(999);
    expect(head()?.seq).toBe(2);
    await clock.advance(1);
    expect(head()?.seq).toBe(5);
    await clock.advance(5000);
    log.close();
    const last = JSON.parse(place.lines().at(-1) ?? "") as { hash: string };
    expect(head()).toMatchObject({ seq: 6, hash: last.hash, closed: true });
    expect(clock.pending).toBe(0);
    expect(statSync(join(place.dir, "heads.json")).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.dir).toSorted()).toEqual([...place.files(), "heads.json"]);
  });

  it("show that the newest file was cut, emptied, removed, or put under another name", async () => {
    const damage: [string, (path: string) => void][] = [
      [
        "truncated",
        (path) => writeFileSync(path, `${readFileSync(path, "utf8").trimEnd().split("\n").slice(0, -1).join("\n")}\n`),
      ],
      [
        "truncated",
        (path) => writeFileSync(path, `${readFileSync(path, "utf8").split("\n").slice(0, 2).join("\n")}\n`),
      ],
      ["truncated", (path) => writeFileSync(path, "")],
      ["removed", (path) => rmSync(path)],
    ];
    for (const [what, change] of damage) {
      const place = threeChains();
      const newest = place.files().at(-1) ?? "";
      expect(errors(await verifyAudit(place.dir))).toEqual([]);
      change(join(place.dir, newest));
      const report = await verifyAudit(place.dir);
      expect(report.ok).toBe(false);
      expect(errors(report)).toEqual([`${what} ${newest}`]);
    }
  });

  it("show that all files were removed", async () => {
    const place = threeChains();
    const files = place.files();
    for (const file of files) rmSync(join(place.dir, file));
    const report = await verifyAudit(place.dir);
    expect(errors(report).toSorted()).toEqual(files.map((file) => `removed ${file}`));
    expect(report.chains.map(({ state }) => state)).toEqual(["missing", "missing", "missing"]);
  });

  it("are missed themselves: by verify, and by the next process, which leaves a record of it", async () => {
    const place = threeChains();
    rmSync(join(place.dir, "heads.json"));
    expect((await verifyAudit(place.dir)).ok).toBe(true);
    age(place);
    expect(errors(await verifyAudit(place.dir))).toEqual(["removed heads.json"]);
    const log = place.log();
    numbered(log, "next", 1);
    log.flush();
    log.close();
    expect(place.problems).toMatchObject([expect.stringContaining("heads.json") as string]);
    expect((await place.read()).at(-1)?.record).toMatchObject({
      event: "audit.heads_lost",
      details: { what: "missing" },
    });

    writeFileSync(join(place.dir, "heads.json"), '{"version":1,"chains":{"x":1}}');
    expect(errors(await verifyAudit(place.dir))).toContain("changed heads.json");
  });

  it("[trust-16a] are missed by a process that writes once and ends, and by one that ends within the second", async () => {
    for (const flushes of [false, true]) {
      const place = threeChains();
      age(place);
      rmSync(join(place.dir, "heads.json"));
      const log = place.log();
      numbered(log, "next", 1);
      if (flushes) {
        log.flush();
        rmSync(join(place.dir, "heads.json"));
      }
      log.close();
      expect(errors(await verifyAudit(place.dir))).toContainEqual(expect.stringMatching(/^removed .*jsonl$/));
    }
  });

  it("that are removed while a process runs are missed by that process", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ clock });
    numbered(log, "n", 1);
    log.flush();
    rmSync(join(place.dir, "heads.json"));
    numbered(log, "n", 1);
    log.flush();
    await clock.advance(1000);
    expect(place.problems).toHaveLength(1);
    expect((await place.read()).at(-1)?.record).toMatchObject({ event: "audit.heads_lost" });
    log.close();
    expect(await verifyAudit(place.dir)).toMatchObject({
      ok: false,
      problems: [{ what: "removed", message: expect.stringContaining("heads.json was removed or damaged") as string }],
    });
  });

  it("[trust-16b] that are signed say for good that their signature was stripped or does not fit", async () => {
    const keys = auditKeysOf(new AuditKey("a key of many characters"));
    for (const { tamper, said } of [
      { tamper: stripSignature, said: "had lost its signature" },
      { tamper: dropFirstChain, said: "was removed or damaged" },
    ]) {
      const place = new AuditPlace();
      const clock = new FakeClock();
      for (const name of ["a", "b", "c"]) {
        if (name === "c") tamper(place);
        const log = place.log({ clock, keys });
        numbered(log, name, 1);
        log.close();
        await clock.advance(61_000);
      }
      const problems = (await verifyAudit(place.dir, { keys })).problems.map(({ message }) => message);
      expect(problems).toEqual([expect.stringContaining(said)]);
    }
  });

  it("go when their chains are pruned, and stay few", () => {
    const place = new AuditPlace();
    for (let number = 0; number < 12; number += 1) {
      const log = place.log({ maxFiles: 4 });
      numbered(log, `n${number}-`, 1);
      log.close();
    }
    expect([...headsOf(place).values()].map(({ file }) => file).toSorted()).toEqual(place.files());
    const entry = { file: "x", seq: 1, hash: "h" };
    for (let number = 0; number < 300; number += 1) {
      updateHeads(place.dir, (heads) => void heads.set(`chain${number}`, { ...entry, closed: number > 0 }), 0);
    }
    const left = [...headsOf(place).keys()];
    expect(left).toHaveLength(256);
    // The one that is still open is kept, however old.
    expect(left[0]).toBe("chain0");
    expect(left.at(-1)).toBe("chain299");
  });

  it("wait for a process that writes them, and not for one that died over it", async () => {
    const place = new AuditPlace();
    const clock = new FakeClock();
    const log = place.log({ clock });
    numbered(log, "n", 1);
    log.flush();
    const lock = join(place.dir, "heads.json.lock");
    writeFileSync(lock, "");
    numbered(log, "n", 1);
    log.flush();
    await clock.advance(1000);
    expect(headsOf(place).get(log.chain)?.seq).toBe(1);
    rmSync(lock);
    await clock.advance(50);
    expect(headsOf(place).get(log.chain)?.seq).toBe(2);
    writeFileSync(lock, "");
    utimesSync(lock, 1000, 1000);
    log.close();
    expect(headsOf(place).get(log.chain)).toMatchObject({ seq: 3, closed: true });
    expect(existsSync(lock)).toBe(false);
  });

  it("are waited for once while another process holds them, and not again with each record", { retry: 2 }, () => {
    const place = new AuditPlace();
    const log = place.log({ clock: new FakeClock() });
    mkdirSync(place.dir);
    writeFileSync(join(place.dir, "heads.json.lock"), "");
    const [first, ...later] = Array.from({ length: 4 }, () => {
      const start = performance.now();
      numbered(log, "n", 1);
      log.flush();
      return performance.now() - start;
    });
    expect(Math.max(...later)).toBeLessThan((first ?? 0) / 2);
    rmSync(join(place.dir, "heads.json.lock"));
    log.close();
    expect(headsOf(place).get(log.chain)).toMatchObject({ seq: 5, closed: true });
  });

  it("[guard-18d] of several processes at once are all there", async () => {
    const place = new AuditPlace();
    const writer = resolve(import.meta.dirname, "../fixtures/audit-writer.mjs");
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, [writer, place.dir, "exit", "20"], { stdio: "ignore" }),
    );
    await Promise.all(children.map((child) => once(child, "exit")));
    expect([...headsOf(place).values()]).toMatchObject(Array.from({ length: 4 }, () => ({ seq: 21, closed: true })));
    expect(await verifyAudit(place.dir)).toMatchObject({ ok: true, problems: [] });
  });
});
