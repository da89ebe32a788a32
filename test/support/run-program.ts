/** Runs a program to its end and gives what it wrote. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, delimiter } from "node:path";
import { text } from "node:stream/consumers";

export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** The Node that runs the tests comes first on the child's PATH. */
export async function runProgram(command: string, args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const path = [dirname(process.execPath), process.env["PATH"]].filter(Boolean).join(delimiter);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, PATH: path, ...options.env },
    stdio: "pipe",
  });
  // A program may end without having read anything.
  child.stdin.on("error", () => {}).end(options.input ?? "");
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: typeof code === "number" ? code : null, stdout, stderr };
}
