/** One child and everything it started: on POSIX its process group, on Windows its process tree. */
import { spawn } from "node:child_process";
import { type ProcessTable, systemProcessTable } from "../orphans/process-table.ts";

const table: ProcessTable | null = systemProcessTable();

/** Whether anyone in the group was there to get the signal. Signal 0 only asks. */
export function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  if (process.platform === "win32") return signalTree(pgid, signal);
  try {
    process.kill(-pgid, signal);
    return true;
  } catch (error) {
    // EPERM: someone is there who changed user; we cannot end it, and it must not be taken for gone.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The system counts zombies as members; where nobody collects them (a container without an init), they stay for ever. */
export function groupLives(pgid: number): boolean {
  if (!signalGroup(pgid, 0)) return false;
  return table === null || process.platform !== "linux" || table.group(pgid).length > 0;
}

function signalTree(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    if (signal === 0) return process.kill(pid, 0);
    // Windows has no SIGTERM: a program without a window can only be ended outright.
    spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on("error", () => {});
    return true;
  } catch {
    return false;
  }
}
