import { systemErrorCode } from "../model/errors.ts";

/** Whether a process with this id exists, including those of other users. */
export function isProcessAlive(pid: number): boolean {
  // These would ask for groups of processes, our own among them.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}
