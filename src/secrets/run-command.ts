/** Runs a program that prints a secret. Never a shell; bounded in output; ended when the signal aborts. */
import { execFile } from "node:child_process";
import { SecretFailure } from "./provider.ts";
import { LARGEST_SECRET } from "./secret-text.ts";

interface CommandOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly cwd?: string;
  /** Given on stdin, which is empty otherwise: our own may be a protocol's. */
  readonly input?: string;
}

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  /** The first line of stderr, for a message. */
  readonly complaint: string;
}

const LONGEST_COMPLAINT = 200;

/**
 * Resolves with undefined where there is no such program. It gets the whole environment: it is the user's own way to
 * the secret and needs its credentials from there.
 */
export function runCommand(
  program: string,
  args: readonly string[],
  { env, signal, cwd, input }: CommandOptions,
): Promise<CommandResult | undefined> {
  return new Promise((resolve, reject) => {
    const options = {
      env,
      encoding: "utf8",
      maxBuffer: 2 * LARGEST_SECRET,
      windowsHide: true,
      cwd,
    } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      signal.removeEventListener("abort", stop);
      if (error === null) return resolve({ exitCode: 0, stdout, complaint: "" });
      if (signal.aborted)
        return reject(new SecretFailure(`${program} was ended`, { passing: true, cause: signal.reason }));
      if (error.code === "ENOENT") return resolve(undefined);
      if (String(error.code) === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") {
        return reject(new SecretFailure(`is larger than ${LARGEST_SECRET / 1024} KiB`));
      }
      if (typeof error.code !== "number") {
        const how =
          error.signal === undefined || error.signal === null ? String(error.code) : `killed by ${error.signal}`;
        return reject(new SecretFailure(`${program} did not run: ${how}`));
      }
      resolve({ exitCode: error.code, stdout: "", complaint: firstLine(stderr) });
    });
    const stop = (): void => {
      child.kill("SIGKILL");
      // What the program started itself may hold the pipes open; it is not waited for.
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    // A program that reads nothing closes its end early.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input ?? "");
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

function firstLine(text: string): string {
  const line = text.split(/[\r\n]+/).find((each) => each.trim() !== "") ?? "";
  // oxlint-disable-next-line no-control-regex
  return line
    .replace(/[\u0000-\u001f\u007f]/g, " ")
    .trim()
    .slice(0, LONGEST_COMPLAINT);
}
