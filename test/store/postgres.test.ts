import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { databaseStore } from "../../src/store/database-store.ts";
import { migrate } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/open-store.ts";
import { postgresEngine } from "../../src/store/postgres-engine.ts";
import { hasState, restoreInto } from "../../src/store/restore-store.ts";
import type { Store, StoreChange } from "../../src/store/store.ts";
import { workspace } from "../cli/run-cli.ts";
import { missingPostgres, PASSWORD, type Postgres, startPostgres } from "../support/postgres.ts";
import { expectFormerLines, storeBehaviour } from "./behaviour.ts";
import { contentsOf, fill } from "./contents.ts";
import { formerAudit, formerLines } from "./samples.ts";
import { isMissing } from "../support/skips.ts";
import { eventually } from "../support/eventually.ts";

const missing = missingPostgres();
isMissing("the store on PostgreSQL", missing);

describe.skipIf(missing !== undefined)("the store on PostgreSQL", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());

  storeBehaviour(async () => {
    const url = await postgres.freshUrl();
    return { open: (options = {}) => openStore({ home: "/nowhere", url, ...options }) };
  });

  async function open(url: string): Promise<Store> {
    const store = await openStore({ home: "/nowhere", url });
    if (store === undefined) throw new Error("no store");
    return store;
  }

  it("[oper-01b] lines of the audit log that had a row each become blocks, and none is lost", async () => {
    const url = await postgres.freshUrl();
    await (await open(url)).close();
    const admin = await postgres.connect(url);
    await admin.query(formerAudit(formerLines()));
    await admin.end();
    const store = await open(url);
    await expectFormerLines(store);
    await store.close();
  });

  it("[oper-01a] a change that commits late is told before those that waited for it", async () => {
    const url = await postgres.freshUrl();
    const [reader, writer] = [await open(url), await open(url)];
    const slow = await postgres.connect(url);
    const told: StoreChange[] = [];
    reader.follow((change) => told.push(change));
    // As a store on another machine would, stopped in the middle of its transaction.
    await slow.query("begin");
    await slow.query("update counter set value = value + 1");
    await slow.query("insert into outbox values (1, 'settings', 'slow', 'another', '2026-01-01')");
    let written = false;
    const quick = writer.settings.set("quick", "v").then(() => (written = true));
    await delay(100);
    expect(written).toBe(false);
    expect(told).toEqual([]);
    await slow.query("commit");
    await quick;
    await eventually(() => told.length >= 2);
    expect(told.map(({ revision, subject }) => [revision, subject])).toEqual([
      [1, "slow"],
      [2, "quick"],
    ]);
    await Promise.all([reader.close(), writer.close(), slow.end()]);
  });

  it("[oper-01a] a lost connection is made again, and nothing that changed meanwhile is missed", async () => {
    const url = await postgres.freshUrl();
    const [reader, writer] = [await open(url), await open(url)];
    const admin = await postgres.connect(url);
    const told: StoreChange[] = [];
    reader.follow((change) => told.push(change));
    await writer.settings.set("a", "1");
    await eventually(() => told.length >= 1);
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'toolcrib'",
    );
    // The connections of the pool are gone too; the first use may find that out.
    for (;;) {
      const failure = await writer.settings.set("b", "2").then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failure === undefined) break;
      expect(failure).toMatchObject({ code: "server_unavailable" });
    }
    await eventually(() => told.length >= 2);
    expect(told.map(({ subject }) => subject)).toEqual(["a", "b"]);
    await Promise.all([reader.close(), writer.close(), admin.end()]);
  });

  it("[oper-01b] a server that stops answering is given up, and used again once it answers", async () => {
    const url = await postgres.freshUrl();
    const engine = await postgresEngine(url, { clock: systemClock, warn: () => {}, answerMs: 500 });
    await migrate(engine, () => "2026-01-01");
    const quick = await databaseStore(engine, { clock: systemClock, warn: () => {} });
    const patient = await open(url);
    await Promise.all([quick.settings.set("a", "1"), patient.settings.set("b", "1")]);
    patient.follow(() => {});
    postgres.freeze(true);
    try {
      const unavailable = { code: "server_unavailable", message: expect.stringMatching(/timeout|terminated/) };
      await expect(quick.settings.get("a")).rejects.toMatchObject(unavailable);
      const waiting = patient.settings.set("a", "2").catch((error: unknown) => error);
      // Well before its statement would be given up.
      const began = performance.now();
      await patient.close();
      expect(await waiting).toMatchObject(unavailable);
      expect(performance.now() - began).toBeLessThan(10_000);
    } finally {
      postgres.freeze(false);
    }
    expect(await quick.settings.get("a")).toBe("1");
    await quick.close();
  });

  it("[oper-14a] the commands save and restore the database that the config names", async () => {
    const [url, second] = [await postgres.freshUrl(), await postgres.freshUrl()];
    const store = await open(url);
    await fill(store);
    const wanted = await contentsOf(store);
    const place = workspace();
    place.configure({}, { store: url });
    const saved = await place.runHere(["backup", "copy.tar.gz", "--json"]);
    expect(saved.json()).toMatchObject({ store: store.place });
    const occupied = await place.runHere(["restore", "copy.tar.gz", "--json"]);
    expect(occupied.json()).toMatchObject({
      error: { code: "conflict", message: expect.stringContaining("PostgreSQL") },
    });
    await store.servers.insert({ id: "later", entry: {}, source: "api" });
    const { movedAside } = (await place.runHere(["restore", "copy.tar.gz", "--force", "--json"])).json<{
      movedAside: string;
    }>();
    expect(await contentsOf(store)).toEqual(wanted);
    const before = await openStore({ home: movedAside, create: false });
    expect((await before?.servers.list())?.map(({ id }) => id)).toContain("later");
    await before?.close();
    place.configure({}, { store: second });
    const restored = await place.runHere(["restore", "copy.tar.gz"]);
    expect(restored.code, restored.stderr).toBe(0);
    const other = await open(second);
    expect(await contentsOf(other)).toEqual(wanted);
    expect(saved.stdout + saved.stderr + occupied.stdout + restored.stderr).not.toContain(PASSWORD);
    await Promise.all([store.close(), other.close()]);
  });

  it("[oper-01b] a newer database, one of another program and a refused login are told without the password", async () => {
    const newer = await postgres.freshUrl();
    await (await open(newer)).close();
    const admin = await postgres.connect(newer);
    await admin.query("insert into migrations values (99, 'later', '2030')");
    await admin.end();
    const foreign = await postgres.freshUrl();
    const other = await postgres.connect(foreign);
    await other.query("create table servers (id int)");
    const cases: [string, RegExp, string][] = [
      [newer, /version 99/, "invalid_config"],
      [foreign, /already exists/, "invalid_config"],
      [newer.replace(PASSWORD, `${PASSWORD}-wrong`), /password authentication failed/, "invalid_config"],
      [newer.replace("/postgres?", "/absent?"), /does not exist/, "invalid_config"],
      [`postgres://u:${PASSWORD}@127.0.0.1:1/db`, /cannot be reached/, "server_unavailable"],
      [`mysql://u:${PASSWORD}@127.0.0.1/db`, /not a PostgreSQL URL/, "invalid_config"],
      [`postgres://u:${PASSWORD}@[bad/db`, /not a PostgreSQL URL/, "invalid_config"],
    ];
    for (const [url, message, code] of cases) {
      const error = await openStore({ home: "/nowhere", url }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code, message: expect.stringMatching(message), hint: expect.stringMatching(/\w/) });
      expect(JSON.stringify(error) + String(error)).not.toContain(PASSWORD);
    }
    const { rows } = await other.query("select count(*)::int as n from pg_class where oid = to_regclass('migrations')");
    expect(rows).toEqual([{ n: 0 }]);
    await other.end();
  });

  it("[oper-14a] a backup is one SQLite file, and goes back into an empty or a used database", async () => {
    const [url, second] = [await postgres.freshUrl(), await postgres.freshUrl()];
    const store = await open(url);
    await fill(store);
    const home = mkdtempSync(join(tmpdir(), "toolcrib-store-"));
    const file = join(home, "toolcrib.db");
    await store.backup(file);
    expect(readFileSync(file).toString("latin1", 0, 15)).toBe("SQLite format 3");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const wanted = await contentsOf(store);
    const local = await openStore({ home });
    expect(local && (await contentsOf(local))).toEqual(wanted);
    await local?.close();

    expect(await hasState(second)).toBe(false);
    await restoreInto(second, file);
    expect(await hasState(second)).toBe(true);
    const restored = await open(second);
    expect(await contentsOf(restored)).toEqual(wanted);
    await restored.close();

    const told: StoreChange[] = [];
    const stop = store.follow((change) => told.push(change));
    const stamp = await store.skills.stamp();
    await store.servers.insert({ id: "later", entry: {}, source: "api" });
    await restoreInto(url, file);
    await eventually(() => told.length >= 5);
    expect(told.every(({ subject }) => subject === "*")).toBe(true);
    expect(await store.skills.stamp()).not.toBe(stamp);
    expect(await contentsOf(store)).toEqual(wanted);
    stop();
    await store.close();
    rmSync(home, { recursive: true });
  });
});
