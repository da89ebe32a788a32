import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { type ChildRecord, commandWords, findSurvivors } from "../../../src/upstream/stdio/pid-records.ts";
import {
  parsePs,
  type ProcessFacts,
  type ProcessTable,
  systemProcessTable,
} from "../../../src/upstream/stdio/process-table.ts";

describe("the process table", () => {
  it("reads Linux processes, odd names included", async () => {
    const table = systemProcessTable("linux");
    const child = spawn("/bin/sh", ["-c", "sleep 30 & wait", "a) b (c"], { detached: true, stdio: "ignore" });
    await once(child, "spawn");
    const pid = child.pid ?? 0;
    await expect.poll(() => table?.descendants(pid)).toHaveLength(1);
    const facts = table?.find(pid);
    expect(facts).toMatchObject({
      pid,
      pgid: pid,
      startTime: expect.stringMatching(/^\d+$/),
      command: "/bin/sh -c sleep 30 & wait a) b (c",
    });
    await expect.poll(() => table?.group(pid).map(({ command }) => command)).toContain("sleep 30");
    process.kill(-pid, "SIGKILL");
    await once(child, "exit");
    await expect.poll(() => [table?.find(pid), table?.group(pid)]).toEqual([null, []]);
  });

  it("reads what ps prints on macOS", () => {
    const output = [
      "  512   512 Ss   Mon Nov 16 09:01:22 2026     node /opt/server.js --port 1",
      "  600   512 Z    Mon Nov  2 09:01:23 2026     (node)",
      "not a process",
    ].join("\n");
    expect(parsePs(output)).toEqual([
      { pid: 512, pgid: 512, startTime: "Mon Nov 16 09:01:22 2026", command: "node /opt/server.js --port 1" },
    ]);
  });

  it("knows no other system", () => {
    expect(systemProcessTable("win32")).toBeNull();
  });
});

function tableOf(...processes: ProcessFacts[]): ProcessTable {
  return {
    place: "here",
    find: (pid) => processes.find((facts) => facts.pid === pid) ?? null,
    group: (pgid) => processes.filter((facts) => facts.pgid === pgid),
    children: () => [],
    descendants: () => [],
    marked: () => new Map(),
  };
}

const record: ChildRecord = {
  pid: 100,
  pgid: 100,
  startTime: "5000",
  serverId: "files",
  program: "npx",
  words: commandWords("npx -y @modelcontextprotocol/server-filesystem /data"),
  members: [{ pid: 101, startTime: "5010" }],
};

describe("survivorsOf", () => {
  it("knows a launcher again that renamed itself", () => {
    const leader = {
      pid: 100,
      pgid: 100,
      startTime: "5000",
      command: "npm exec @modelcontextprotocol/server-filesystem",
    };
    expect(findSurvivors(record, tableOf(leader))).toEqual({ pgid: 100, pids: [100] });
  });

  it("takes the whole group while a member that was seen before lives", () => {
    const known = { pid: 101, pgid: 100, startTime: "5010", command: "anything" };
    const unknown = { pid: 102, pgid: 100, startTime: "6000", command: "chrome" };
    expect(findSurvivors(record, tableOf(known, unknown))).toEqual({ pgid: 100, pids: [101, 102] });
  });

  it("takes single unknown members only if they are later and look like the server", () => {
    const ours = {
      pid: 103,
      pgid: 100,
      startTime: "6000",
      command: "node /x/node_modules/.bin/server-filesystem /data",
    };
    const other = { pid: 104, pgid: 100, startTime: "6000", command: "node /y/thing.js" };
    const older = { pid: 105, pgid: 100, startTime: "4000", command: "node server-filesystem" };
    expect(findSurvivors(record, tableOf(ours, other, older))).toEqual({ pgid: null, pids: [103] });
    expect(findSurvivors(record, tableOf(other, older))).toBeNull();
  });

  it.each([
    { startTime: "5001", pgid: 100, command: "npx -y @modelcontextprotocol/server-filesystem /data" },
    { startTime: "5000", pgid: 99, command: "npx -y @modelcontextprotocol/server-filesystem /data" },
    { startTime: "5000", pgid: 100, command: "sshd" },
  ])("takes nothing when the leader's pid belongs to $command started at $startTime in $pgid", (facts) => {
    const known = { pid: 101, pgid: 100, startTime: "5010", command: "node" };
    expect(findSurvivors(record, tableOf({ pid: 100, ...facts }, known))).toBeNull();
  });
});
