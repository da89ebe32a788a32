/** The bubblewrap cage: namespaces of its own, a read-only system, and only the paths that were named. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startFailure } from "../stdio/start-failures.ts";
import { explainEnd, explainUser } from "./bubblewrap-failures.ts";
import type { Cage, CageDeps, CagedLaunch, CagedProgram, CageSettings } from "./cage.ts";
import { cageEnvironment, handedEnvironment, LINE_BREAK } from "./cage-environment.ts";
import { becomeUser, type CageUser, cageUser, handOver, openSkills } from "./cage-user.ts";
import { findBubblewrap } from "./find-bubblewrap.ts";
import { isWithin, realPath } from "./find-program.ts";
import { type LimitMeans, limitMeans, planLimits } from "./limits.ts";
import { inheritedDescriptors } from "./inherited-descriptors.ts";
import { checkedMounts, type NamedPath, namedPaths } from "./named-mounts.ts";
import { refuseNul } from "./no-nul.ts";
import { programMounts } from "./program-mounts.ts";
import { systemCallFilter } from "./system-call-filter.ts";
import { CAGE_HOME, type CageOwner, madeFiles, namespaceOptions, systemMounts, wayTo } from "./system-mounts.ts";

/** /tmp, the home and shared memory are kept in memory; each may grow to this, or to `memory`. */
const SCRATCH_BYTES = 1024 ** 3;
/** 0 to 2 are the program's own. */
const OPTIONS_FD = 3;
/** Of a root hub's cages. One digit, because shells know no others. */
const ENVIRONMENT_FD = 4;
/** How long a program may take to end after SIGTERM; the caller's own patience may be shorter. */
const STOP_MS = 3000;

export interface BubblewrapHost {
  readonly platform: NodeJS.Platform;
  readonly means: (env: NodeJS.ProcessEnv) => LimitMeans;
}

const THIS_HOST: BubblewrapHost = { platform: process.platform, means: limitMeans };

export function bubblewrapCage(settings: CageSettings, deps: CageDeps, host: BubblewrapHost = THIS_HOST): Cage {
  return {
    prepare: (program) => prepare(program, settings, deps, host),
  };
}

async function prepare(
  program: CagedProgram,
  settings: CageSettings,
  deps: CageDeps,
  { platform, means }: BubblewrapHost,
): Promise<CagedLaunch> {
  refuseNul(program);
  const { program: bubblewrap, sizes } = await findBubblewrap(deps.env, platform);
  const { command, args, env, cwd } = program;
  const named = namedPaths(settings, program);
  const found = programMounts(command, { path: env["PATH"], cwd, writable: settings.write.map(realPath) });
  if (found === undefined) throw startFailure(Object.assign(new Error("not found"), { code: "ENOENT" }), command);

  // What lies in a named path, or in a folder of the program's, is there already, and stays as that was named.
  const implied = found.mounts.filter(
    (path) =>
      !isWithin(path, "/usr") &&
      !named.some((each) => isWithin(path, each.path)) &&
      !found.mounts.some((each) => each !== path && isWithin(path, each)),
  );
  named.push(...implied.map((path) => ({ path, key: "`command`", writable: false })));
  const mounts = checkedMounts(
    named.filter(({ key, path }) => key !== "`cwd`" || !isWithin(path, "/usr")),
    deps.home,
  );
  const limitsOfHost = means(deps.env);
  const user = limitsOfHost.isRoot ? await cageUser(mounts) : undefined;
  if (user !== undefined) {
    openSkills(mounts, deps.home);
    tellHandOver(handOver(mounts, user), user, deps.warn);
  }
  const owner: CageOwner = user?.mountsAs === "root" ? { kind: "root", ...user } : { kind: "namespace" };
  const files = madeFiles(settings.network, owner);
  const seen = mounts.map(({ path }) => path);
  const inside = cageEnvironment(env, deps.env, seen);
  const handed = user === undefined ? undefined : handedEnvironment(inside);
  const first = handed === undefined ? [] : [Buffer.from(handed.lines)];
  const pipes = [...first, ...files.map(({ text }) => Buffer.from(text)), systemCallFilter()];
  const filesFd = OPTIONS_FD + 1 + first.length;
  const options = [
    ...namespaceOptions(settings.network, owner),
    ...systemMounts(
      settings.network,
      sizes ? Math.min(settings.memory ?? SCRATCH_BYTES, SCRATCH_BYTES) : undefined,
      owner,
    ),
    ...files.flatMap(({ path }, at) => ["--perms", "0444", "--ro-bind-data", String(filesFd + at), path]),
    ...mounts.flatMap(({ path, source, writable }) => [
      ...wayTo(path, owner),
      ...[writable ? "--bind" : "--ro-bind", source, path],
    ]),
    ...hiddenHome(deps.home),
    // Last, because what is mounted needs places to be mounted at.
    ...["--remount-ro", "/"],
    ...["--chdir", cwd ?? CAGE_HOME],
    // Not where the user is still to be changed: setpriv would have it as root.
    ...(handed === undefined ? Object.entries(inside).flatMap(([name, value]) => ["--setenv", name, value]) : []),
    ...["--seccomp", String(OPTIONS_FD + pipes.length)],
  ];
  const checked = user === undefined ? [] : named.filter(({ key }) => key !== "`command`");
  const limits = planLimits(settings, limitsOfHost);
  // Through a pipe, because the environment holds secrets and a command line is for all to read.
  const words = [
    ...limits.before,
    ...(user?.mountsAs === "user" ? becomeUser(user) : []),
    bubblewrap,
    "--args",
    String(OPTIONS_FD),
    "--",
    ...(user?.mountsAs === "root" ? becomeUser(user) : []),
    ...limits.inside,
    ...(handed === undefined ? [] : [...checkFirst(checked), ...handed.words]),
    // After its words env takes what holds a "=" for a variable.
    ...(user !== undefined && handed?.words.length !== 0 && found.path.includes("=")
      ? [user.setpriv, "--no-new-privs", "--"]
      : []),
    found.path,
    ...args,
  ];
  const [launcher = bubblewrap, ...launcherArgs] = words;
  return {
    command: launcher,
    args: launcherArgs,
    env: { PATH: "/usr/bin:/bin", ...limits.env },
    cwd: "/",
    fds: [Buffer.from(options.map((option) => `${option}\0`).join("")), ...pipes],
    withheld: inheritedDescriptors(),
    explain: (end) =>
      (user === undefined ? undefined : explainUser(end, user, checked)) ??
      explainEnd(end, settings, limits.group?.wasOutOfMemory() ?? false),
    stop: endInside,
    cleanUp: async () => limits.group?.remove(),
  };
}

