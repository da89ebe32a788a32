/** The program that runs containers: podman or docker, found by itself or named in the config. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { withAbort, withTimeout } from "../../base/async.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ContainersConfig } from "../../model/server-spec.ts";
import { PidRecords } from "../stdio/pid-records.ts";
import { trackChild } from "../stdio/child-processes.ts";
import { notSent } from "../wire.ts";
import { runProgram } from "../../base/programs.ts";

export interface ContainerEngine {
  /** As it is started. */
  readonly program: string;
  readonly kind: "podman" | "docker";
  readonly version: string;
  /** Runs without root's powers on this machine: root in a container is the user then. */
  readonly rootless: boolean;
  /** Of the containers, in npm's words. */
  readonly arch: string;
  /** The environment that the program itself gets. */
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[], options?: EngineRun): Promise<EngineEnd>;
}

interface EngineRun {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** For what takes long; see `runInGroup`. */
  readonly holder?: RunOwner;
}

/** podman first: it needs no daemon. */
const KNOWN_ENGINES = ["podman", "docker"] as const;
const ASK_TIMEOUT_MS = 20_000;
const RUN_TIMEOUT_MS = 30_000;

const CONTAINER_ADVICE =
  'Install podman, or start docker, or name the program in `containers.program`. `sandbox: "bubblewrap"` needs no container engine.';

/**
 * Asked again for every server: an engine may come and go, and asking costs a tenth of a second. Throws
 * `server_unavailable` with the reason for each program that was tried.
 */
export async function containerEngine(
  { program }: Pick<ContainersConfig, "program">,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ContainerEngine> {
  const reasons: string[] = [];
  for (const candidate of program === undefined ? KNOWN_ENGINES : [program]) {
    try {
      return await askEngine(candidate, env, signal);
    } catch (error) {
      if (!(error instanceof ToolcribError) || error.code === "cancelled") throw error;
      reasons.push(`${candidate}: ${error.message}`);
    }
  }
  const message = `No container can be run on this machine. ${reasons.join("; ")}`;
  throw notSent("server_unavailable", message, CONTAINER_ADVICE);
}

async function askEngine(program: string, hubEnv: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<ContainerEngine> {
  const env = engineEnvironment(hubEnv);
  const run = (args: readonly string[], { timeoutMs = RUN_TIMEOUT_MS, signal: stop, holder }: EngineRun = {}) => {
    const settings = { env, timeoutMs, signal: stop };
    return holder === undefined
      ? runEngine(program, args, settings)
      : runInGroup(program, args, { ...settings, ...holder });
  };
  const ask = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args, { timeoutMs: ASK_TIMEOUT_MS, signal });
    if (code === 0) return stdout;
    const said = lastLines(stderr, 2) || `\`${program} ${args[0] ?? ""}\` ended with code ${code}`;
    throw new ToolcribError("server_unavailable", said);
  };
  // Not `info`, which starts a dozen programs to find out their versions.
  const facts = readVersion(await ask("version", "--format", "{{json .}}"));
  if (facts === undefined) throw new ToolcribError("server_unavailable", "it is neither podman nor docker");
  if (facts.kind === "podman") {
    // The version alone would not show a storage that cannot be used.
    await ask("ps", "--quiet");
    return { program, env, run, ...facts, rootless: process.getuid?.() !== 0 };
  }
  const security = await ask("info", "--format", "{{json .SecurityOptions}}");
  return { program, env, run, ...facts, rootless: security.includes("rootless") };
}

/** podman is its own server unless it is a remote one; docker never is. */
function readVersion(text: string): Pick<ContainerEngine, "kind" | "version" | "arch"> | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(answer)) return undefined;
  const client = isJsonObject(answer["Client"]) ? answer["Client"] : {};
  const server = isJsonObject(answer["Server"]) ? answer["Server"] : client;
  const version = server["Version"] ?? client["Version"];
  if (typeof version !== "string") return undefined;
  // Only docker says which API its client speaks at most; a `docker` that is podman in disguise answers as podman.
  const isDocker = "DefaultAPIVersion" in client || "ApiVersion" in client;
  const { Arch: arch, OsArch: both } = server;
  const word = arch ?? (typeof both === "string" ? both.split("/")[1] : undefined);
  return { kind: isDocker ? "docker" : "podman", version, arch: npmArch(word) };
}

