/**
 * Control groups: the only thing on Linux that bounds memory and processors of a program together with all it starts.
 * They are made below the hub's own group, so that what holds for the hub holds for its servers too.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface GroupLimits {
  /** Bytes. */
  readonly memory?: number;
  readonly cpus?: number;
  readonly pids?: number;
}

export interface ControlGroup {
  /** A process that writes 0 to each of these files is in the group. */
  readonly doors: readonly string[];
  /** Whether the kernel had to kill in it for want of memory. */
  wasOutOfMemory(): boolean;
  /** Once it is empty. Never rejects. */
  remove(): Promise<void>;
}

/** Where this process is in each hierarchy, as the kernel says it. */
export interface GroupPlace {
  /** Text of /proc/self/cgroup. */
  readonly groups: string;
  /** Text of /proc/self/mountinfo. */
  readonly mounts: string;
}

type Controller = "memory" | "cpu" | "pids";

const PERIOD_US = 100_000;
const PREFIX = "toolcrib-";
const REMOVE_TRIES = 100;

export function groupPlace(): GroupPlace {
  const read = (name: string): string => {
    try {
      return readFileSync(`/proc/self/${name}`, "utf8");
    } catch {
      return "";
    }
  };
  return { groups: read("cgroup"), mounts: read("mountinfo") };
}

/** The group, or why there can be none. */
export function makeControlGroup(limits: GroupLimits, place: GroupPlace = groupPlace()): ControlGroup | string {
  const made = new Set<string>();
  const name = `${PREFIX}${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    for (const controller of neededControllers(limits)) {
      const home = homeOf(controller, place);
      if (typeof home === "string") throw new Error(home);
      if (home.version === 2) enable(controller, home.dir);
      const dir = join(home.dir, name);
      if (!made.has(dir)) {
        sweep(home.dir);
        mkdirSync(dir);
        made.add(dir);
      }
      for (const [file, text] of settingsFor(controller, limits, home.version)) writeSetting(join(dir, file), text);
    }
    return groupOf([...made]);
  } catch (error) {
    for (const dir of made) tryRemove(dir);
    return error instanceof Error ? error.message : String(error);
  }
}

export function neededControllers({ memory, cpus, pids }: GroupLimits): Controller[] {
  const needed: Controller[] = [];
  if (memory !== undefined) needed.push("memory");
  if (cpus !== undefined) needed.push("cpu");
  if (pids !== undefined) needed.push("pids");
  return needed;
}

interface GroupHome {
  readonly version: 1 | 2;
  readonly dir: string;
}

/** The hub's own group in the hierarchy that has this controller. */
function homeOf(controller: Controller, { groups, mounts }: GroupPlace): GroupHome | string {
  for (const line of mounts.split("\n")) {
    const [front = "", back = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = front.split(" ");
    const [type, , options = ""] = back.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") continue;
    if (type === "cgroup" && !options.split(",").includes(controller)) continue;
    const own = ownPath(type === "cgroup" ? controller : "", groups);
    if (own === undefined) continue;
    const dir = join(mountPoint, own.startsWith(root) ? own.slice(root === "/" ? 0 : root.length) : "/");
    if (type === "cgroup") return { version: 1, dir };
    if (wordsIn(join(dir, "cgroup.controllers")).includes(controller)) return { version: 2, dir };
  }
  return `no control group of this process has the controller ${controller}`;
}

/** Lines such as `4:memory:/path`; `0::/path` is version 2. */
function ownPath(controller: string, groups: string): string | undefined {
  for (const line of groups.split("\n")) {
    const [, controllers = "", ...path] = line.split(":");
    if (path.length > 0 && controllers.split(",").includes(controller)) return path.join(":");
  }
  return undefined;
}

function enable(controller: Controller, dir: string): void {
  const file = join(dir, "cgroup.subtree_control");
  if (!wordsIn(file).includes(controller)) writeSetting(file, `+${controller}`);
}

function settingsFor(controller: Controller, limits: GroupLimits, version: 1 | 2): [file: string, text: string][] {
  const { memory = 0, cpus = 0, pids = 0 } = limits;
  const quota = String(Math.max(1000, Math.round(cpus * PERIOD_US)));
  if (controller === "pids") return [["pids.max", String(pids)]];
  if (controller === "cpu") {
    if (version === 2) return [["cpu.max", `${quota} ${PERIOD_US}`]];
    return [
      ["cpu.cfs_period_us", String(PERIOD_US)],
      ["cpu.cfs_quota_us", quota],
    ];
  }
  if (version === 1) {
    return [
      ["memory.limit_in_bytes", String(memory)],
      ["memory.memsw.limit_in_bytes", String(memory)],
    ];
  }
  return [
    ["memory.max", String(memory)],
    ["memory.swap.max", "0"],
    ["memory.oom.group", "1"],
  ];
}

/** These are missing where the kernel counts no swap or is older; the limit itself holds without them. */
const OPTIONAL = /memory\.(?:memsw\.limit_in_bytes|swap\.max|oom\.group)$/;

function writeSetting(file: string, text: string): void {
  if (OPTIONAL.test(file) && !existsSync(file)) return;
  writeFileSync(file, text);
}

function groupOf(dirs: readonly string[]): ControlGroup {
  return {
    doors: dirs.map((dir) => join(dir, "cgroup.procs")),
    wasOutOfMemory: () =>
      dirs.some((dir) => ["memory.events", "memory.oom_control"].some((file) => hasKilled(join(dir, file)))),
    async remove() {
      let left = [...dirs];
      // The kernel takes a moment to empty a group whose processes were just killed.
      for (let tries = 0; tries < REMOVE_TRIES && left.length > 0; tries++) {
        left = left.filter((dir) => !tryRemove(dir));
        if (left.length > 0) await delay(20);
      }
    },
  };
}

function hasKilled(file: string): boolean {
  return /^oom_kill [1-9]/m.test(readText(file));
}

/** Groups that a killed hub left. One in use cannot be removed, so nothing is harmed by a wrong guess. */
function sweep(dir: string): void {
  for (const name of readdirSync(dir)) {
    const [, pid] = /^toolcrib-(\d+)-[0-9a-f]{8}$/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) tryRemove(join(dir, name));
  }
}

function tryRemove(dir: string): boolean {
  try {
    rmdirSync(dir);
    return true;
  } catch {
    return !existsSync(dir);
  }
}

function wordsIn(file: string): string[] {
  return readText(file).trim().split(/\s+/);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
