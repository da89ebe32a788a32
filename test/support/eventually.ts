/** Waits for something that another process, or a later turn of the event loop, brings about. */
import { setTimeout as delay } from "node:timers/promises";

const LOOK_AGAIN_MS = 5;
/** Far above what any wait needs, so that a slow machine fails no test, and a loop does not outlive its test for long. */
const MAX_WAIT_MS = 60_000;

/** The first value of `find` that is neither undefined nor false. A wait in vain ends with an error that names `what`. */
export async function eventually<Found>(
  find: () => Found | undefined | false | Promise<Found | undefined | false>,
  what: string = find.toString(),
): Promise<Found> {
  const end = performance.now() + MAX_WAIT_MS;
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`Waited ${MAX_WAIT_MS} ms in vain for: ${what}`);
    await delay(LOOK_AGAIN_MS);
  }
}