function npmArch(word: unknown): string {
  if (word === "amd64" || word === "x86_64") return "x64";
  if (word === "arm64" || word === "aarch64") return "arm64";
  return typeof word === "string" && word !== "" ? word : process.arch;
}

interface ProgramRun {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly signal?: AbortSignal | undefined;
}

interface EngineEnd {
  /** -1 if a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an engine to its end; any exit code is an answer. Rejects if it was not started, took too long or was aborted. */
async function runEngine(program: string, args: readonly string[], options: ProgramRun): Promise<EngineEnd> {
  const end = await runProgram(program, args, options);
  switch (end.kind) {
    case "exited":
      return end;
    case "killed":
      return { code: -1, stdout: end.stdout, stderr: end.stderr };
    case "aborted":
      throw interrupted(program);
    case "timed_out":
      throw timedOut(program, args, options.timeoutMs);
    case "not_found":
      throw notStarted(program, { code: "ENOENT", message: "" });
    case "too_much_output":
      throw notStarted(program, { code: end.kind, message: "it wrote too much" });
    case "not_started":
      throw notStarted(program, end.error);
  }
}

/** The end of what a program said, in a form for messages: addresses without the credentials in them. */
export function lastLines(text: string, lines = 6): string {
  const kept = text
    .split("\n")
    .map((line) => line.trim().replaceAll(/\/\/[^/@\s]+@/g, "//"))
    .filter((line) => line !== "");
  return kept.slice(-lines).join("\n").slice(-2000);
}

function interrupted(program: string): ToolcribError {
  return notSent("cancelled", `${program} was interrupted`);
}

function timedOut(program: string, args: readonly string[], timeoutMs: number): ToolcribError {
  return notSent("timeout", `${program} ${args[0] ?? ""} took longer than ${Math.round(timeoutMs / 1000)} seconds`);
}

function notStarted(program: string, error: { readonly code?: unknown; readonly message: string }): ToolcribError {
  const isMissing = error.code === "ENOENT";
  const message = isMissing ? `command not found: ${program}` : `could not start ${program}: ${error.message}`;
  return notSent("server_unavailable", message, undefined, { reason: error.code });
}

interface RunOwner {
  readonly home: string;
  /** The server that it is done for. */
  readonly serverId: string;
}

/** From SIGTERM to SIGKILL. */
const GRACE_MS = 2000;
const MAX_KEPT_LENGTH = 64 * 1024;

/**
 * Runs what takes minutes, such as npm or the build of an image, in a process group of its own: it ends when the signal
 * aborts, with this process, and if this process is killed outright, with the next hub on the same home. Rejects as
 * `runEngine` does, when everything that was started has ended.
 */
export async function runInGroup(
  program: string,
  args: readonly string[],
  { env, cwd, timeoutMs, signal, home, serverId }: ProgramRun & RunOwner,
): Promise<EngineEnd> {
  if (signal?.aborted === true) throw interrupted(program);
  const child = spawn(program, args, {
    env,
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const tracked = trackChild(child, new PidRecords(join(home, "run")), { serverId, command: program, args });
  const [stdout, stderr] = [tailOf(child.stdout), tailOf(child.stderr)];
  const exit = withTimeout(exitOf(child, program), { ms: timeoutMs, late: () => timedOut(program, args, timeoutMs) });
  try {
    const code = await (signal === undefined ? exit : withAbort(exit, signal, () => interrupted(program)));
    return { code, stdout: stdout(), stderr: stderr() };
  } finally {
    await tracked.end({ graceMs: GRACE_MS, stdinMs: 0 });
  }
}

function exitOf(child: ChildProcess, program: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(notStarted(program, error)));
    child.once("close", (code) => resolve(code ?? -1));
  });
}

