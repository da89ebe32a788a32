import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create, extract } from "tar";
import { describe, expect, it } from "vitest";
import { makeBackup } from "../../src/cli/commands/backup.ts";
import { withLock } from "../../src/files/lock-file.ts";
import type { HubAudit } from "../../src/hub/audit/hub-audit.ts";
import { openAudit } from "../../src/hub/audit/hub-audit.ts";
import { systemClock } from "../../src/base/clock.ts";
import { ConfigSchema } from "../../src/model/config.ts";
import { registryLock } from "../../src/skills/registry/manifest-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { contentsOf, fill } from "../store/contents.ts";
import { auditBlock } from "../store/samples.ts";
import { MAIN } from "../support/main-program.ts";
import { type Workspace, workspace } from "./run-cli.ts";
import { eventually } from "../support/eventually.ts";

const STATE = {
  "skills/files/notes-1/SKILL.md": "---\nname: notes\n---\n",
  "skills/files/notes-1/run.sh": "echo\n",
  "audit/2026-01-01.jsonl": '{"seq":0}\n',
  "locks/abc.lock": "{}\n",
  "etc/mcp-servers.json": "{}\n",
  "installed.json": "{}\n",
};
const NOT_STATE = {
  "store.key": "the-key-itself",
  "secrets/TOKEN": "plain-secret",
  "auth/linear.json": "oauth-token",
  "hubs/1.json.old": "hub",
  "run/1.json": "{}",
  "cache/eras.json": "{}",
};

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

