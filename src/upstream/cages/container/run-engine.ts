/** Runs an engine to its end: never a shell, bounded in time and output, ended when the signal aborts. */
import { execFile } from "node:child_process";
import { ToolcribError } from "../../../model/errors.ts";

export interface ProgramRun {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ProgramEnd {
  /** -1 if a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const LARGEST_OUTPUT = 8 * 1024 * 1024;

/** Any exit code is an answer. Rejects if it could not be started, took too long or was called off. */
export function runToEnd(program: string, args: readonly string[], options: ProgramRun): Promise<ProgramEnd> {
  const { env, timeoutMs, cwd, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(calledOff(program));
    const settings = { env, cwd, timeout: timeoutMs, maxBuffer: LARGEST_OUTPUT, windowsHide: true } as const;
    const child = execFile(program, args, { ...settings, encoding: "utf8" }, (error, stdout, stderr) => {
      signal?.removeEventListener("abort", stop);
      if (error === null) return resolve({ code: 0, stdout, stderr });
      if (signal?.aborted === true) return reject(calledOff(program));
      if (typeof error.code === "number") return resolve({ code: error.code, stdout, stderr });
      if (error.killed === true && error.signal === "SIGTERM") return reject(tookTooLong(program, args, timeoutMs));
      if (error.code === undefined || error.code === null) return resolve({ code: -1, stdout, stderr });
      reject(notStarted(program, error));
    });
    const stop = (): void => {
      child.kill("SIGTERM");
      // What it started may hold these open; nobody waits for it.
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    signal?.addEventListener("abort", stop, { once: true });
    child.stdin?.on("error", () => {});
    child.stdin?.end();
  });
}

/** The end of what a program said, in a form for messages: addresses without the credentials in them. */
export function lastWords(text: string, lines = 6): string {
  const kept = text
    .split("\n")
    .map((line) => line.trim().replaceAll(/\/\/[^/@\s]+@/g, "//"))
    .filter((line) => line !== "");
  return kept.slice(-lines).join("\n").slice(-2000);
}

export function calledOff(program: string): ToolcribError {
  return new ToolcribError("cancelled", `${program} was interrupted`, { details: { sent: false } });
}

export function tookTooLong(program: string, args: readonly string[], timeoutMs: number): ToolcribError {
  const text = `${program} ${args[0] ?? ""} took longer than ${Math.round(timeoutMs / 1000)} seconds`;
  return new ToolcribError("timeout", text, { details: { sent: false } });
}

export function notStarted(program: string, error: Error & { code?: unknown }): ToolcribError {
  const missing = error.code === "ENOENT";
  return new ToolcribError(
    "server_unavailable",
    missing ? `command not found: ${program}` : `could not start ${program}: ${error.message}`,
    { details: { sent: false, reason: error.code } },
  );
}
