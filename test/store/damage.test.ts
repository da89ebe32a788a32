import { spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Sqlite from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { systemClock } from "../../src/base/clock.ts";
import { storedAudit } from "../../src/store/parts/audit.ts";
import type { Store } from "../../src/store/store.ts";
import { checkFile, openFile, openSerially } from "../../src/store/sqlite-file.ts";
import { engineOf } from "../../src/store/sqlite-engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { contentsOf, fill } from "./contents.ts";
import { auditBlock } from "./samples.ts";
import { eventually } from "../support/eventually.ts";

const root = mkdtempSync(join(tmpdir(), "toolcrib-damage-"));
afterAll(() => rmSync(root, { recursive: true }));

function newHome(): string {
  return mkdtempSync(join(root, "home-"));
}

async function filledHome(): Promise<string> {
  const home = newHome();
  const store = await openStore({ home });
  if (store === undefined) throw new Error("no store");
  await fill(store);
  await store.close();
  return home;
}

/** Everything in the home, so that also files beside the database would be noticed. */
function bytesOf(home: string): Record<string, string> {
  return Object.fromEntries(readdirSync(home).map((name) => [name, hash("sha256", readFileSync(join(home, name)))]));
}

async function expectRefused(home: string, message: RegExp, code = "invalid_config"): Promise<void> {
  const before = bytesOf(home);
  for (const create of [true, false]) {
    const error = await openStore({ home, create }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), hint: expect.stringMatching(/\w/) });
    expect(error).toMatchObject({ message: expect.stringContaining(join(home, "toolcrib.db")) });
  }
  expect(bytesOf(home)).toEqual(before);
}

describe("a database that cannot be used is told and left as it is", () => {
  it("[oper-01b] garbage, and a file too short to be one", async () => {
    for (const contents of ["this is no database\n".repeat(500), "SQLite format 3\0", "x"]) {
      const home = newHome();
      writeFileSync(join(home, "toolcrib.db"), contents);
      await expectRefused(home, /damaged: it is not an SQLite database/);
    }
  });

  it("[oper-01b] a file that was cut off", async () => {
    const home = await filledHome();
    const file = join(home, "toolcrib.db");
    truncateSync(file, Math.floor(statSync(file).size / 2));
    await expectRefused(home, /damaged: it was cut off/);
  });

  it("[oper-01b] overwritten pages, wherever they are", async () => {
    const home = await filledHome();
    const whole = readFileSync(join(home, "toolcrib.db"));
    const pages = whole.length / 4096;
    for (const page of [1, Math.floor(pages / 3), pages - 2]) {
      const broken = Buffer.from(whole);
      broken.fill(0xa5, page * 4096, (page + 1) * 4096);
      writeFileSync(join(home, "toolcrib.db"), broken);
      await expectRefused(home, /damaged/);
    }
    // The first page holds the schema behind the header.
    const broken = Buffer.from(whole);
    broken.fill(0xa5, 100, 4096);
    writeFileSync(join(home, "toolcrib.db"), broken);
    await expectRefused(home, /damaged/);
  });

  it("[oper-01b] damage that still has a log beside it", async () => {
    const live = await filledHome();
    const store = await openStore({ home: live });
    await store?.settings.set("in the log", "x".repeat(20_000));
    const home = newHome();
    cpSync(live, home, { recursive: true });
    await store?.close();
    expect(statSync(join(home, "toolcrib.db-wal")).size).toBeGreaterThan(0);
    const broken = readFileSync(join(home, "toolcrib.db"));
    broken.fill(0xa5, 8 * 4096, 9 * 4096);
    writeFileSync(join(home, "toolcrib.db"), broken);
    const [database, log] = ["toolcrib.db", "toolcrib.db-wal"].map((name) => readFileSync(join(home, name)));
    await expect(openStore({ home })).rejects.toMatchObject({ code: "invalid_config" });
    expect(readFileSync(join(home, "toolcrib.db"))).toEqual(database);
    expect(readFileSync(join(home, "toolcrib.db-wal"))).toEqual(log);
  });

  it("[oper-01b] a newer version, by its header and by its table", async () => {
    const home = await filledHome();
    const db = new Sqlite(join(home, "toolcrib.db"));
    db.prepare("insert into migrations values (41, 'later', '2030')").run();
    db.close();
    await expectRefused(home, /version 41/);
    const again = new Sqlite(join(home, "toolcrib.db"));
    again.pragma("user_version = 42");
    again.close();
    await expectRefused(home, /version 42/);
  });

  it("[oper-01b] a database of another program", async () => {
    const home = newHome();
    const db = new Sqlite(join(home, "toolcrib.db"));
    db.exec("create table servers (id integer primary key, mine text); insert into servers values (1, 'kept')");
    db.close();
    await expectRefused(home, /another program/);
  });

  it("[oper-01b] a folder in the place of the file, and a file in the place of the home", async () => {
    const home = newHome();
    mkdirSync(join(home, "toolcrib.db"));
    await expect(openStore({ home })).rejects.toMatchObject({
      code: "invalid_config",
      hint: expect.stringMatching(/TOOLCRIB_HOME/),
    });
    const file = join(newHome(), "file");
    writeFileSync(file, "mine");
    await expect(openStore({ home: file })).rejects.toMatchObject({ code: "invalid_config" });
    expect(readFileSync(file, "utf8")).toBe("mine");
  });

  it("[oper-01b] a home that cannot be written", async () => {
    const home = newHome();
    chmodSync(home, 0o500);
    // Modes mean nothing to root, but nobody can make a folder there.
    const place = process.getuid?.() === 0 ? "/sys/toolcrib" : home;
    await expect(openStore({ home: place })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(join(place, "toolcrib.db")),
      hint: expect.stringContaining("TOOLCRIB_HOME"),
    });
  });
});

