/** The bubblewrap sandbox: namespaces of its own, a read-only system, and only the paths that were named. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { ToolcribError } from "../../model/errors.ts";
import { startError } from "../stdio/child-processes.ts";
import { notSent } from "../wire.ts";
import {
  certificateMounts,
  checkedMounts,
  findCommand,
  isWithin,
  type NamedPath,
  namedPaths,
  realPath,
} from "./named-mounts.ts";
import { type LimitMeans, limitMeans, planLimits } from "./resource-limits.ts";
import {
  refuseNul,
  type RunEnd,
  type Sandbox,
  type SandboxDeps,
  type SandboxedProgram,
  type SandboxLaunch,
  type SandboxSettings,
} from "./sandbox-settings.ts";
import { giveEmptyFolders, makeSkillsReadable, type SandboxUser, sandboxUser, userSwitch } from "./sandbox-user.ts";
import { systemCallFilter } from "./system-call-filter.ts";
import {
  generatedFiles,
  isOfSystem,
  namespaceOptions,
  parentFolders,
  programMounts,
  SANDBOX_HOME,
  type SandboxOwner,
  systemMounts,
} from "./system-mounts.ts";
import { runProgram } from "../../base/programs.ts";

/** /tmp, the home and shared memory are kept in memory; each may grow to this, or to `memory`. */
const MAX_SCRATCH_BYTES = 1024 ** 3;
/** 0 to 2 are the program's own. */
const OPTIONS_FD = 3;
/** Of a root hub's sandboxes. One digit, because shells know no others. */
const ENVIRONMENT_FD = 4;
/** How long a program may take to end after SIGTERM; the caller's own patience may be shorter. */
const MAX_STOP_MS = 3000;

export interface BubblewrapHost {
  readonly platform: NodeJS.Platform;
  readonly means: (env: NodeJS.ProcessEnv) => LimitMeans;
}

const THIS_HOST: BubblewrapHost = { platform: process.platform, means: limitMeans };

export function bubblewrapSandbox(
  settings: SandboxSettings,
  deps: SandboxDeps,
  host: BubblewrapHost = THIS_HOST,
): Sandbox {
  return { prepare: (program) => prepare(program, settings, deps, host) };
}

