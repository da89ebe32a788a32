/** The end of a child and of everything in its group: asked first, told next, killed last. */
import type { ChildProcess } from "node:child_process";
import { groupLives, signalGroup } from "./process-group.ts";

export interface EndOptions {
  /** From the first request to end until SIGKILL. */
  readonly graceMs: number;
  /** Of that, how long a closed stdin may take to be noticed before SIGTERM; 0 for a child that is beyond asking. */
  readonly stdinMs: number;
}

const POLL_MS = 15;
/** SIGKILL needs no cooperation; only a process stuck inside the kernel takes longer. */
const KILL_WAIT_MS = 2000;

/** Resolves with whether the whole group is gone. Real time, not a Clock: the child lives in real time. */
export async function endChild(child: ChildProcess, options: EndOptions): Promise<boolean> {
  const pgid = child.pid;
  if (pgid === undefined) return true;
  const hasExited = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const isGone = (): boolean => hasExited() && !groupLives(pgid);

  // Once the group was seen empty its id may pass to a stranger: no signal is sent after that.
  if (isGone()) return true;
  child.stdin?.end();
  if (options.stdinMs > 0 && (await waitUntil(isGone, options.stdinMs, child))) return true;
  signalGroup(pgid, "SIGTERM");
  if (await waitUntil(isGone, options.graceMs - options.stdinMs, child)) return true;
  signalGroup(pgid, "SIGKILL");
  return waitUntil(isGone, KILL_WAIT_MS, child);
}

/** Its timers keep the process alive on purpose: `await close()` must come back. */
function waitUntil(isTrue: () => boolean, ms: number, child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (outcome: boolean): void => {
      clearInterval(poll);
      clearTimeout(limit);
      child.off("exit", check);
      resolve(outcome);
    };
    const check = (): void => {
      if (isTrue()) finish(true);
    };
    const poll = setInterval(check, POLL_MS);
    const limit = setTimeout(() => finish(isTrue()), Math.max(ms, 0));
    child.on("exit", check);
  });
}
