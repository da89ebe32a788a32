/** A sandbox made of a container: what the program has is what its image has, and the paths that were named. */
import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { notSent } from "../wire.ts";
import { changesEngine, changesShell, type ContainerEngine, containerEngine } from "./container-engine.ts";
import { imageFor, type ServerImage } from "./container-image.ts";
import {
  containerLabels,
  type ContainerLabels,
  containerName,
  stopContainer,
  thisHub,
  trackContainer,
} from "./live-containers.ts";
import {
  certificateMounts,
  checkedMounts,
  isReadableByAll,
  namedPaths,
  NOBODY_ID,
  type SandboxMount,
  type UserMount,
} from "./named-mounts.ts";
import {
  refuseNul,
  type RunEnd,
  type Sandbox,
  type SandboxDeps,
  type SandboxedProgram,
  type SandboxLaunch,
  type SandboxSettings,
} from "./sandbox-settings.ts";

/** The launch of a container, which those that serve HTTP need to know more about. */
export interface ContainerLaunch extends SandboxLaunch {
  readonly name: string;
  /** Asks the engine something about it. */
  ask(args: readonly string[], signal?: AbortSignal): Promise<{ readonly code: number; readonly stdout: string }>;
  stop(): Promise<void>;
  cleanUp(): Promise<void>;
}

export interface ContainerSandbox extends Sandbox {
  makeReady(program: SandboxedProgram, signal: AbortSignal): Promise<void>;
  prepare(program: SandboxedProgram, signal: AbortSignal): Promise<ContainerLaunch>;
}

/** Found out before a start. */
interface ReadyContainer {
  readonly engine: ContainerEngine;
  readonly image: ServerImage;
}

/**
 * Node's extra pipes are sockets, which cannot be opened by a path: `cat` makes a real pipe of the one at 3, and the
 * engine reads its env file from there.
 */
const WITH_ENV_PIPE = 'exec 4<&0; cat <&3 4<&- | { exec 3<&0 <&4 4<&-; exec "$0" "$@"; }';

export function containerSandbox(settings: SandboxSettings, deps: SandboxDeps): ContainerSandbox {
  let ready: ReadyContainer | undefined;
  const makeReady = async (program: SandboxedProgram, signal: AbortSignal): Promise<ReadyContainer> => {
    const engine = await containerEngine(deps.containers, deps.env, signal);
    return { engine, image: await imageFor({ program, settings, engine, deps, signal }) };
  };
  // Paths that are not there would be made by some engines, with root as their owner.
  const check = (program: SandboxedProgram): SandboxMount[] => {
    refuseNul(program);
    return checkedMounts(namedPaths(settings, program), deps);
  };
  return {
    async makeReady(program, signal) {
      check(program);
      ready = await makeReady(program, signal);
    },
    async prepare(program, signal) {
      const named = check(program);
      const { engine, image: chosen } = ready ?? (await makeReady(program, signal));
      const { image, entrypoint, args } = chosen;
      const certificates = certificateMounts(program, {
        isVisible: () => false,
        asOther: true,
        // Elsewhere the engine runs in a virtual machine, which sees few folders of this one.
        mountable: process.platform === "linux" ? "files" : "none",
        home: deps.home,
      });
      const mounts = [...named, ...certificates.mounts.filter(({ path }) => !named.some((each) => each.path === path))];
      const environment = passEnvironment(passable(certificates.env, program.inherited), deps.env);
      const { serverId, cwd } = program;
      const name = containerName(serverId);
      const flags = runFlags({
        kind: engine.kind,
        name,
        labels: containerLabels(serverId, deps.home, thisHub()),
        settings,
        mounts,
        user: containerUser(engine, mounts),
        envFile: environment.file === "" ? undefined : "/dev/fd/3",
        envNames: environment.byName,
        given: environment.names,
        cwd,
        flags: deps.containers.flags ?? [],
      });
      const words = [...flags, ...(entrypoint === undefined ? [] : ["--entrypoint", entrypoint]), image, ...args];
      const remove = trackContainer({ engine, name, home: deps.home, warn: (message) => deps.warn(message) });
      return {
        name,
        ...(environment.file === ""
          ? { command: engine.program, args: words }
          : {
              command: "/bin/sh",
              args: ["-c", WITH_ENV_PIPE, engine.program, ...words],
              fds: [Buffer.from(environment.file)],
            }),
        env: { ...engine.env, ...environment.launcher },
        // podman's monitor leaves a file named `oom` where it was started.
        cwd: join(deps.home, "run"),
        ask: (question, asked) => engine.run(question, { signal: asked }),
        explain: (end) => explain(end, engine.program, image, settings.memory),
        stop: () => stopContainer(engine, name),
        cleanUp: remove,
      };
    },
  };
}