/** Keeps the last of what it says. */
function tailOf(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("error", () => {});
  stream.on("data", (chunk: string) => (text = (text + chunk).slice(-MAX_KEPT_LENGTH)));
  return () => text;
}

/**
 * The part of the hub's environment for podman, docker and npm: what they need to find their settings, their daemon and the
 * way to a registry. Never the rest, which holds other servers' secrets.
 */
const EVERY_PROGRAM = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "TMPDIR",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "APPDATA",
  "COMSPEC",
  "LOCALAPPDATA",
  "PATHEXT",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "WINDIR",
]);
const ENGINE = new Set(["DBUS_SESSION_BUS_ADDRESS", "REGISTRY_AUTH_FILE", "SSH_AUTH_SOCK"]);
const ENGINE_PREFIXES = /^(?:XDG|DOCKER|CONTAINERS?|BUILDAH|STORAGE|_CONTAINERS)_/;

/** Read by the system's loader, by the runtimes of engines, or by the engines themselves. */
const ENGINE_SETTINGS =
  /^(?:LD_|DYLD_|GLIBC_|MALLOC_|GO|SSL_|LC_|OTEL_|PODMAN|DOCKER|BUILDKIT_|BUILDX_|CONTAINER|_CONTAINERS|XDG_|\w+_PROXY$|LANGUAGE$|TERM$|TZ$|NOTIFY_SOCKET$|LISTEN_)/i;

/** Shells of all kinds: options, prompts and files that they read at their start, and lists of folders. */
const SHELL_SETTINGS = /^(?:ENV|IFS|PS\d|OPT(?:IND|ARG|ERR)|SHELLOPTS|BASH\w*|ZDOTDIR|POSIXLY_CORRECT|\w*PATH)$/i;

/** npm's own settings, and the usual names of tokens that they refer to. */
const NPM = /^(?:npm_config_.*|npm_token|node_auth_token|node_extra_ca_certs)$/i;

/** Engines start `iptables` and the like, which are in folders that Debian keeps out of the PATH of ordinary users. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/sbin"];

export function engineEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = keepOnly(env, isForEngine);
  if (process.platform === "win32" || kept["PATH"] === undefined) return kept;
  const folders = kept["PATH"].split(":");
  return { ...kept, PATH: [...folders, ...SYSTEM_FOLDERS.filter((each) => !folders.includes(each))].join(":") };
}

/**
 * Dependencies from git are refused: npm would run the program that such a dependency calls `git` in an .npmrc of its
 * own. Older versions know no `allow-git`.
 */
export function npmEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const own = { npm_config_git: "/bin/false", npm_config_allow_git: "none", npm_config_ignore_scripts: "true" };
  // npm takes any case, and dashes.
  const isOwn = (name: string): boolean => Object.hasOwn(own, name.toLowerCase().replaceAll("-", "_"));
  const kept = keepOnly(env, (name) => EVERY_PROGRAM.has(name.toUpperCase()) || (NPM.test(name) && !isOwn(name)));
  return { ...kept, ...own };
}

/** Whether a variable of this name changes what the engine itself does. */
export function changesEngine(name: string): boolean {
  return isForEngine(name) || ENGINE_SETTINGS.test(name);
}

/** Whether it changes what a shell does that starts the engine. */
export function changesShell(name: string): boolean {
  return SHELL_SETTINGS.test(name);
}

function isForEngine(name: string): boolean {
  return EVERY_PROGRAM.has(name.toUpperCase()) || ENGINE.has(name.toUpperCase()) || ENGINE_PREFIXES.test(name);
}

function keepOnly(env: NodeJS.ProcessEnv, isWanted: (name: string) => boolean): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined && isWanted(name)) kept[name] = value;
  return kept;
}
