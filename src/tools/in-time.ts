/**
 * Work that somebody else's schema sets is given up when it takes too long, since all the hub would wait for it: patterns can
 * be made to take forever, and a harmless one on a long text or on many is slow as well.
 */
import { createContext, type Context, Script } from "node:vm";
import { ToolcribError } from "../model/errors.ts";

/** In one turn of the event loop, all of it together. */
const MOST_MS = 250;

let spentMs = 0;
let isCounting = false;
let room: { readonly context: Context; readonly script: Script } | undefined;

/** Costs a tenth of a millisecond. Throws `invalid_arguments` if the time is up. */
export function inTime(check: () => boolean): boolean {
  if (!isCounting) {
    isCounting = true;
    setImmediate(() => {
      isCounting = false;
      spentMs = 0;
    });
  }
  const left = Math.ceil(MOST_MS - spentMs);
  if (left <= 0) throw tooSlow();
  const began = performance.now();
  try {
    return within(left, check);
  } finally {
    spentMs += performance.now() - began;
  }
}

/** Only a script can be interrupted, with everything that it calls. */
function within(timeout: number, check: () => boolean): boolean {
  room ??= { context: createContext({}), script: new Script("check()") };
  const { context, script } = room;
  context["check"] = check;
  try {
    return script.runInContext(context, { timeout }) === true;
  } catch (error) {
    // It is no Error of this realm.
    const isLate = typeof error === "object" && error !== null && "code" in error;
    throw isLate && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? tooSlow() : error;
  } finally {
    context["check"] = undefined;
  }
}

function tooSlow(): ToolcribError {
  return new ToolcribError("invalid_arguments", "Checking the arguments against the schema takes too long.", {
    hint: "Send less, or mend the patterns of the schema.",
  });
}
