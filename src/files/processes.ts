import { readFileSync } from "node:fs";
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