describe("a sound database", () => {
  it("[oper-01b] is not called damaged while another process makes it longer", async () => {
    const home = await filledHome();
    const file = join(home, "toolcrib.db");
    const writer = spawn(process.execPath, [
      "-e",
      GROW,
      file,
      createRequire(import.meta.url).resolve("better-sqlite3"),
    ]);
    const ended = once(writer, "exit");
    try {
      while (writer.exitCode === null) await checkFile(file);
    } finally {
      writer.kill();
      await ended;
    }
    expect(writer.exitCode).toBe(0);
  });
});

describe("a large database", () => {
  const LONG = Array.from({ length: 25 }, () => "x".repeat(20_000));
  /** 20 MB. */
  async function putMany(store: Store | undefined): Promise<void> {
    for (let line = 0; line < 1000; line += LONG.length) await store?.audit.append(auditBlock("large", line, LONG));
  }

  it("[oper-01b] is checked after the start, and not written to any more if it is damaged", async () => {
    const home = await filledHome();
    const clock = new FakeClock();
    const warned: string[] = [];
    const first = await openStore({ home });
    await putMany(first);
    await first?.close();
    const file = join(home, "toolcrib.db");
    const handle = openSync(file, "r+");
    // Several pages of a block: of its last one alone, reading would not notice.
    writeSync(handle, Buffer.alloc(5 * 4096, 0xa5), 0, 5 * 4096, 10 * 1024 * 1024);
    closeSync(handle);
    const store = await openStore({ home, clock, warn: (message) => warned.push(message) });
    await store?.settings.set("before", "1");
    await clock.advance(10_000);
    await eventually(() => warned.length !== 0);
    expect(warned).toEqual([expect.stringMatching(/damaged.*Nothing more is written.*toolcrib restore/)]);
    const refused = { code: "invalid_config", message: expect.stringContaining("damaged") };
    await expect(store?.settings.set("after", "1")).rejects.toMatchObject(refused);
    await expect(store?.audit.append(auditBlock("after", 0))).rejects.toMatchObject(refused);
    await expect(store?.audit.textOf("large")).rejects.not.toMatchObject({
      hint: expect.stringMatching(/Nothing was/),
    });
    expect(await store?.settings.get("before")).toBe("1");
    await store?.close();
  });

  it("[oper-01a] gets smaller when much of it goes", async () => {
    const home = await filledHome();
    const store = await openStore({ home });
    await putMany(store);
    await store?.audit.removeFiles(["large"]);
    await store?.close();
    expect(statSync(join(home, "toolcrib.db")).size).toBeLessThan(10 * 1024 * 1024);
  });
});

