/** The end of a child and of everything in its group: asked first, told next, killed last. */
import type { ChildProcess } from "node:child_process";
import { groupLives, signalGroup } from "./process-group.ts";

export interface EndOptions {
  /** From the first request to end until SIGKILL; asked again meanwhile, because there may come to be no time left. */
  readonly graceMs: number | (() => number);
  /** Of that, how long a closed stdin may take to be noticed before SIGTERM; 0 for a child that is beyond asking. */
  readonly stdinMs: number;
  /** What is tried before SIGTERM, for a child that is only the launcher of what is to end. Never rejects. */
  readonly ask?: (() => Promise<void>) | undefined;
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
  const begun = performance.now();
  const { graceMs, stdinMs } = options;
  const left = (): number => (typeof graceMs === "number" ? graceMs : graceMs()) - (performance.now() - begun);
  const stdinLeft = (): number => Math.min(left(), stdinMs - (performance.now() - begun));
  if (stdinMs > 0 && (await waitUntil(isGone, stdinLeft, child))) return true;
  if (options.ask !== undefined) {
    let isOver = false;
    void options.ask().then(() => (isOver = true));
    await waitUntil(() => isOver || isGone(), left, child);
    if (isGone()) return true;
  }
  signalGroup(pgid, "SIGTERM");
  if (await waitUntil(isGone, left, child)) return true;
  signalGroup(pgid, "SIGKILL");
  const killed = performance.now();
  return waitUntil(isGone, () => KILL_WAIT_MS - (performance.now() - killed), child);
}

/** Its timer keeps the process alive on purpose: `await close()` must come back. */
function waitUntil(isTrue: () => boolean, leftMs: () => number, child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const check = (): void => {
      const outcome = isTrue();
      if (!outcome && leftMs() > 0) return;
      clearInterval(poll);
      child.off("exit", check);
      resolve(outcome);
    };
    const poll = setInterval(check, POLL_MS);
    child.on("exit", check);
    check();
  });
}