/** The codes of `run` itself: 125 is the engine's own failure, 126 and 127 a program that the image does not have. */
function explain(end: RunEnd, program: string, image: string, memory: number | undefined): ToolcribError | undefined {
  const { exitCode, stderr, heard } = end;
  // 128 and SIGKILL, which is how the kernel ends what takes too much.
  if (exitCode === 137 && memory !== undefined) {
    const text = `was killed, as happens to what needs more memory than its sandbox allows (${memory} bytes)`;
    return new ToolcribError("server_unavailable", text, { hint: "Raise `sandbox.memory`.", details: { exitCode } });
  }
  if (heard) return undefined;
  if (exitCode === 125) {
    return notSent(
      "server_unavailable",
      `${program} could not run the container: ${stderr}`,
      "Flags for this machine, such as --runtime, go into `containers.flags`.",
    );
  }
  if (exitCode !== 126 && exitCode !== 127) return undefined;
  // The engine's runtime gives the same codes when it cannot run anything at all.
  const isMissing = /not found|no such file|exec format|permission denied/i.test(stderr);
  const hint = isMissing
    ? "A container has the programs of its image only; correct `command`, or leave it out for the image's own."
    : "Flags for this machine, such as --runtime, go into `containers.flags`.";
  return notSent("server_unavailable", `the program could not be started in the image ${image}: ${stderr}`, hint);
}

export interface RunRequest {
  readonly kind: "podman" | "docker";
  readonly name: string;
  readonly labels: ContainerLabels;
  readonly settings: Pick<SandboxSettings, "network" | "memory" | "cpus" | "pids" | "port">;
  /** Outer folders first, so that one inside another is not covered by it. */
  readonly mounts: readonly SandboxMount[];
  readonly user: ContainerUser;
  /** Path of an env file; undefined if there is none. */
  readonly envFile: string | undefined;
  readonly envNames: readonly string[];
  /** All variables that the server itself brings. */
  readonly given: readonly string[];
  readonly cwd: string | undefined;
  /** From `containers.flags`: they come last, so that they win. */
  readonly flags: readonly string[];
}

interface ContainerUser {
  readonly uid: number;
  readonly gid: number;
  /** Rootless podman: the user outside is the same one inside, so that files keep their owner. */
  readonly keepId: boolean;
}

/** Enough for a server with a few helpers and their threads, and an end to a fork bomb. */
const DEFAULT_MAX_PIDS = 256;

const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FTP_PROXY", "ALL_PROXY"];

/** The flags of `podman run` and `docker run` that make a container a sandbox. Both programs take all of them. */
export function runFlags(request: RunRequest): string[] {
  const { kind, name, labels, settings, mounts, user, envFile, envNames, given, cwd, flags } = request;
  const { network, memory, cpus, pids, port } = settings;
  return [
    "run",
    "--rm",
    // A container that is published talks over HTTP; any other over its stdin and stdout.
    ...(port === undefined ? ["--interactive"] : ["--publish", `127.0.0.1::${port}`]),
    ...["--name", name],
    ...Object.entries(labels).flatMap(([label, value]) => ["--label", `${label}=${value}`]),
    ...["--pull", "never"],
    // Its output comes to us; a second copy on the disk would only grow.
    ...["--log-driver", "none"],
    "--read-only",
    ...["--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777"],
    ...["--cap-drop", "ALL"],
    ...["--security-opt", "no-new-privileges"],
    ...(user.keepId ? ["--userns", "keep-id"] : []),
    ...["--user", `${user.uid}:${user.gid}`],
    ...withoutProxies(kind, given),
    // Publishing needs the engine's own network: on the network of this machine the port would not be on loopback only.
    ...(port === undefined ? ["--network", network] : []),
    // The same for memory and swap: no swap.
    ...(memory === undefined ? [] : ["--memory", `${memory}b`, "--memory-swap", `${memory}b`]),
    ...(cpus === undefined ? [] : ["--cpus", String(cpus)]),
    ...["--pids-limit", String(pids ?? DEFAULT_MAX_PIDS)],
    ...mounts.flatMap((mount) => ["--mount", mountOption(mount)]),
    ...(cwd === undefined ? [] : ["--workdir", cwd]),
    ...(given.includes("HOME") ? [] : ["--env", "HOME=/tmp"]),
    ...(envFile === undefined ? [] : ["--env-file", envFile]),
    ...envNames.flatMap((variable) => ["--env", variable]),
    ...flags,
  ];
}

/**
 * podman would hand the proxy settings of this machine on, docker those of its config file; either may hold credentials.
 * docker takes those that are named here for given, empty or not.
 */
function withoutProxies(kind: RunRequest["kind"], given: readonly string[]): string[] {
  if (kind === "podman") return ["--http-proxy=false"];
  const names = PROXIES.flatMap((name) => [name, name.toLowerCase()]);
  return names.filter((name) => !given.includes(name)).flatMap((name) => ["--env", `${name}=`]);
}

