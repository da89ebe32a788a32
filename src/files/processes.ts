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

function isZombie(pid: number): boolean {
  return statOf(pid)?.[0] === "Z";
}

/**
 * Names a running process for good: its id is used again, after a restart of the machine within minutes. Undefined where the system does
 * not say, or no such process runs.
 */
export function processStart(pid: number): string | undefined {
  const ticks = statOf(pid)?.[19];
  if (ticks === undefined) return undefined;
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()} ${ticks}`;
  } catch {
    return ticks;
  }
}

/** The fields from the state on. Only Linux has them without running another program. */
function statOf(pid: number): string[] | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the program's name, which may contain anything.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
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