function tellHandOver(folders: readonly string[], { uid, gid }: CageUser, warn: (message: string) => void): void {
  for (const folder of folders) {
    warn(`${folder} was an empty folder of root's and belongs to ${uid}:${gid} now, as whom the program runs.`);
  }
}

/**
 * Asks the kernel, as the user and inside, whether the named paths can be used: modes alone do not tell, as there are
 * access lists. By its number, so that no text of the program's can have a person change another path. Then takes the
 * environment, without another process: `pids` may not leave one.
 */
const CHECK = `n=0
while [ "$1" != -- ]; do
  test -r "$2" -a \\( ! -d "$2" -o -x "$2" \\) -a \\( "$1" = r -o -w "$2" \\) || { echo "toolcrib-cage: cannot use $n" >&2; exit 125; }
  n=$((n+1)); shift 2
done
shift
${LINE_BREAK}='
'
toolcrib_lines=
while IFS= read -r toolcrib_line <&${ENVIRONMENT_FD}; do toolcrib_lines="$toolcrib_lines$toolcrib_line$${LINE_BREAK}"; done
exec ${ENVIRONMENT_FD}<&-
eval "$toolcrib_lines"
exec "$@"`;

function checkFirst(paths: readonly NamedPath[]): string[] {
  return [
    "/bin/sh",
    "-c",
    CHECK,
    "toolcrib-cage",
    ...paths.flatMap(({ path, writable }) => [writable ? "w" : "r", path]),
    "--",
  ];
}

/** A home that lies in the system would be seen with it. */
function hiddenHome(home: string): string[] {
  return isWithin(realPath(home), "/usr") || isWithin(realPath(home), "/nix/store") ? ["--tmpfs", realPath(home)] : [];
}

/**
 * SIGTERM to the group would end bubblewrap itself, and with it the program before it can put anything in order. So
 * the program is asked alone: bubblewrap's first process inside passes no signals on.
 */
async function endInside(pid: number): Promise<void> {
  const [first] = childrenOf(pid);
  const asked = first === undefined ? [] : childrenOf(first);
  for (const each of asked) {
    try {
      process.kill(each, "SIGTERM");
    } catch {
      // Gone already.
    }
  }
  const until = performance.now() + STOP_MS;
  while (asked.length > 0 && childrenOf(pid).length > 0 && performance.now() < until) await delay(15);
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return text === "" ? [] : text.split(" ").map(Number);
  } catch {
    return [];
  }
}
