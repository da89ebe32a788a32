import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { systemErrorCode } from "../model/errors.ts";

/**
 * Whether a process with this id exists, including those of other users. One that has ended and was not collected by its parent
 * does not count: in a container without an init it stays for good.
 */
export function isProcessAlive(pid: number): boolean {
  // These would ask for groups of processes, our own among them.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}

/** Only Linux says so without running another program. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the program's name, which may contain anything.
    return stat.startsWith("Z", stat.lastIndexOf(")") + 2);
  } catch {
    return false;
  }
}

const INTERPRETER = /^(?:node|nodejs|bun|deno|python[\d.]*|ruby)$/;

/**
 * What a process runs, for people: `claude`, or `node gemini.js`. Linux only. Not the name of its first thread, which is
 * "MainThread" in every Node program.
 */
export function programName(pid: number): string | undefined {
  try {
    const [program = "", script = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const name = basename(program);
    if (name === "") return undefined;
    return INTERPRETER.test(name) && /^[^-]/.test(script) ? `${name} ${basename(script)}` : name;
  } catch {
    return undefined;
  }
}
