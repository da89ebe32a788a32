import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import { commandWords, PidRecords } from "../../../src/upstream/stdio/pid-records.ts";
import { systemProcessTable } from "../../../src/upstream/stdio/process-table.ts";
import { isAlive } from "../../support/processes.ts";
import { type SmallHub, startSmallHub } from "./small-hub-process.ts";

const table = systemProcessTable("linux");
const toKill: number[] = [];
const runDir = (): string => mkdtempSync(join(tmpdir(), "toolcrib-run-"));

afterEach(() => {
  for (const pid of toKill.splice(0)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
});

async function killedHub(dir: string, mode: string): Promise<SmallHub> {
  const hub = await startSmallHub(dir, "wait", mode);
  toKill.push(hub.pid);
  if (hub.grandchild) toKill.push(hub.grandchild);
  // The record must hold what the server looked like when it was up, which is written after its first message.
  hub.process.kill("SIGKILL");
  await hub.ended;
  return hub;
}

/** A process of our own that no hub started, in a group of its own. */
async function stranger(): Promise<{ pid: number; startTime: string }> {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)", "stranger.js"], {
    detached: true,
    stdio: "ignore",
  });
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  toKill.push(pid);
  return { pid, startTime: table?.find(pid)?.startTime ?? "" };
}

function writeRecord(dir: string, child: JsonObject, more: JsonObject = {}): string {
  const path = join(dir, "4000001-00000000.json");
  const record = {
    version: 1,
    place: table?.place,
    owner: { pid: 4_000_001, startTime: "1" },
    children: [
      {
        serverId: "s",
        program: "node",
        words: commandWords("node stranger.js"),
        members: [],
        pgid: child["pid"],
        ...child,
      },
    ],
    ...more,
  };
  writeFileSync(path, JSON.stringify(record));
  return path;
}

describe("reapOrphans", () => {
  it("[spine-10c] ends what a killed hub left, grandchildren included, and removes its record", async () => {
    const dir = runDir();
    const hub = await killedHub(dir, "ignore-sigterm");
    expect(isAlive(hub.pid)).toBe(true);
    expect(readdirSync(dir)).toHaveLength(1);
    const reaped = await new PidRecords(dir).reapOrphans();
    expect(reaped).toEqual([{ serverId: "small", pid: hub.pid, program: expect.stringContaining("node"), gone: true }]);
    expect(isAlive(hub.pid)).toBe(false);
    expect(readdirSync(dir)).toEqual([]);
  });

  it("[spine-10c] ends a grandchild whose parent ended with the hub", async () => {
    const dir = runDir();
    const hub = await killedHub(dir, "grandchild-stubborn");
    await expect.poll(() => isAlive(hub.pid)).toBe(false);
    expect(isAlive(hub.grandchild)).toBe(true);
    await new PidRecords(dir).reapOrphans();
    expect(isAlive(hub.grandchild)).toBe(false);
  });

  it("[spine-10c] leaves the servers of a hub that lives alone", async () => {
    const dir = runDir();
    const hub = await startSmallHub(dir, "signal");
    await hub.line();
    const before = readdirSync(dir);
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect([isAlive(hub.pid), isAlive(hub.grandchild)]).toEqual([true, true]);
    expect(readdirSync(dir)).toEqual(before);
    hub.process.kill("SIGTERM");
    await hub.ended;
  });

  it("[spine-10c] never ends a stranger who has the pid now", async () => {
    const { pid, startTime } = await stranger();
    const dir = runDir();
    const path = writeRecord(dir, { pid, startTime: String(Number(startTime) - 100) });
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect(isAlive(pid)).toBe(true);
    expect(existsSync(path)).toBe(false);
  });

  it("[spine-10c] never ends a process with another command", async () => {
    const { pid, startTime } = await stranger();
    const dir = runDir();
    writeRecord(dir, { pid, startTime, words: commandWords("python -m other_server") });
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect(isAlive(pid)).toBe(true);
  });

  it("[spine-10c] ends a process that matches in pid, start time and command, even if all else is forgotten", async () => {
    const { pid, startTime } = await stranger();
    const dir = runDir();
    writeRecord(dir, { pid, startTime });
    expect(await new PidRecords(dir).reapOrphans()).toMatchObject([{ pid, gone: true }]);
    expect(isAlive(pid)).toBe(false);
  });

  it("[spine-10c] leaves records of another machine, container or boot alone until they are old", async () => {
    const { pid, startTime } = await stranger();
    const dir = runDir();
    const path = writeRecord(dir, { pid, startTime }, { place: "another boot" });
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect([existsSync(path), isAlive(pid)]).toEqual([true, true]);
    utimesSync(path, 1, 1);
    await new PidRecords(dir).reapOrphans();
    expect([existsSync(path), isAlive(pid)]).toEqual([false, true]);
  });

  it.each(["", "{", "null", "[]", '{"version":1}', '{"version":2}'])("removes a record that holds %j", async (text) => {
    const dir = runDir();
    const path = join(dir, "12-ab.json");
    writeFileSync(path, text);
    writeFileSync(join(dir, "notes.txt"), "not ours");
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect(readdirSync(dir)).toEqual(["notes.txt"]);
  });

  it.each([-1, 0, 1, 1.5, "7"])("does not take %j for a pid", async (pid) => {
    const dir = runDir();
    writeRecord(dir, { pid, startTime: "1" });
    expect(await new PidRecords(dir).reapOrphans()).toEqual([]);
    expect(readdirSync(dir)).toEqual([]);
  });

  it("finds nothing where there is no folder", async () => {
    expect(await new PidRecords("/no/such/folder").reapOrphans()).toEqual([]);
  });
});