function mountOption({ path, source, writable }: SandboxMount): string {
  return ["type=bind", `source=${source}`, `target=${path}`, ...(writable ? [] : ["readonly"])].map(csvField).join(",");
}

/** The value of `--mount` is a line of CSV. */
function csvField(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

interface PassedEnvironment {
  /** Text of the env file; empty if there is none. */
  readonly file: string;
  /** For `--env NAME`. */
  readonly byName: readonly string[];
  /** Needed for those in the environment of the starting program. */
  readonly launcher: Readonly<Record<string, string>>;
  /** Of all of them. */
  readonly names: readonly string[];
}

/** Of the hub's machine: in an image these have values of their own. */
const HOST_VARIABLES = new Set(["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"]);

/** Text that engines of all versions read back as written: they differ on quotes, on `#` and on blanks at the ends. */
const PLAIN_VALUE = /^(?:[^\s"'`#$\\](?:[^\r\n\0"'`#$\\]*[^\s"'`#$\\])?)?$/;

const NAME = /^[A-Za-z_][\w.-]*$/;

/**
 * How a server's variables get into its container. Not as `--env NAME=value`, which every user of the machine could
 * read in the process table: as an env file that is a pipe, or, where such a file cannot carry the text, by name from
 * the environment of the program that starts the container.
 *
 * @param env The program's environment as it would be outside.
 * @param host The hub's own.
 * @param pipes Whether a pipe can be opened by its path, which Windows cannot.
 */
export function passEnvironment(
  env: Readonly<Record<string, string>>,
  host: NodeJS.ProcessEnv,
  pipes = process.platform !== "win32",
): PassedEnvironment {
  const lines: string[] = [];
  const launcher: Record<string, string> = {};
  const carried = Object.fromEntries(
    Object.entries(env).filter(([name, value]) => !(HOST_VARIABLES.has(name) && host[name] === value)),
  );
  for (const [name, value] of Object.entries(carried)) {
    if (pipes && NAME.test(name) && PLAIN_VALUE.test(value)) lines.push(`${name}=${value}\n`);
    else if (isSafeByName(name, pipes)) launcher[name] = value;
    else {
      throw notSent(
        "invalid_config",
        `The variable ${JSON.stringify(name)} cannot be passed to a container with this value: an env file cannot contain line breaks or quotes, and passed by name it would change the program that starts the container.`,
        "Change its value, or put it into a file that `sandbox.read` names.",
      );
    }
  }
  return { file: lines.join(""), byName: Object.keys(launcher), launcher, names: Object.keys(carried) };
}

/** Without inherited variables that would be an error: the program can do without. */
function passable(
  env: Readonly<Record<string, string>>,
  inherited: readonly string[] = [],
): Readonly<Record<string, string>> {
  const canPass = (name: string, value: string): boolean =>
    NAME.test(name) && (PLAIN_VALUE.test(value) || isSafeByName(name, true));
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => !inherited.includes(name) || canPass(name, value)),
  );
}

/** A shell reads it too where a pipe is made for the others. */
function isSafeByName(name: string, pipes: boolean): boolean {
  return NAME.test(name) && !changesEngine(name) && !(pipes && changesShell(name));
}

interface OwnIds {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Who the program is inside: not root where that can be, and the owner of the files that it is to work on.
 *
 * @param own Of the hub's process; undefined on Windows.
 */
export function containerUser(
  engine: Pick<ContainerEngine, "kind" | "rootless">,
  mounts: readonly UserMount[],
  own: OwnIds | undefined = ownIds(),
): ContainerUser {
  if (engine.rootless && engine.kind === "podman" && own !== undefined) return { ...own, keepId: true };
  if (!engine.rootless && own !== undefined && own.uid !== 0) return { ...own, keepId: false };
  const owner = neededOwner(mounts);
  if (owner === undefined) return { uid: NOBODY_ID, gid: NOBODY_ID, keepId: false };
  // Rootless docker has no mapping as podman has: there the user outside is root inside, without capabilities.
  return engine.rootless ? { uid: 0, gid: 0, keepId: false } : { uid: owner.uid, gid: owner.gid, keepId: false };
}

/** The owner that the program needs to be; undefined if any user will do. */
function neededOwner(mounts: readonly UserMount[]): Stats | undefined {
  const look = ({ source }: UserMount): Stats | undefined => statSync(source, { throwIfNoEntry: false });
  const first = mounts.find(({ writable }) => writable);
  if (first !== undefined) return look(first);
  return mounts.map(look).find((found) => found !== undefined && !isReadableByAll(found));
}

function ownIds(): OwnIds | undefined {
  const uid = process.getuid?.();
  const gid = process.getgid?.();
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}
