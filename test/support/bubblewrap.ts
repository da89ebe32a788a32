/** What tests of bubblewrap cages share. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { makeControlGroup } from "../../src/upstream/sandbox/resource-limits.ts";

/** Why no bubblewrap cage can be made here, or undefined. */
export function missingBubblewrap(): string | undefined {
  if (process.platform !== "linux") return `this is ${process.platform}`;
  const tried = spawnSync("bwrap", ["--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "true"], {
    encoding: "utf8",
  });
  if (tried.error !== undefined) return "bwrap is not installed";
  return tried.status === 0 ? undefined : tried.stderr.trim();
}

/** Why memory, processors and processes cannot be bounded by control groups here, or undefined. */
export async function missingControlGroups(): Promise<string | undefined> {
  const group = makeControlGroup({ memory: 64 * 1024 * 1024, cpus: 1, pids: 10 });
  if (typeof group === "string") return group;
  await group.remove();
  return undefined;
}

/** All processes of the machine that have this text in their command line. */
export function pidsWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => readIfThere(`/proc/${pid}/cmdline`).includes(text))
    .map(Number);
}

function readIfThere(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}