describe("PidRecords", () => {
  it("keeps one private file per hub, which goes with its last child", async () => {
    const { pid } = await stranger();
    const dir = join(runDir(), "run");
    const [one, two] = [new PidRecords(dir), new PidRecords(dir)];
    expect(one.add({ pid, serverId: "a", command: "node", args: ["--token=hunter2"] })).toBeNull();
    two.add({ pid, serverId: "b", command: "node", args: [] });
    const names = readdirSync(dir);
    expect(names).toHaveLength(2);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    for (const name of names) {
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
      expect(readFileSync(join(dir, name), "utf8")).not.toContain("hunter2");
    }
    one.remove(pid);
    expect(readdirSync(dir)).toHaveLength(1);
    two.close();
    expect(readdirSync(dir)).toEqual([]);
  });

  it("has the first child of a turn in it at once, and all of them after the turn", async () => {
    const children = await Promise.all([stranger(), stranger(), stranger()]);
    const dir = join(runDir(), "run");
    const records = new PidRecords(dir);
    const recorded = (): number[] => {
      const { children: found } = JSON.parse(readFileSync(join(dir, readdirSync(dir)[0] ?? ""), "utf8"));
      return found.map((child: { pid: number }) => child.pid);
    };
    for (const { pid } of children) records.add({ pid, serverId: "a", command: "node", args: [] });
    expect(recorded()).toEqual([children[0]?.pid]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(recorded()).toEqual(children.map(({ pid }) => pid));
    records.remove(children[1]?.pid ?? 0);
    records.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(readdirSync(dir)).toEqual([]);
  });

  it("says why it cannot keep a record, and goes on", async () => {
    const { pid } = await stranger();
    const file = join(runDir(), "file");
    writeFileSync(file, "");
    const records = new PidRecords(join(file, "run"));
    expect(records.add({ pid, serverId: "a", command: "node", args: [] })).toContain("No pid record can be kept");
    records.remove(pid);
    records.close();
  });

  it("does nothing, and says so, where processes cannot be told apart", async () => {
    const dir = runDir();
    const records = new PidRecords(dir, null);
    expect(records.add({ pid: process.pid, serverId: "a", command: "node", args: [] })).toBeNull();
    expect(await records.reapOrphans()).toEqual([]);
    expect([records.unsupported === null, readdirSync(dir)]).toEqual([false, []]);
  });
});
