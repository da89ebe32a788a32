/**
 * Work that a stranger's schema sets is given up when it takes too long, since the whole hub waits for it: patterns can be
 * made to take forever, and a harmless one on a long text or on many is slow as well.
 */
import { createContext, type Context, Script } from "node:vm";

/** In one turn of the event loop, all of it together. What takes longer is done by a worker. */
const MAX_MS_PER_TURN = 50;

let spentMs = 0;
let isCounting = false;
let room: { readonly context: Context; readonly script: Script } | undefined;

/** The work was stopped half-way. */
export class TookTooLong extends Error {
  override name = "TookTooLong";
}

/** Whether there is time left in this turn. */
export function hasTime(): boolean {
  return timeLeft() >= 1;
}

/** Costs a tenth of a millisecond. Throws `TookTooLong` if the time is up. */
export function inTime<T>(work: () => T): T {
  if (!isCounting) {
    isCounting = true;
    setImmediate(() => {
      isCounting = false;
      spentMs = 0;
    });
  }
  const left = timeLeft();
  if (left < 1) throw new TookTooLong();
  const began = performance.now();
  try {
    return within(left, work);
  } finally {
    spentMs += performance.now() - began;
  }
}

function timeLeft(): number {
  return Math.floor(MAX_MS_PER_TURN - spentMs);
}

/** Only a script can be interrupted, with everything that it calls. */
function within<T>(timeout: number, work: () => T): T {
  room ??= { context: createContext({}), script: new Script("work()") };
  const { context, script } = room;
  context["work"] = work;
  try {
    // The script returns what `work` does.
    return script.runInContext(context, { timeout }) as T;
  } catch (error) {
    // It is not an Error of this realm.
    const isLate = typeof error === "object" && error !== null && "code" in error;
    throw isLate && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? new TookTooLong() : error;
  } finally {
    context["work"] = undefined;
  }
}