describe("a full disk", () => {
  it("[oper-01b] is told as what it is, and what follows works once there is room", async () => {
    const home = await filledHome();
    const database = await openFile(join(home, "toolcrib.db"), () => {});
    const engine = engineOf(database, join(home, "toolcrib.db"), { clock: systemClock, warn: () => {} });
    // The nearest thing to a full disk: SQLite gives up in the same way.
    const pages = Number(database.pragma("page_count", { simple: true }));
    database.pragma(`max_page_count = ${pages}`);
    const audit = storedAudit(engine);
    const block = auditBlock(
      "full",
      0,
      Array.from({ length: 50 }, () => "x".repeat(5000)),
    );
    await expect(audit.append(block)).rejects.toMatchObject({
      code: "server_unavailable",
      message: expect.stringContaining("cannot grow"),
      hint: "Free some space on its disk.",
    });
    database.pragma("max_page_count = 1000000");
    // On a disk that is really full it also ends the transaction by itself.
    database.exec("create trigger full before insert on audit_blocks begin select raise(rollback, 'no room'); end");
    await expect(audit.append(block)).rejects.toThrow("no room");
    database.exec("drop trigger full");
    await audit.append(block);
    expect(await audit.textOf("full")).toBe(block.text);
    await engine.close();
  });
});

describe("several stores of one process", () => {
  it("[oper-01a] are opened one after the other, and only the first looks at the file past SQLite", async () => {
    const file = join(await filledHome(), "toolcrib.db");
    const told: boolean[] = [];
    const open = (): Promise<Sqlite.Database> =>
      openSerially(file, async (isOpen) => {
        told.push(isOpen);
        await delay(1);
        return new Sqlite(file);
      });
    const opened = await Promise.all([open(), open()]);
    for (const database of opened) database.close();
    await expect(openSerially(file, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
    (await open()).close();
    expect(told).toEqual([false, true, false]);
  });
});

/** Each turn writes, and leaves: what is in the log goes into the file. */
const GROW = `
  const [file, sqlite] = process.argv.slice(1);
  for (let n = 0; n < 150; n++) {
    const db = new (require(sqlite))(file, { timeout: 10000 });
    db.prepare("insert into settings (key, value) values (?, ?)").run("grow" + n, "x".repeat(9000));
    db.close();
  }
`;

describe("the file", () => {
  it("[oper-01a] and those beside it are for their owner alone, also where the mode was wider", async () => {
    const home = newHome();
    writeFileSync(join(home, "toolcrib.db"), "", { mode: 0o644 });
    const store = await openStore({ home });
    await store?.settings.set("a", "b");
    const modes = readdirSync(home).map((name) => [name, statSync(join(home, name)).mode & 0o777]);
    expect(Object.fromEntries(modes)).toEqual({
      "toolcrib.db": 0o600,
      "toolcrib.db-wal": 0o600,
      "toolcrib.db-shm": 0o600,
    });
    await store?.close();
  });

  it("[oper-01a] commits reach the disk, not only the system", async () => {
    const home = newHome();
    const store = await openStore({ home });
    await store?.close();
    const db = await openFile(join(home, "toolcrib.db"), () => {});
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    expect(db.pragma("foreign_keys", { simple: true })).toBe(1);
    db.close();
  });

  it("[oper-01b] no file is made by those who only look", async () => {
    const home = join(newHome(), "absent");
    expect(await openStore({ home, create: false })).toBeUndefined();
    expect(() => statSync(home)).toThrow("ENOENT");
  });

  it("[oper-14a] a backup taken while others write is one whole file of one moment", async () => {
    const home = await filledHome();
    const store = await openStore({ home });
    if (store === undefined) throw new Error("no store");
    const wanted = await contentsOf(store);
    const stop = new AbortController();
    const writer = (async () => {
      const other = await openStore({ home });
      for (let n = 0; !stop.signal.aborted; n++) await other?.settings.set(`w${n}`, "x".repeat(3000));
      await other?.close();
    })();
    const target = newHome();
    for (let n = 0; n < 3; n++) await store.backup(join(target, "toolcrib.db"));
    stop.abort();
    await writer;
    expect(readdirSync(target)).toEqual(["toolcrib.db"]);
    const copy = await openStore({ home: target, create: false });
    expect(copy && (await contentsOf(copy))).toEqual(wanted);
    await copy?.close();
    await expect(store.backup(join(target, "absent", "x.db"))).rejects.toThrow("ENOENT");
    await store.close();
  });
});
