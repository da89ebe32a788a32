/** Sandbox: restricts a server's program to less than the user's own rights. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { ToolcribError } from "../../model/errors.ts";
import { type ContainersConfig, type SandboxEntry, type SandboxKind, sandboxKindOf } from "../../model/server-spec.ts";
import { parseReferences } from "../../secrets/secret-references.ts";
import { notSent } from "../wire.ts";

export interface Sandbox {
  /**
   * For work that takes long and is needed once, such as making an image. It has a time limit of its own and is not part of the time
   * that connecting may take; `prepare` finds it done.
   */
  makeReady?(program: SandboxedProgram, signal: AbortSignal): Promise<void>;
  /** Turns the program into one that runs inside. Leaves nothing behind when it rejects. */
  prepare(program: SandboxedProgram, signal: AbortSignal): Promise<SandboxLaunch>;
}

/** A program as it would be started without a sandbox. */
export interface SandboxedProgram {
  readonly serverId: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Complete: the minimal environment and what the spec names. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the variables in it that it inherits from the hub, and could do without. */
  readonly inherited?: readonly string[];
  readonly cwd: string | undefined;
  /** The folder that relative paths of the spec start from. */
  readonly baseDir: string;
}

/** The program that is started instead. */
export interface SandboxLaunch {
  readonly command: string;
  readonly args: readonly string[];
  /** Of the launcher; the program's own goes in by other ways. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Extra pipes: descriptors 3 and up get these bytes and are closed. */
  readonly fds?: readonly Uint8Array[];
  /** Descriptors of the hub that it would inherit and must not: it finds /dev/null there. */
  readonly withheld?: readonly number[];
  /** A better reason for the end of a run than its exit code; must not throw. */
  explain?(end: RunEnd): ToolcribError | undefined;
  /** How its end is asked for, before signals to the process group; `pid` is the launcher's. Never rejects. */
  stop?(pid: number): Promise<void>;
  /** After the process has gone, whatever the reason. Never rejects. */
  cleanUp?(): Promise<void>;
}

/** How one run ended by itself. */
export interface RunEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its stderr. */
  readonly stderr: string;
  /** Whether it ever sent a message. */
  readonly heard: boolean;
}

/** A `sandbox` entry, complete and with absolute paths. */
export interface SandboxSettings {
  readonly kind: SandboxKind;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** The only folder whose files a `cwd` lets in, null for none; any where the operator described the server. */
  readonly ownFolder?: string | null;
  readonly network: "none" | "host";
  /** Bytes. */
  readonly memory?: number;
  readonly cpus?: number;
  readonly pids?: number;
  /** Milliseconds that one run may last. */
  readonly timeout?: number;
  readonly image?: string;
  readonly port?: number;
  readonly path?: string;
}

export interface SandboxDeps {
  /** Toolcrib's own folder, which no sandbox may see: it holds secrets. */
  readonly home: string;
  /** That of the user, if the hub has another one, as it has for a trial of servers. No sandbox may see it either. */
  readonly userHome?: string;
  /** The hub's environment, in which programs are looked up. */
  readonly env: NodeJS.ProcessEnv;
  readonly containers: ContainersConfig;
  warn(message: string): void;
}

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** @param env Expands `~` and `${NAME}` in paths. */
export function readSandbox(entry: SandboxEntry, baseDir: string, env: NodeJS.ProcessEnv): SandboxSettings {
  if (typeof entry === "string") return { kind: entry, read: [], write: [], network: "none" };
  const { kind: _kind, read, write, memory, network, ...rest } = entry;
  const absolute = (path: string): string => resolve(baseDir, expandHome(withVariables(path, env), env));
  return {
    ...rest,
    kind: sandboxKindOf(entry),
    read: [...new Set((read ?? []).map(absolute))],
    write: [...new Set((write ?? []).map(absolute))],
    network,
    memory: memory === undefined ? undefined : bytesOf(memory),
  };
}

/** `512m`, `512MB` and `512MiB` are all 512 times 1024 times 1024. */
export function bytesOf(size: number | string): number {
  if (typeof size === "number") return size;
  const [, digits = "0", unit = ""] = /^(\d+)([kmgt]?)/i.exec(size) ?? [];
  return Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
}

/** Expands variables. Secrets are not allowed in a path. */
function withVariables(path: string, env: NodeJS.ProcessEnv): string {
  const value = (part: ReturnType<typeof parseReferences>[number]): string => {
    if (typeof part === "string") return part;
    const found = part.kind === "variable" ? env[part.name] || part.fallback : undefined;
    if (found !== undefined) return found;
    const why = part.kind === "variable" ? "that variable is not set" : "it cannot contain secrets";
    const hint = "Set it for the hub, write ${NAME:-default}, or write the path itself.";
    throw notSent("invalid_config", `A path of \`sandbox\` contains ${part.text}: ${why}.`, hint);
  };
  return parseReferences(path).map(value).join("");
}

function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  if (path !== "~" && !path.startsWith("~/")) return path;
  return join(env["HOME"] || env["USERPROFILE"] || homedir(), path.slice(1));
}

/**
 * A NUL ends a text for the system, and for bubblewrap one option: what follows it would be read as options of their
 * own. Configs cannot contain one, but the value of a reference can. Throws without the text.
 */
export function refuseNul({
  command,
  args,
  env,
  cwd,
}: Omit<SandboxedProgram, "serverId" | "baseDir" | "inherited">): void {
  const places: (readonly [string, string])[] = [
    ["`command`", command],
    ["`cwd`", cwd ?? ""],
    ...args.map((text, index) => [`\`args[${index}]\``, text] as const),
    ...Object.keys(env).map((name) => ["a name in `env`", name] as const),
    ...Object.entries(env).map(([name, value]) => [`\`env.${name}\``, value] as const),
  ];
  const found = places.find(([, text]) => text.includes("\0"));
  if (found === undefined) return;
  const hint = "No program can receive one. Correct the text, or the secret that it refers to.";
  throw notSent("invalid_config", `${found[0]} contains a NUL character.`, hint);
}
