/** Where bubblewrap is and what it can do. */
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { promisify } from "node:util";
import { ToolcribError } from "../../model/errors.ts";
import { OTHER_CAGE } from "./bubblewrap-failures.ts";
import { findProgram } from "./find-program.ts";

export interface Bubblewrap {
  /** Absolute. */
  readonly program: string;
  /** Whether the private folders can be given a size: from 0.7 on, and not where it is setuid root. */
  readonly sizes: boolean;
}

const ASK_MS = 5000;
const SETUID = 0o4000;
const run = promisify(execFile);

/** Rejects with the reason and the alternative where it cannot be used. Asked anew each time, as that takes 2 ms. */
export async function findBubblewrap(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Promise<Bubblewrap> {
  if (platform !== "linux") throw missing(`bubblewrap is only there on Linux, and this is ${platform}`, OTHER_CAGE);
  const program = findProgram("bwrap", env["PATH"]);
  if (program === undefined) {
    throw missing(
      "bubblewrap is not installed",
      `Run apt install bubblewrap; \`bwrap\` must be in the hub's PATH. ${OTHER_CAGE}`,
    );
  }
  const help = await helpOf(program);
  if (!help.includes("--perms"))
    throw missing(`${program} is too old`, `Version 0.5 or later is needed. ${OTHER_CAGE}`);
  return { program, sizes: help.includes("--size") && (statSync(program).mode & SETUID) === 0 };
}

async function helpOf(program: string): Promise<string> {
  try {
    const { stdout, stderr } = await run(program, ["--help"], { env: {}, cwd: "/", timeout: ASK_MS });
    return stdout + stderr;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw missing(`${program} cannot be run: ${reason}`, OTHER_CAGE);
  }
}

function missing(message: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `The sandbox cannot be made: ${message}.`, {
    hint,
    details: { sent: false },
  });
}
