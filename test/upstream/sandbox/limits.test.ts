/** Limits as they are planned, on control groups that are folders of this test. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type ControlGroup,
  type LimitMeans,
  makeControlGroup,
  planLimits,
} from "../../../src/upstream/sandbox/resource-limits.ts";
import type { SandboxSettings } from "../../../src/upstream/sandbox/sandbox-settings.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-groups-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const ALL = { memory: 100_000, cpus: 1.5, pids: 30 };

function made(group: ControlGroup | string): ControlGroup {
  if (typeof group === "string") throw new Error(group);
  return group;
}

describe("[cage-02d] control groups", () => {
  it("version 2: below the hub's own group, with the controllers turned on", () => {
    const own = join(dir, "hub.service");
    mkdirSync(own);
    writeFileSync(join(own, "cgroup.controllers"), "cpuset cpu io memory pids\n");
    writeFileSync(join(own, "cgroup.subtree_control"), "memory pids cpu\n");
    const place = { groups: "0::/hub.service\n", mounts: `30 23 0:26 / ${dir} rw - cgroup2 cgroup2 rw\n` };
    const group = made(makeControlGroup(ALL, place));
    const [name = ""] = readdirSync(own).filter((each) => each.startsWith("toolcrib-"));
    const folder = join(own, name);
    expect(group.doors).toEqual([join(folder, "cgroup.procs")]);
    const setting = (file: string): string => readFileSync(join(folder, file), "utf8");
    expect([setting("memory.max"), setting("cpu.max"), setting("pids.max")]).toEqual(["100000", "150000 100000", "30"]);
    expect(group.wasOutOfMemory()).toBe(false);
    writeFileSync(join(folder, "memory.events"), "oom 2\noom_kill 1\n");
    expect(group.wasOutOfMemory()).toBe(true);
  });

  it("version 1: one group per controller, in a container's part of the hierarchy", () => {
    for (const folder of ["memory", "cpu", "pids"]) mkdirSync(join(dir, folder));
    const mounts = ["memory", "cpu", "pids"]
      .map((name, index) => `${index} 1 0:${index} /box/1 ${join(dir, name)} rw - cgroup cgroup rw,${name}`)
      .join("\n");
    const groups = "9:pids:/box/1\n3:cpu,cpuacct:/box/1\n4:memory:/box/1\n0::/\n";
    const group = made(makeControlGroup(ALL, { groups, mounts }));
    expect(group.doors.map((door) => door.slice(dir.length).split("/")[1])).toEqual(["memory", "cpu", "pids"]);
    const [memory = "", cpu = ""] = group.doors.map((door) => join(door, ".."));
    expect(readFileSync(join(memory, "memory.limit_in_bytes"), "utf8")).toBe("100000");
    expect(readFileSync(join(cpu, "cpu.cfs_quota_us"), "utf8")).toBe("150000");
  });

  it("says why there can be none, and leaves nothing", () => {
    expect(makeControlGroup(ALL, { groups: "", mounts: "" })).toContain("controller memory");
    mkdirSync(join(dir, "memory"));
    const mounts = `1 1 0:1 / ${join(dir, "memory")} rw - cgroup cgroup rw,memory\n`;
    expect(makeControlGroup(ALL, { groups: "4:memory:/\n", mounts })).toContain("controller cpu");
    // A real group's settings are no files that keep it from being removed.
    for (const name of readdirSync(join(dir, "memory"))) rmSync(join(dir, "memory", name), { recursive: true });
  });

  it("removes what a killed hub left, and nothing of a living one", async () => {
    const [dead, living, other] = ["toolcrib-4194305-0a1b2c3d", `toolcrib-${process.pid}-0a1b2c3d`, "toolcrib-x"];
    for (const name of [dead, living, other]) mkdirSync(join(dir, name));
    writeFileSync(join(dir, "cgroup.controllers"), "pids\n");
    writeFileSync(join(dir, "cgroup.subtree_control"), "pids\n");
    const place = { groups: "0::/\n", mounts: `30 23 0:26 / ${dir} rw - cgroup2 cgroup2 rw\n` };
    const group = made(makeControlGroup({ pids: 3 }, place));
    expect([dead, living, other].map((name) => existsSync(join(dir, name)))).toEqual([false, true, true]);
    rmSync(join(group.doors[0] ?? "", "..", "pids.max"));
    await group.remove();
    expect(readdirSync(dir).filter((name) => name.startsWith("toolcrib-"))).toEqual([living, other].toSorted());
  });
});

describe("[cage-02d] the plan", () => {
  const settings = (limits: Partial<SandboxSettings>): SandboxSettings => {
    return { kind: "bubblewrap", read: [], write: [], network: "none", ...limits };
  };
  const means = (given: Partial<LimitMeans> = {}): LimitMeans => ({
    makeGroup: () => "the group may not be changed",
    systemdRun: undefined,
    systemdControllers: [],
    prlimit: "/usr/bin/prlimit",
    isRoot: false,
    env: { XDG_RUNTIME_DIR: "/run/user/7", SECRET: "x" },
    ...given,
  });

  it("is nothing where nothing is bounded", () => {
    const makeGroup = (): string => {
      throw new Error("nobody asked for one");
    };
    expect(planLimits(settings({ timeout: 5 }), means({ makeGroup }))).toEqual({ before: [], inside: [], env: {} });
  });

  it("enters a group before anything else, with room for the launcher", () => {
    let asked: unknown;
    const group: ControlGroup = { doors: ["/g/cgroup.procs"], wasOutOfMemory: () => false, remove: async () => {} };
    const plan = planLimits(
      settings({ pids: 10, memory: 5 }),
      means({ makeGroup: (limits) => ((asked = limits), group) }),
    );
    expect(asked).toEqual({ memory: 5, pids: 12 });
    expect(plan.before.slice(0, 2)).toEqual(["/bin/sh", "-c"]);
    expect(plan.before.slice(-2)).toEqual(["1", "/g/cgroup.procs"]);
  });

  it("asks systemd where it may, as user or as root", () => {
    const systemd = { systemdRun: "/usr/bin/systemd-run", systemdControllers: ["memory", "pids", "cpu"] };
    const plan = planLimits(settings(ALL), means(systemd));
    expect(plan.before.join(" ")).toBe(
      "/usr/bin/systemd-run --user --scope --quiet --collect -p MemoryMax=100000 -p MemorySwapMax=0 -p CPUQuota=150% -p TasksMax=32 --",
    );
    expect(plan.env).toEqual({ XDG_RUNTIME_DIR: "/run/user/7" });
    expect(planLimits(settings(ALL), means({ ...systemd, isRoot: true })).before).not.toContain("--user");
  });

  it("refuses what would hold only in part, with the reason", () => {
    const refused = (limits: Partial<SandboxSettings>, given: Partial<LimitMeans> = {}): unknown => {
      try {
        return planLimits(settings(limits), means(given));
      } catch (error) {
        return error;
      }
    };
    const expected = { code: "invalid_config", message: expect.stringContaining("the group may not be changed") };
    expect(refused({ memory: 5 })).toMatchObject(expected);
    expect(refused({ cpus: 1, pids: 5 })).toMatchObject(expected);
    // The kernel does not count root's processes.
    expect(refused({ pids: 5 }, { isRoot: true })).toMatchObject(expected);
    expect(refused({ pids: 5 }, { prlimit: undefined })).toMatchObject(expected);
    // A user's systemd without the processor controller would say nothing and bound nothing.
    const some = { systemdRun: "/usr/bin/systemd-run", systemdControllers: ["memory", "pids"] };
    expect(refused({ cpus: 1 }, some)).toMatchObject(expected);
  });
});
