/**
 * Waiting, without holding everything else up. SQLite waits for another process by blocking this one; so it gets a
 * short time, and the rest of the waiting is done between attempts.
 */
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { isBusy } from "./sqlite-errors.ts";

export const BLOCKING_MS = 100;
const PATIENCE_MS = 20_000;
const TURN_MS = 10;

export async function patiently<Result>(step: () => Promise<Result> | Result): Promise<Result> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await delay(5 + Math.random() * 20);
  }
}

/**
 * Its statements never wait for anything, so a loop over many of them would be one turn of the event loop, in which nobody
 * else gets a word in.
 */
export function takingTurns(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < TURN_MS) return;
    await nextTurn();
    began = performance.now();
  };
}