async function prepare(
  program: SandboxedProgram,
  settings: SandboxSettings,
  deps: SandboxDeps,
  { platform, means }: BubblewrapHost,
): Promise<SandboxLaunch> {
  refuseNul(program);
  const { program: bubblewrap, sizes } = await findBubblewrap(deps.env, platform);
  const { command, args, env, cwd } = program;
  const named = namedPaths(settings, program);
  const found = programMounts(command, { path: env["PATH"], cwd, writable: settings.write.map(realPath) });
  if (found === undefined) throw startError(Object.assign(new Error("not found"), { code: "ENOENT" }), command);

  // A path inside a named path, or inside a folder of the program, is mounted already, as that was named.
  const implied = found.mounts.filter(
    (path) =>
      !isWithin(path, "/usr") &&
      !named.some((each) => isWithin(path, each.path)) &&
      !found.mounts.some((each) => each !== path && isWithin(path, each)),
  );
  named.push(...implied.map((path) => ({ path, key: "`command`", writable: false })));
  const mounts = checkedMounts(
    named.filter(({ key, path }) => key !== "`cwd`" || !isWithin(path, "/usr")),
    deps,
  );
  const limitsOfHost = means(deps.env);
  const user = limitsOfHost.isRoot ? await sandboxUser(mounts) : undefined;
  if (user !== undefined) {
    makeSkillsReadable(mounts, deps.home);
    for (const folder of giveEmptyFolders(mounts, user)) {
      const owner = `${user.uid}:${user.gid}`;
      deps.warn(`${folder} was an empty folder of root's and belongs to ${owner} now, as whom the program runs.`);
    }
  }
  const owner: SandboxOwner = user?.mountsAs === "root" ? { kind: "root", ...user } : { kind: "namespace" };
  const files = generatedFiles(settings.network, owner);
  const seen = mounts.map(({ path }) => path);
  const certificates = certificateMounts(program, {
    isVisible: (path) => isOfSystem(path) || seen.some((each) => isWithin(path, each)),
    asOther: user !== undefined,
    mountable: "all",
    home: deps.home,
  });
  const inside = sandboxEnvironment(certificates.env, deps.env, seen);
  const handed = user === undefined ? undefined : shellEnvironment(inside);
  const first = handed === undefined ? [] : [Buffer.from(handed.lines)];
  const pipes = [...first, ...files.map(({ text }) => Buffer.from(text)), systemCallFilter()];
  const filesFd = OPTIONS_FD + 1 + first.length;
  const options = [
    ...namespaceOptions(settings.network, owner),
    ...systemMounts(
      settings.network,
      sizes ? Math.min(settings.memory ?? MAX_SCRATCH_BYTES, MAX_SCRATCH_BYTES) : undefined,
      owner,
    ),
    ...files.flatMap(({ path }, at) => ["--perms", "0444", "--ro-bind-data", String(filesFd + at), path]),
    ...[...certificates.mounts, ...mounts].flatMap(({ path, source, writable }) => [
      ...parentFolders(path, owner),
      ...[writable ? "--bind" : "--ro-bind", source, path],
    ]),
    ...hiddenHome(deps.home),
    // Last, because what is mounted needs places to be mounted at.
    ...["--remount-ro", "/"],
    ...["--chdir", cwd ?? SANDBOX_HOME],
    // Not where the user is still to be changed: setpriv would have it as root.
    ...(handed === undefined ? Object.entries(inside).flatMap(([name, value]) => ["--setenv", name, value]) : []),
    ...["--seccomp", String(OPTIONS_FD + pipes.length)],
  ];
  const checked = user === undefined ? [] : named.filter(({ key }) => key !== "`command`");
  const limits = planLimits(settings, limitsOfHost);
  // Through a pipe, because the environment holds secrets and a command line is for all to read.
  const words = [
    ...limits.before,
    ...(user?.mountsAs === "user" ? userSwitch(user) : []),
    bubblewrap,
    "--args",
    String(OPTIONS_FD),
    "--",
    ...(user?.mountsAs === "root" ? userSwitch(user) : []),
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

/** The variable of the shell that reads the lines that holds a line break. */
const LINE_BREAK = "toolcrib_break";
/**
 * Asks the kernel, as the user and inside, whether the named paths can be used: modes alone do not tell, as there are
 * access lists. By its number, so that no text of the program's can have a person change another path. Then takes the
 * environment, without another process: `pids` may not leave one.
 */
const CHECK_SCRIPT = `n=0
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
    CHECK_SCRIPT,
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
  const until = performance.now() + MAX_STOP_MS;
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

/** Of the minimal environment these speak of the user, who is another one in there. */
const SANDBOX_VARIABLES: Readonly<Record<string, string>> = {
  HOME: SANDBOX_HOME,
  USER: "cage",
  LOGNAME: "cage",
  SHELL: "/bin/sh",
  TMPDIR: "/tmp",
};
const SYSTEM_FOLDERS = ["/usr", "/bin", "/sbin", "/nix/store"];

/**
 * The environment inside: what the spec names, and a minimum that fits the sandbox.
 *
 * @param env What the program would have without a sandbox.
 * @param base The hub's own: what equals it was not named by the spec.
 * @param seen Paths besides the system that are there inside.
 */
function sandboxEnvironment(
  env: Readonly<Record<string, string>>,
  base: NodeJS.ProcessEnv,
  seen: readonly string[],
): Record<string, string> {
  const inside: Record<string, string> = { ...env };
  for (const [name, value] of Object.entries(SANDBOX_VARIABLES)) {
    if (env[name] === undefined || env[name] === base[name]) inside[name] = value;
  }
  if (env["PATH"] === base["PATH"]) inside["PATH"] = pathInside(env["PATH"], seen);
  return inside;
}

/** Folders that are not there would only tell of the machine. */
function pathInside(path: string | undefined, seen: readonly string[]): string {
  const isSeen = (folder: string): boolean =>
    [...SYSTEM_FOLDERS, ...seen].some((each) => isWithin(folder, each)) || seen.some((each) => isWithin(each, folder));
  const kept = (path ?? "").split(":").filter((folder) => folder.startsWith("/") && isSeen(folder));
  return [...new Set([...kept, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}

/** How a program gets its environment from the shell that starts it. */
interface ShellEnvironment {
  /** Shell commands, each on one line, that the shell reads from a pipe. */
  readonly lines: string;
  /** Words before the program, which hold names and never values. */
  readonly words: readonly string[];
}

const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Shells refuse to set these, or give them values of their own. */
const SHELL_OWNED =
  /^(?:_|UID|EUID|PPID|GROUPS|SHLVL|SHELLOPTS|OPTIND|LINENO|RANDOM|SRANDOM|SECONDS|EPOCH\w+|FUNCNAME|DIRSTACK|HISTCMD|BASH\w*)$/;

/**
 * A step that changes the user must not have this environment: LD_PRELOAD and its like would run the program's code as
 * root. So it comes after that, from a shell. What no shell can export (`a.b`, `UID`) is carried under another name to
 * GNU env, which fills it in by itself: its command line names `${toolcrib_cage_0}`.
 */
function shellEnvironment(env: Readonly<Record<string, string>>): ShellEnvironment {
  const exported: [name: string, value: string][] = [];
  const renamed: string[] = [];
  const carriers: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (SHELL_NAME.test(name) && !SHELL_OWNED.test(name)) {
      exported.push([name, value]);
      continue;
    }
    const carrier = `toolcrib_cage_${carriers.length}`;
    carriers.push(carrier);
    exported.push([carrier, value]);
    renamed.push(`'${name.replaceAll(/[\\']/g, "\\$&")}='\${${carrier}}`);
  }
  const lines = exported.map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`).join("");
  if (carriers.length === 0) return { lines, words: [] };
  const split = [...carriers.map((each) => `-u ${each}`), "--", ...renamed].join(" ");
  return { lines, words: [findCommand("env", "/usr/bin:/bin") ?? "/usr/bin/env", "-S", split] };
}

function shellQuoted(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`).replaceAll("\n", `'"$${LINE_BREAK}"'`)}'`;
}

