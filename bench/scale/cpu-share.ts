/**
 * A share of one processor for each node. Where nodes, servers and clients have two processors between them, three nodes
 * would only show that the machine is full; with a small share each, a node is what limits, as it is on a machine of its own.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PERIOD_US = 10_000;
const ROOTS = { v1: "/sys/fs/cgroup/cpu", v2: "/sys/fs/cgroup" } as const;

export interface CpuShare {
  /** Only the process itself: what it has started before stays outside. */
  add(pid: number): void;
  remove(): void;
}

/** Undefined where control groups cannot be made. */
export function cpuShare(name: string, share: number): CpuShare | undefined {
  const version = existsSync(join(ROOTS.v1, "cpu.cfs_quota_us")) ? "v1" : "v2";
  const root = ROOTS[version];
  const group = join(root, name);
  const quota = Math.round(PERIOD_US * share);
  try {
    mkdirSync(group);
    if (version === "v1") {
      writeFileSync(join(group, "cpu.cfs_period_us"), String(PERIOD_US));
      writeFileSync(join(group, "cpu.cfs_quota_us"), String(quota));
    } else {
      // Without the controller the file is not there, and a plain file in its place would limit nothing.
      if (!existsSync(join(group, "cpu.max"))) throw new Error("no cpu controller");
      writeFileSync(join(group, "cpu.max"), `${quota} ${PERIOD_US}`);
    }
  } catch {
    removeGroup(group);
    return undefined;
  }
  return {
    add: (pid) => writeFileSync(join(group, "cgroup.procs"), String(pid)),
    remove: () => removeGroup(group),
  };
}

function removeGroup(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // It was never made, or somebody is still in it; it limits nobody who comes later.
  }
}
