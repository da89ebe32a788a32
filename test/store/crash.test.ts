import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as delay } from "node:timers/promises";
import Sqlite from "better-sqlite3";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { eventually } from "../support/eventually.ts";

const KILLS = 50;
const AT_ONCE = 2;

const folder = mkdtempSync(join(tmpdir(), "toolcrib-crash-"));
const writer = join(folder, "writer.mjs");

/** As one file it starts in a quarter of the time, fifty times. */
beforeAll(async () => {
  const build = await rolldown({
    input: join(import.meta.dirname, "crash-writer.ts"),
    platform: "node",
    external: ["better-sqlite3", "pg"],
  });
  const sqlite = pathToFileURL(createRequire(import.meta.url).resolve("better-sqlite3")).href;
  await build.write({ file: writer, paths: { "better-sqlite3": sqlite }, codeSplitting: false });
  await build.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

it(
  "[oper-03a] fifty killed writers lose nothing that was acknowledged, and damage nothing",
  { timeout: 120_000 },
  async () => {
    const homes = Array.from({ length: AT_ONCE }, () => mkdtempSync(join(tmpdir(), "toolcrib-crash-")));
    // One home after the other's kills: each goes on with the database that the last kill left.
    const written = await Promise.all(
      homes.map(async (home, lane) => {
        let acknowledged = 0;
        for (let kill = 0; kill < KILLS / AT_ONCE; kill++) {
          const name = `w${lane}.${kill}`;
          const lines = await writeUntilKilled(home, name, Math.floor(Math.random() * 20));
          acknowledged += lines.length;
          await expectAll(home, new Map([[name, lines]]));
        }
        return acknowledged;
      }),
    );
    expect(Math.min(...written)).toBeGreaterThan(KILLS);
    for (const home of homes) rmSync(home, { recursive: true });
  },
);

it("[oper-03a] two processes write to one database at once, are killed, and lose nothing", async () => {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-crash-"));
  const names = ["left", "right"];
  const lines = await Promise.all(names.map((name) => writeUntilKilled(home, name, 60)));
  await expectAll(home, new Map(names.map((name, index) => [name, lines[index] ?? []])));
  rmSync(home, { recursive: true });
});

/** Killed at a random moment after so many writes. Resolves with what it acknowledged. */
async function writeUntilKilled(home: string, name: string, writes: number): Promise<string[]> {
  const child = spawn(process.execPath, [writer, home, name], { stdio: ["ignore", "pipe", "pipe"] });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const ended = new Promise((resolve) => child.once("close", resolve));
  await eventually(() => child.exitCode !== null || output.split("\n").length >= writes + 2);
  await delay(Math.random() * 5);
  expect(stillWriting(child), errors).toBe(true);
  child.kill("SIGKILL");
  await ended;
  // The last line may be cut off; then nobody was told.
  return output.split("\n").slice(1, -1);
}

function stillWriting(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function expectAll(home: string, acknowledged: ReadonlyMap<string, readonly string[]>): Promise<void> {
  const store = await openStore({ home, create: false });
  if (store === undefined) throw new Error("the database is gone");
  for (const [name, lines] of acknowledged) await expectWrites(store, name, lines);
  await store.close();
  const db = new Sqlite(join(home, "toolcrib.db"), { readonly: true });
  expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  const counter = db.prepare("select value from counter").pluck().get();
  const outbox = db.prepare("select count(*) as n, max(revision) as last from outbox").get();
  // No revision was given twice, and none was left out. A writer may be killed before its first.
  expect(outbox).toEqual({ n: counter, last: counter === 0 ? null : counter });
  db.close();
}

async function expectWrites(store: Store, name: string, lines: readonly string[]): Promise<void> {
  const last = (kind: string): string | undefined =>
    lines.findLast((line) => line.startsWith(`${kind} `))?.split(" ")[1];
  const told = (kind: string): string[] =>
    lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));
  const servers = new Set((await store.servers.list()).map(({ id }) => id));
  expect(told("server").filter((id) => !servers.has(id))).toEqual([]);
  const pins = new Set((await store.pins.list("/lock")).map(({ tool }) => tool));
  expect(told("pin").filter((id) => !pins.has(id))).toEqual([]);
  const skill = last("skill");
  if (skill !== undefined) expect((await store.skills.list()).map(({ id }) => id)).toContain(skill);
  const audited = (await store.audit.textOf(name)).split("\n").slice(0, -1);
  expect(audited.length).toBeGreaterThan(Number(last("audit") ?? -1));
  // Both lines of an append or none.
  expect(audited.length % 2).toBe(0);
  expect(Number((await store.settings.get(name)) ?? -1)).toBeGreaterThanOrEqual(Number(last("setting") ?? -1));
}