interface Bubblewrap {
  /** Absolute. */
  readonly program: string;
  /** Whether the private folders can be given a size: from 0.7 on, and not where it is setuid root. */
  readonly sizes: boolean;
}

const ASK_TIMEOUT_MS = 5000;
const SETUID = 0o4000;

/** Rejects with the reason and the alternative where it cannot be used. Asked again each time, as that takes 2 ms. */
export async function findBubblewrap(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Promise<Bubblewrap> {
  if (platform !== "linux")
    throw bubblewrapMissing(`bubblewrap is only there on Linux, and this is ${platform}`, OTHER_SANDBOX);
  const program = findCommand("bwrap", env["PATH"]);
  if (program === undefined) {
    throw bubblewrapMissing(
      "bubblewrap is not installed",
      `Run apt install bubblewrap; \`bwrap\` must be in the hub's PATH. ${OTHER_SANDBOX}`,
    );
  }
  const help = await readHelp(program);
  if (!help.includes("--perms"))
    throw bubblewrapMissing(`${program} is too old`, `Version 0.5 or later is needed. ${OTHER_SANDBOX}`);
  return { program, sizes: help.includes("--size") && (statSync(program).mode & SETUID) === 0 };
}

async function readHelp(program: string): Promise<string> {
  const end = await runProgram(program, ["--help"], { env: {}, cwd: "/", timeoutMs: ASK_TIMEOUT_MS });
  if (end.kind === "exited" && end.code === 0) return end.stdout + end.stderr;
  const reason = end.kind === "exited" ? end.stderr.trim() || `code ${end.code}` : end.kind.replaceAll("_", " ");
  throw bubblewrapMissing(`${program} cannot be run: ${reason}`, OTHER_SANDBOX);
}

function bubblewrapMissing(message: string, hint: string): ToolcribError {
  return notSent("invalid_config", `The sandbox cannot be made: ${message}.`, hint);
}

const OTHER_SANDBOX = 'Or use the sandbox "container", or "none" for a program that you trust.';

/** Undefined where the sandbox is not the cause. */
export function explainEnd(end: RunEnd, settings: SandboxSettings, wasOutOfMemory: boolean): ToolcribError | undefined {
  if (wasOutOfMemory) {
    const message = `was ended because it needed more memory than its sandbox allows (${settings.memory} bytes)`;
    const details = exitDetails(end);
    return new ToolcribError("server_unavailable", message, { hint: "Raise `sandbox.memory`.", details });
  }
  const isRunning = end.exitCode === null && end.signal === null;
  if (end.heard || end.exitCode === 0 || isRunning) return undefined;
  const line =
    /^(?:bwrap|toolcrib-cage|systemd-run|prlimit|setpriv|Failed to (?:create|start|connect)[^:]*): ?.*$/m.exec(
      end.stderr,
    )?.[0];
  if (line !== undefined) return sandboxFailure(line, end);
  const reason = end.signal === null ? `exited with code ${end.exitCode}` : `was killed by ${end.signal}`;
  const message = end.stderr === "" ? reason : `${reason}; the last lines of its stderr:\n${end.stderr}`;
  return new ToolcribError("server_unavailable", message, {
    hint:
      "In its sandbox it sees only the system, its `cwd` and the paths that `sandbox` names, and has a network only " +
      'with `"network": "host"`. Does it need more?',
    details: exitDetails(end),
  });
}

/** Failures because the program runs as another user than the hub, which is root. */
function explainUser(
  end: RunEnd,
  { uid, gid }: Pick<SandboxUser, "uid" | "gid">,
  named: readonly NamedPath[],
): ToolcribError | undefined {
  if (end.heard) return undefined;
  const who = `the hub runs as root, and the program in its sandbox as the user ${uid}`;
  const [, number] = /^toolcrib-cage: cannot use (\d+)$/m.exec(end.stderr) ?? [];
  const lacking = number === undefined ? undefined : named[Number(number)];
  if (lacking !== undefined) {
    const { key, path, writable } = lacking;
    const verb = writable ? "write" : "read";
    const fix = writable ? `chown -R ${uid}:${gid} ${path}` : `chmod -R o+rX ${path}`;
    return invalidSandbox(
      `${key} names ${path}, which the program may not ${verb}: ${who}. Run ${fix}`,
      `Or give it to the user that is to ${verb} it: the program runs as the owner of its first \`write\` path.`,
      end,
    );
  }
  if (/^(?:\S*\/)?env: (?:unrecognized|invalid|illegal) option.*S/m.test(end.stderr)) {
    return invalidSandbox(
      "the names in its `env` that no shell can set need `env -S`, which this machine does not have",
      "Install GNU coreutils, or use names of letters, digits and _ that are not a shell's own.",
      end,
    );
  }
  const denied =
    /^(?:toolcrib-cage: [^/]*(?:exec|line)[^/]*|setpriv: failed to execute |bwrap: execvp |(?:\S*\/)?env: .?)\/.*Permission denied$/m;
  if (!denied.test(end.stderr)) return undefined;
  return invalidSandbox(
    `its program may not be started: ${who}`,
    "Run chmod -R o+rX on the folder that it is installed in.",
    end,
  );
}

/** A failure of bubblewrap or its launchers, with a hint how to fix it. */
function sandboxFailure(line: string, end: RunEnd): ToolcribError {
  const execFailed = /^(?:bwrap: execvp |toolcrib-cage: [^/]*)(\/.+): (?:No such file or directory|not found)$/.exec(
    line,
  );
  if (execFailed !== null) {
    return invalidSandbox(
      `the program ${execFailed[1]} cannot be started in its sandbox: it or the program that its first line names is not in there`,
      "Name the folders that it needs in `sandbox.read`.",
      end,
    );
  }
  if (line.startsWith("setpriv: ")) {
    return invalidSandbox(
      `the hub runs as root, and the program cannot get another user: ${line}`,
      "Root needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP for that, and a system call filter that lets it. Or run the hub " +
        `as another user. ${OTHER_SANDBOX}`,
      end,
    );
  }
  if (/namespace|uid map|gid map|setting up uid|Operation not permitted|Permission denied.*uid_map/i.test(line)) {
    return invalidSandbox(
      `bubblewrap may not make a sandbox on this machine: ${line}`,
      "User namespaces must be allowed: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, on Ubuntu " +
        `kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap. ${OTHER_SANDBOX}`,
      end,
    );
  }
  if (/Unknown option/.test(line)) {
    return invalidSandbox(`bubblewrap is too old: ${line}`, `Version 0.5 or later is needed. ${OTHER_SANDBOX}`, end);
  }
  return invalidSandbox(`the sandbox could not be made: ${line}`, OTHER_SANDBOX, end);
}

function invalidSandbox(message: string, hint: string, end: RunEnd): ToolcribError {
  // Said again, because a request that waits for the answer fails with another code.
  return notSent("invalid_config", message, hint, { permanent: true, ...exitDetails(end) });
}

function exitDetails({ exitCode, signal }: RunEnd): { exitCode: number | null; signalCode: NodeJS.Signals | null } {
  return { exitCode, signalCode: signal };
}

const CLOSE_ON_EXEC = 0o2000000;

/**
 * Open files that whoever started the hub left to it, and that every program it starts would get as well. Node marks
 * only the lowest of them as its own. Usually there are none.
 */
function inheritedDescriptors(): number[] {
  try {
    const open = readdirSync("/proc/self/fd").map(Number);
    return open.filter((descriptor) => descriptor > 2 && isPassedOn(descriptor));
  } catch {
    return [];
  }
}

function isPassedOn(descriptor: number): boolean {
  try {
    const [, flags = ""] = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
    return flags !== "" && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The one that the folder was read through.
    return false;
  }
}
