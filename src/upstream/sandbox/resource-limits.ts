/** How the limits of a sandbox are kept on this machine. What cannot be kept is refused: half a limit is none. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ToolcribError } from "../../model/errors.ts";
import { notSent } from "../wire.ts";
import { findCommand } from "./named-mounts.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";

interface LimitPlan {
  /** Words before the launcher. */
  readonly before: readonly string[];
  /** Words before the program, inside the sandbox. */
  readonly inside: readonly string[];
  /** Variables of the hub that `before` needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly group?: ControlGroup;
}

/** The means of this machine to limit programs. */
export interface LimitMeans {
  makeGroup(limits: GroupLimits): ControlGroup | string;
  /** Absolute path of systemd-run, where there is a systemd to ask. */
  readonly systemdRun: string | undefined;
  /** The controllers that systemd may use for us: a user's is often given no `cpu`, and then says nothing. */
  readonly systemdControllers: readonly string[];
  readonly prlimit: string | undefined;
  readonly isRoot: boolean;
  readonly env: NodeJS.ProcessEnv;
}

/** The launcher's own processes are in the same group: the one that watches, and the first one inside. */
const LAUNCHER_PROCESSES = 2;

/** Enters the groups and becomes the launcher: no moment in which the program runs without its limits. */
const ENTER_SCRIPT =
  'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"';

export function limitMeans(env: NodeJS.ProcessEnv): LimitMeans {
  const isRoot = process.getuid?.() === 0;
  const hasSystemd =
    existsSync("/run/systemd/system") && (isRoot || existsSync(join(env["XDG_RUNTIME_DIR"] ?? "", "systemd/private")));
  const uid = process.getuid?.() ?? 0;
  const systemdGroup = isRoot ? "" : `user.slice/user-${uid}.slice/user@${uid}.service`;
  return {
    makeGroup: (limits) => makeControlGroup(limits),
    systemdRun: hasSystemd ? findCommand("systemd-run", env["PATH"]) : undefined,
    systemdControllers: hasSystemd ? wordsIn(join("/sys/fs/cgroup", systemdGroup, "cgroup.controllers")) : [],
    prlimit: findCommand("prlimit", "/usr/bin:/bin"),
    isRoot,
    env,
  };
}

export function planLimits(settings: SandboxSettings, means: LimitMeans): LimitPlan {
  const { memory, cpus, pids } = settings;
  const limits = { memory, cpus, pids: pids === undefined ? undefined : pids + LAUNCHER_PROCESSES };
  if (neededControllers(limits).length === 0) return { before: [], inside: [], env: {} };
  const group = means.makeGroup(limits);
  if (typeof group !== "string") {
    const before = ["/bin/sh", "-c", ENTER_SCRIPT, "toolcrib-cage", String(group.doors.length), ...group.doors];
    return { before, inside: [], env: {}, group };
  }
  const isDelegated = neededControllers(limits).every((each) => means.systemdControllers.includes(each));
  if (means.systemdRun !== undefined && isDelegated) {
    return { before: scope(means.systemdRun, limits, means.isRoot), inside: [], env: busOf(means.env) };
  }
  // Counted per user namespace, and each sandbox is one; but never counted against root.
  if (memory === undefined && cpus === undefined && !means.isRoot && means.prlimit !== undefined) {
    return { before: [], inside: [means.prlimit, `--nproc=${(pids ?? 0) + 1}`, "--"], env: {} };
  }
  throw cannotLimit(settings, group, means.isRoot);
}

/** A scope is made around systemd-run itself, which then becomes the launcher and keeps its descriptors. */
function scope(program: string, { memory, cpus, pids }: GroupLimits, isRoot: boolean): string[] {
  const properties = [
    ...(memory === undefined ? [] : [`MemoryMax=${memory}`, "MemorySwapMax=0"]),
    ...(cpus === undefined ? [] : [`CPUQuota=${Math.max(1, Math.round(cpus * 100))}%`]),
    ...(pids === undefined ? [] : [`TasksMax=${pids}`]),
  ];
  const where = isRoot ? [] : ["--user"];
  return [program, ...where, "--scope", "--quiet", "--collect", ...properties.flatMap((each) => ["-p", each]), "--"];
}

function busOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const names = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

function cannotLimit(settings: SandboxSettings, reason: string, isRoot: boolean): ToolcribError {
  const keys = (["memory", "cpus", "pids"] as const).filter((key) => settings[key] !== undefined);
  const named = keys.map((key) => `\`${key}\``).join(", ");
  const pids = isRoot ? "" : " `pids` alone would work.";
  const hint = `They need a control group that the hub may use, or systemd.${pids} The sandbox "container" can keep them too.`;
  return notSent("invalid_config", `This machine cannot keep ${named} of the sandbox: ${reason}.`, hint, {
    permanent: true,
  });
}

interface GroupLimits {
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
interface GroupPlace {
  /** Text of /proc/self/cgroup. */
  readonly groups: string;
  /** Text of /proc/self/mountinfo. */
  readonly mounts: string;
}

type Controller = "memory" | "cpu" | "pids";

const PERIOD_US = 100_000;
const GROUP_PREFIX = "toolcrib-";
const MAX_REMOVE_TRIES = 100;

/**
 * The group, or why there can be none. Control groups are the only thing on Linux that bounds memory and processors of a
 * program together with all it starts. They are made below the hub's own group, whose limits then apply to its servers too.
 */
export function makeControlGroup(
  limits: GroupLimits,
  place: GroupPlace = { groups: readText("/proc/self/cgroup"), mounts: readText("/proc/self/mountinfo") },
): ControlGroup | string {
  const made = new Set<string>();
  const name = `${GROUP_PREFIX}${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    for (const controller of neededControllers(limits)) {
      const home = hubGroup(controller, place);
      if (typeof home === "string") throw new Error(home);
      if (home.version === 2) enable(controller, home.dir);
      const dir = join(home.dir, name);
      if (!made.has(dir)) {
        removeLeftGroups(home.dir);
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

function neededControllers({ memory, cpus, pids }: GroupLimits): Controller[] {
  const asked = { memory, cpu: cpus, pids };
  return (["memory", "cpu", "pids"] as const).filter((controller) => asked[controller] !== undefined);
}

interface HubGroup {
  readonly version: 1 | 2;
  readonly dir: string;
}

/** The hub's own group in the hierarchy that has this controller. */
function hubGroup(controller: Controller, { groups, mounts }: GroupPlace): HubGroup | string {
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
      dirs
        .flatMap((dir) => [join(dir, "memory.events"), join(dir, "memory.oom_control")])
        .some((file) => /^oom_kill [1-9]/m.test(readText(file))),
    async remove() {
      let left = [...dirs];
      // The kernel takes a moment to empty a group whose processes were just killed.
      for (let tries = 0; tries < MAX_REMOVE_TRIES && left.length > 0; tries++) {
        left = left.filter((dir) => !tryRemove(dir));
        if (left.length > 0) await delay(20);
      }
    },
  };
}

/** Groups that a killed hub left. One in use cannot be removed, so nothing is harmed by a wrong guess. */
function removeLeftGroups(dir: string): void {
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