async function withStore<T>(home: string, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore({ home });
  if (store === undefined) throw new Error("no store");
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

function writeAll(home: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
}

async function furnished(): Promise<Workspace> {
  const place = workspace();
  writeAll(place.home, { ...STATE, ...NOT_STATE });
  await withStore(place.home, fill);
  return place;
}

function namesIn(file: string): string[] {
  return execFileSync("tar", ["-tzf", file], { encoding: "utf8" })
    .split("\n")
    .filter((name) => name !== "" && !name.endsWith("/"));
}

function read(home: string): Record<string, string> {
  return Object.fromEntries(Object.keys(STATE).map((path) => [path, readFileSync(join(home, path), "utf8")]));
}

describe("backup and restore", () => {
  it("[oper-14a] save everything that cannot be had again, and no secret; and bring it back into an empty home", async () => {
    const place = await furnished();
    const saved = await place.runHere(["backup", "copy.tar.gz", "--json"]);
    expect(saved.code, saved.stdout).toBe(0);
    expect(saved.json()).toMatchObject({ file: join(place.dir, "copy.tar.gz"), files: 7, withKey: false });
    const file = join(place.dir, "copy.tar.gz");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(namesIn(file).toSorted()).toEqual([...Object.keys(STATE), "manifest.json", "toolcrib.db"].toSorted());
    expect(readdirSync(place.dir).toSorted()).toEqual(["copy.tar.gz", "home"]);

    const wanted = await withStore(place.home, contentsOf);
    const other = workspace();
    cpSync(file, join(other.dir, "copy.tar.gz"));
    const restored = await other.runHere(["restore", "copy.tar.gz", "--json"]);
    expect(restored.code, restored.stdout + restored.stderr).toBe(0);
    expect(restored.json()).toMatchObject({ home: other.home, files: 7, movedAside: null });
    expect(read(other.home)).toEqual(STATE);
    expect(await withStore(other.home, contentsOf)).toEqual(wanted);
    const modes = ["toolcrib.db", "audit", "audit/2026-01-01.jsonl", "skills/files/notes-1", "installed.json"].map(
      (name) => (statSync(join(other.home, name)).mode & 0o777).toString(8),
    );
    expect(modes).toEqual(["600", "700", "600", "700", "600"]);
    expect(readdirSync(other.home).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("[oper-14a] the key goes along only when it is asked for, and a file is not overwritten unasked", async () => {
    const place = await furnished();
    const made = await place.runHere(["backup", "a.tar.gz", "--with-key"]);
    expect([made.code, made.stdout + made.stderr]).toEqual([0, expect.stringContaining("The backup contains the key")]);
    expect(namesIn(join(place.dir, "a.tar.gz"))).toContain("store.key");
    const again = await place.runHere(["backup", "a.tar.gz", "--json"]);
    expect(again.json()).toMatchObject({ error: { code: "conflict" } });
    expect((await place.runHere(["backup", "a.tar.gz", "--force"])).code).toBe(0);
    expect(namesIn(join(place.dir, "a.tar.gz"))).not.toContain("store.key");
    expect((await place.runHere(["backup", "home", "--json"])).json()).toMatchObject({
      error: { code: "invalid_arguments" },
    });
  });

  it("[oper-14a] a home that was never used gives an empty backup and no database", async () => {
    const place = workspace();
    expect((await place.runHere(["backup", "empty.tar.gz", "--json"])).json()).toMatchObject({ files: 0, store: null });
    expect(readdirSync(place.home)).toEqual([]);
    expect((await place.runHere(["restore", "empty.tar.gz"])).code).toBe(0);
  });

  it("[oper-14a] what is there is kept: refused first, and moved aside by --force", async () => {
    const place = await furnished();
    await place.runHere(["backup", "copy.tar.gz"]);
    const wanted = await withStore(place.home, contentsOf);
    await withStore(place.home, (store) => store.servers.insert({ id: "later", entry: {}, source: "api" }));
    writeAll(place.home, { "skills/files/later/SKILL.md": "later", "audit/2026-01-01.jsonl": "changed" });
    const refused = await place.runHere(["restore", "copy.tar.gz", "--json"]);
    expect(refused.json()).toMatchObject({ error: { code: "conflict", hint: expect.stringContaining("--force") } });
    expect(readFileSync(join(place.home, "audit/2026-01-01.jsonl"), "utf8")).toBe("changed");

    const { movedAside } = (await place.runHere(["restore", "copy.tar.gz", "--force", "--json"])).json<{
      movedAside: string;
    }>();
    expect(await withStore(place.home, contentsOf)).toEqual(wanted);
    expect(read(place.home)).toEqual(STATE);
    expect(existsSync(join(place.home, "skills/files/later"))).toBe(false);
    expect(dirname(movedAside)).toBe(place.home);
    expect(readFileSync(join(movedAside, "skills/files/later/SKILL.md"), "utf8")).toBe("later");
    const before = await withStore(movedAside, (store) => store.servers.list());
    expect(before.map(({ id }) => id)).toContain("later");
    // What the backup does not hold stays.
    expect(readFileSync(join(place.home, "store.key"), "utf8")).toBe("the-key-itself");
    expect(readFileSync(join(place.home, "secrets/TOKEN"), "utf8")).toBe("plain-secret");
  });

  it("[oper-14a] nothing is restored under a running hub", async () => {
    const place = await furnished();
    await place.runHere(["backup", "copy.tar.gz"]);
    const record = { url: "http://127.0.0.1:4700", pid: process.pid, token: "hub-token" };
    writeAll(place.home, { [`hubs/${process.pid}.json`]: JSON.stringify(record) });
    const refused = await place.runHere(["restore", "copy.tar.gz", "--force"]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`process ${process.pid}`);
    expect(refused.stderr).not.toContain("hub-token");
  });

  it("[oper-14a] nor while another process has the database open, such as that of a client", async () => {
    const place = await furnished();
    await place.runHere(["backup", "copy.tar.gz"]);
    const child = spawn(process.execPath, [MAIN, "mcp"], {
      cwd: place.dir,
      env: { PATH: process.env["PATH"], HOME: place.home, TOOLCRIB_HOME: place.home },
      stdio: ["pipe", "pipe", "ignore"],
    });
    const ended = once(child, "exit");
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    await once(child.stdout, "data");
    const refused = await place.runHere(["restore", "copy.tar.gz", "--force", "--json"]);
    child.stdin.end();
    await ended;
    expect(refused.json()).toMatchObject({
      error: { code: "conflict", message: expect.stringContaining(`process ${child.pid}`) },
    });
    expect((await place.runHere(["restore", "copy.tar.gz", "--force"])).code).toBe(0);
  });

  it("[oper-14a] a log that grows and moves into the database meanwhile is whole in the backup", async () => {
    const place = workspace();
    await withStore(place.home, async (store) => {
      const parts = { home: place.home, store, clock: systemClock, redact: (text: string) => text, warn: () => {} };
      const { audit: config } = ConfigSchema.parse({});
      const open = (): HubAudit => openAudit({ ...parts, config }).audit;
      const note = async (audit: HubAudit): Promise<void> => {
        audit.note({ event: "server.added" });
        await audit.flush();
      };
      const [going, ending] = [open(), open()];
      await note(going);
      await note(ending);
      const [, second = ""] = readdirSync(join(place.home, "audit")).filter((name) => name.endsWith(".jsonl"));
      const busy: Store = {
        ...store,
        async backup(file) {
          for (const audit of [going, ending, open()]) await note(audit);
          await ending.close();
          // As whoever takes files in does it.
          rmSync(join(place.home, "audit", second));
          await store.backup(file);
          await note(going);
        },
      };
      await makeBackup({ home: place.home, store: busy, file: join(place.dir, "copy.tar.gz"), withKey: false });
      await going.close();
    });
    const other = workspace();
    cpSync(join(place.dir, "copy.tar.gz"), join(other.dir, "copy.tar.gz"));
    expect((await other.runHere(["restore", "copy.tar.gz"])).code).toBe(0);
    const verified = await other.runHere(["audit", "verify", "--json"]);
    expect(verified.json(), verified.stdout).toMatchObject({ ok: true });
  });

  it("[oper-14a] works while others write, and what it holds is of one moment", async () => {
    const place = await furnished();
    const stop = new AbortController();
    const writer = withStore(place.home, async (store) => {
      for (let n = 0; !stop.signal.aborted; n++) {
        const id = `live-${n}`;
        // As an import does it.
        await withLock(registryLock(place.home), async () => {
          writeAll(place.home, { [`skills/files/${id}/SKILL.md`]: id });
          await store.skills.change([{ id, manifest: { folder: id } }], n > 0 ? [`live-${n - 1}`] : []);
          rmSync(join(place.home, `skills/files/live-${n - 1}`), { recursive: true, force: true });
        });
        await store.audit.append(auditBlock("live", n));
      }
    });
    // Any of them: each is there for a moment only.
    const isUnderWay = (): boolean =>
      readdirSync(join(place.home, "skills/files")).some((name) => /^live-[1-9]/.test(name));
    await eventually(() => isUnderWay());
    const target = mkdtempSync(join(tmpdir(), "toolcrib-backup-"));
    await withStore(place.home, (store) =>
      makeBackup({ home: place.home, store, file: join(target, "copy.tar.gz"), withKey: false }),
    );
    stop.abort();
    await writer;
    const other = workspace();
    cpSync(join(target, "copy.tar.gz"), join(other.dir, "copy.tar.gz"));
    expect((await other.runHere(["restore", "copy.tar.gz"])).code).toBe(0);
    const skills = await withStore(other.home, (store) => store.skills.list());
    const live = skills.filter(({ id }) => id.startsWith("live-"));
    expect(live).toHaveLength(1);
    for (const { id } of live) {
      expect(readFileSync(join(other.home, `skills/files/${id}/SKILL.md`), "utf8")).toBe(id);
    }
    rmSync(target, { recursive: true });
  });
});

describe("a backup that is not whole changes nothing", () => {
  /** Unpacked, changed and packed again. */
  async function forged(place: Workspace, change: (dir: string) => void): Promise<void> {
    await place.runHere(["backup", "good.tar.gz"]);
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-forged-"));
    await extract({ file: join(place.dir, "good.tar.gz"), cwd: dir });
    change(dir);
    await create(
      { file: join(place.dir, "forged.tar.gz"), gzip: true, cwd: dir, preservePaths: true },
      readdirSync(dir),
    );
    rmSync(dir, { recursive: true });
  }

  function relist(dir: string, change: (manifest: { version: number; files: { path: string }[] }) => void): void {
    const file = join(dir, "manifest.json");
    const manifest = JSON.parse(readFileSync(file, "utf8")) as { version: number; files: { path: string }[] };
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
  }

  const cases: [string, (dir: string) => void, RegExp][] = [
    ["a changed file", (dir) => writeFileSync(join(dir, "locks/abc.lock"), "{ }\n"), /locks\/abc.lock has changed/],
    ["a missing file", (dir) => rmSync(join(dir, "installed.json")), /installed.json is missing/],
    ["a file too many", (dir) => writeFileSync(join(dir, "toolcrib.json"), "{}"), /toolcrib.json does not belong/],
    ["a newer version", (dir) => relist(dir, (manifest) => (manifest.version = 9)), /version 9/],
    ["no manifest", (dir) => rmSync(join(dir, "manifest.json")), /not a Toolcrib backup/],
  ];

  it.each(cases)("[oper-14a] %s", async (_name, change, message) => {
    const place = await furnished();
    await forged(place, change);
    const before = await withStore(place.home, contentsOf);
    const result = await place.runHere(["restore", "forged.tar.gz", "--json"]);
    expect(result.code).not.toBe(0);
    expect(result.json<{ error: { message: string } }>().error.message).toMatch(message);
    expect(read(place.home)).toEqual(STATE);
    expect(await withStore(place.home, contentsOf)).toEqual(before);
    expect(readdirSync(place.home).filter((name) => /restor/.test(name))).toEqual([]);
  });

  it("[oper-14a] links and paths that lead out of the home lead nowhere", async () => {
    const place = await furnished();
    const outside = join(place.dir, "outside");
    mkdirSync(outside);
    await forged(place, (dir) => symlinkSync(outside, join(dir, "replaced")));
    expect((await place.runHere(["restore", "forged.tar.gz", "--force"])).code).toBe(0);
    expect(existsSync(join(place.home, "replaced"))).toBe(false);

    const dir = join(place.dir, "deep", "deeper");
    mkdirSync(dir, { recursive: true });
    await extract({ file: join(place.dir, "good.tar.gz"), cwd: dir });
    writeFileSync(join(dir, "..", "evil"), "evil");
    relist(dir, ({ files }) => files.push({ path: "../evil" }));
    const names = [...readdirSync(dir), "../evil"];
    await create({ file: join(place.dir, "evil.tar.gz"), gzip: true, cwd: dir, preservePaths: true }, names);
    const refused = await place.runHere(["restore", "evil.tar.gz", "--force", "--json"]);
    expect(refused.json()).toMatchObject({ error: { code: "invalid_arguments" } });
    expect(existsSync(join(place.home, "evil"))).toBe(false);
    expect(read(place.home)).toEqual(STATE);
  });

  it("[oper-14a] garbage, half a file, a folder and nothing at all", async () => {
    const place = await furnished();
    await place.runHere(["backup", "good.tar.gz"]);
    const good = readFileSync(join(place.dir, "good.tar.gz"));
    writeFileSync(join(place.dir, "half.tar.gz"), good.subarray(0, good.length / 2));
    writeFileSync(join(place.dir, "garbage.tar.gz"), "no archive".repeat(1000));
    writeFileSync(join(place.dir, "empty.tar.gz"), "");
    for (const name of ["half.tar.gz", "garbage.tar.gz", "empty.tar.gz", "home", "absent.tar.gz"]) {
      const result = await place.runHere(["restore", name, "--force", "--json"]);
      expect(result.code, name).not.toBe(0);
      expect(result.json<{ error: { code: string } }>().error.code, result.stdout).toMatch(
        /invalid_arguments|not_found/,
      );
    }
    expect(read(place.home)).toEqual(STATE);
  });
});
