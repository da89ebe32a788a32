/** Other programs: finding them on PATH and running them to their end, never through a shell. */
import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { posix, win32 } from "node:path";

export interface ProgramOptions {
  /** The whole environment of the program. */
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly maxOutputBytes?: number;
  readonly signal?: AbortSignal;
  /** For stdin, which is empty otherwise: the hub's own stdin may carry a protocol. */
  readonly input?: string;
  /** How a timeout or an abort ends the program. */
  readonly killSignal?: "SIGTERM" | "SIGKILL";
  /** Pieces of stderr as they come, in addition to the whole at the end. */
  readonly onStderr?: ((text: string) => void) | undefined;
}

/** How a program ended. Any exit code counts as `exited`. */
export type ProgramEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "killed"; readonly signal: string; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "not_found" | "aborted" | "timed_out" | "too_much_output" }
  | { readonly kind: "not_started"; readonly error: NodeJS.ErrnoException };

const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;

/** Runs a program to its end. Never rejects: the caller turns each kind of end into its own error. */
export function runProgram(program: string, args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  const {
    env,
    cwd,
    timeoutMs = 0,
    maxOutputBytes = MAX_OUTPUT_BYTES,
    signal,
    input = "",
    killSignal = "SIGTERM",
    onStderr,
  } = options;
  if (signal?.aborted === true) return Promise.resolve({ kind: "aborted" });
  return new Promise((resolve) => {
    const settings = {
      env,
      cwd,
      timeout: timeoutMs,
      maxBuffer: maxOutputBytes,
      windowsHide: true,
      killSignal,
    } as const;
    const child = execFile(program, args, { ...settings, encoding: "utf8" }, (error, stdout, stderr) => {
      signal?.removeEventListener("abort", stop);
      if (error === null) return resolve({ kind: "exited", code: 0, stdout, stderr });
      if (signal?.aborted === true) return resolve({ kind: "aborted" });
      if (typeof error.code === "number") return resolve({ kind: "exited", code: error.code, stdout, stderr });
      if (String(error.code) === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return resolve({ kind: "too_much_output" });
      if (error.code === "ENOENT") return resolve({ kind: "not_found" });
      if (error.killed === true && timeoutMs > 0) return resolve({ kind: "timed_out" });
      if (typeof error.signal === "string") return resolve({ kind: "killed", signal: error.signal, stdout, stderr });
      resolve({ kind: "not_started", error: error as NodeJS.ErrnoException });
    });
    const stop = (): void => {
      child.kill(killSignal);
      // A grandchild may hold the pipes open; it is not waited for.
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    signal?.addEventListener("abort", stop, { once: true });
    if (onStderr !== undefined) child.stderr?.on("data", (chunk) => onStderr(String(chunk)));
    // A program that reads nothing closes its end early.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

export interface ProgramLookup {
  readonly env: NodeJS.ProcessEnv;
  readonly platform?: NodeJS.Platform;
  /** Replaced in tests of other platforms. */
  readonly isProgram?: (path: string) => boolean;
}

/**
 * The path of a program on PATH, as the platform would find it without a shell. Relative folders in PATH are skipped and a
 * name with a folder in it is never found: both would depend on the working directory.
 */
export function findProgram(
  name: string,
  { env, platform = process.platform, isProgram = isExecutable }: ProgramLookup,
): string | undefined {
  const isWindows = platform === "win32";
  const paths = isWindows ? win32 : posix;
  if (name === "" || name === "." || name === ".." || /[/\\\0:]/.test(name)) return undefined;
  const names = isWindows ? withEndings(name, environmentValue(env, "PATHEXT", platform)) : [name];
  for (const entry of (environmentValue(env, "PATH", platform) ?? "").split(paths.delimiter)) {
    // Windows allows quotes around an entry.
    const folder = isWindows ? entry.replaceAll('"', "") : entry;
    if (!paths.isAbsolute(folder)) continue;
    const found = names.map((each) => paths.join(folder, each)).find(isProgram);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A variable of an environment; empty counts as unset. Windows ignores the case of names (`Path`). */
export function environmentValue(
  env: NodeJS.ProcessEnv,
  name: string,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  const exact = Object.hasOwn(env, name) ? env[name] : undefined;
  if (exact !== undefined && exact !== "") return exact;
  if (platform !== "win32") return undefined;
  const wanted = name.toUpperCase();
  return Object.entries(env).find(([key, value]) => key.toUpperCase() === wanted && value !== "")?.[1];
}

/** On Windows the ending decides whether it is a program, and X_OK asks only whether the file exists. */
export function isExecutable(path: string): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function withEndings(name: string, given: string | undefined): string[] {
  const endings = (given || ".COM;.EXE;.BAT;.CMD").split(";").filter((ending) => ending !== "");
  const isWhole = endings.some((ending) => name.toLowerCase().endsWith(ending.toLowerCase()));
  return [...(isWhole ? [name] : []), ...endings.map((ending) => name + ending.toLowerCase())];
}
