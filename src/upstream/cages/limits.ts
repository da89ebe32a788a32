/** How the limits of a cage are kept on this machine. What cannot be kept is refused: half a limit is none. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { CageSettings } from "./cage.ts";
import { type ControlGroup, type GroupLimits, makeControlGroup, neededControllers } from "./control-group.ts";
import { findProgram } from "./find-program.ts";

export interface LimitPlan {
  /** Words before the launcher. */
  readonly before: readonly string[];
  /** Words before the program, inside the cage. */
  readonly inside: readonly string[];
  /** What `before` needs of the hub's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly group?: ControlGroup;
}

/** What this machine has to bound programs with. */
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

/** The launcher's own processes stand in the same group: the one that watches, and the first one inside. */
const LAUNCHER_PROCESSES = 2;

/** Enters the groups and becomes the launcher: no moment in which the program runs without its limits. */
const ENTER = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"';

export function limitMeans(env: NodeJS.ProcessEnv): LimitMeans {
  const isRoot = process.getuid?.() === 0;
  const hasSystemd =
    existsSync("/run/systemd/system") && (isRoot || existsSync(join(env["XDG_RUNTIME_DIR"] ?? "", "systemd/private")));
  return {
    makeGroup: (limits) => makeControlGroup(limits),
    systemdRun: hasSystemd ? findProgram("systemd-run", env["PATH"]) : undefined,
    systemdControllers: hasSystemd ? controllersOf(isRoot ? "" : userService()) : [],
    prlimit: findProgram("prlimit", "/usr/bin:/bin"),
    isRoot,
    env,
  };
}

function userService(): string {
  const uid = process.getuid?.() ?? 0;
  return `user.slice/user-${uid}.slice/user@${uid}.service`;
}

function controllersOf(group: string): string[] {
  try {
    return readFileSync(join("/sys/fs/cgroup", group, "cgroup.controllers"), "utf8")
      .trim()
      .split(/\s+/);
  } catch {
    return [];
  }
}

export function planLimits(settings: CageSettings, means: LimitMeans): LimitPlan {
  const limits = groupLimits(settings);
  if (Object.keys(limits).length === 0) return { before: [], inside: [], env: {} };
  const group = means.makeGroup(limits);
  if (typeof group !== "string") {
    const before = ["/bin/sh", "-c", ENTER, "toolcrib-cage", String(group.doors.length), ...group.doors];
    return { before, inside: [], env: {}, group };
  }
  const isDelegated = neededControllers(limits).every((each) => means.systemdControllers.includes(each));
  if (means.systemdRun !== undefined && isDelegated) {
    return { before: scope(means.systemdRun, limits, means.isRoot), inside: [], env: busOf(means.env) };
  }
  // Counted per user namespace, and each cage is one; but never counted against root.
  if (settings.memory === undefined && settings.cpus === undefined && !means.isRoot && means.prlimit !== undefined) {
    return { before: [], inside: [means.prlimit, `--nproc=${(settings.pids ?? 0) + 1}`, "--"], env: {} };
  }
  throw unbounded(settings, group, means.isRoot);
}

function groupLimits({ memory, cpus, pids }: CageSettings): GroupLimits {
  return {
    memory,
    cpus,
    ...(pids === undefined ? {} : { pids: pids + LAUNCHER_PROCESSES }),
  };
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

function unbounded(settings: CageSettings, reason: string, isRoot: boolean): ToolcribError {
  const keys = (["memory", "cpus", "pids"] as const).filter((key) => settings[key] !== undefined);
  const named = keys.map((key) => `\`${key}\``).join(", ");
  const pids = isRoot ? "" : " `pids` alone would work.";
  return new ToolcribError("invalid_config", `This machine cannot keep ${named} of the sandbox: ${reason}.`, {
    hint: `They need a control group that the hub may use, or systemd.${pids} The sandbox "container" can keep them too.`,
    details: { sent: false, permanent: true },
  });
}
