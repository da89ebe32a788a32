import { readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;

/**
 * Open files that whoever started the hub left to it, and that every program it starts would get as well. Node marks
 * only the lowest of them as its own. Usually there are none.
 */
export function inheritedDescriptors(): number[] {
  try {
    const open = readdirSync("/proc/self/fd").map(Number);
    return open.filter((descriptor) => descriptor > 2 && isPassedOn(descriptor));
  } catch {
    return [];
  }
}

function isPassedOn(descriptor: number): boolean {
  try {
    const [, flags = ""] = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
    return flags !== "" && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The one that the folder was read through.
    return false;
  }
}
