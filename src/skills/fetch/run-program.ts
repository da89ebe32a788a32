/** Runs git or npm to its end: never a shell, bounded in time and output, ended when the signal aborts. */
import { execFile } from "node:child_process";
import { ToolcribError } from "../../model/errors.ts";
import type { Complaint } from "./complaint.ts";
import { printable } from "./printable.ts";

export interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** What was to be done, for messages: `git could not fetch https://…`. */
  readonly task: string;
  /** Takes out of the program's complaint what must not be shown. */
  readonly mask?: (text: string) => string;
  /** Finds the cause in what the program printed on stderr. */
  readonly explain: (stderr: string) => Complaint;
}

const LARGEST_OUTPUT = 4 * 1024 * 1024;

/** Resolves with stdout. */
export function runProgram(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { cwd, env, timeoutMs, signal, task, explain, mask = (text) => text } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(cancelled(task));
    const settings = { cwd, env, timeout: timeoutMs, maxBuffer: LARGEST_OUTPUT, windowsHide: true } as const;
    const child = execFile(program, args, { ...settings, encoding: "utf8" }, (error, stdout, stderr) => {
      signal?.removeEventListener("abort", stop);
      if (error === null) return resolve(stdout);
      if (signal?.aborted === true) return reject(cancelled(task));
      if (error.code === "ENOENT") return reject(missing(program));
      if (error.killed === true && error.signal === "SIGTERM") {
        return reject(tookTooLong(task, timeoutMs));
      }
      const { code, reason, hint } = explain(mask(stderr));
      const shown = printable(reason) || `exit code ${String(error.code)}`;
      reject(new ToolcribError(code, `${task} failed: ${shown}`, { hint }));
    });
    const stop = (): void => {
      // A program that git started may live on and keep these open; nobody waits for it.
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.kill("SIGTERM");
    };
    signal?.addEventListener("abort", stop, { once: true });
    // Whoever would ask something on stdin learns at once that nobody is there.
    child.stdin?.on("error", () => {});
    child.stdin?.end();
  });
}

function tookTooLong(task: string, timeoutMs: number): ToolcribError {
  return new ToolcribError("timeout", `${task} took longer than ${timeoutMs / 1000} seconds.`, {
    hint: "Try again, or download it and install it from its folder.",
  });
}

function cancelled(task: string): ToolcribError {
  return new ToolcribError("cancelled", `${task} was interrupted.`);
}

function missing(program: string): ToolcribError {
  return new ToolcribError("not_found", `The program ${program} was not found.`, {
    hint: `Install ${program}, or download the skill and install it from its folder.`,
  });
}
