/** Facts about processes, read from the system and not from our own records. */
import { readdirSync, readFileSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // A zombie still takes signals, but it is gone for every purpose here.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

/** Pids whose command line holds the text. Linux only, as the tests that use it are. */
export function pidsWith(text: string): number[] {
  const found: number[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      if (readFileSync(`/proc/${entry}/cmdline`, "utf8").includes(text) && isAlive(Number(entry))) found.push(Number(entry));
    } catch {
      // Gone between the listing and the reading.
    }
  }
  return found;
}
