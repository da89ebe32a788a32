/**
 * Keeps a process small that mostly waits. V8 takes memory for the speed of what may come; a hub that has started and that
 * nobody uses needs none of it. As soon as there is load, it gets it. With ten idle servers that is 68 MB instead of 78.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const WINDOW_MS = 1000;
/** Requests in a window from which on it counts as load. Fewer cost nearly nothing, optimised or not. */
const LOAD = 100;
/** After the servers have settled, for what is written down then and for clients that waited for them. */
const TIDY_AFTER_MS = 1000;

/** `off` in a process that is not ours alone. */
let state: "off" | "lean" | "loaded" = "off";
let windowStart = 0;
let requests = 0;

/** To be called before the large modules are loaded: what they leave behind is what would make the heap grow. */
export function startLean(): void {
  state = "lean";
  // The young generation stays at its first size instead of doubling with the garbage of the start and of idle hours.
  setFlagsFromString("--semi-space-growth-factor=1");
  // Nothing of the start is worth optimising, and the first function that is brings the whole optimiser into memory: 5 MB.
  setFlagsFromString("--no-opt");
}

/** Counts what clients ask for, to see when there is load. */
export function noteRequest(): void {
  const now = Date.now();
  if (now - windowStart > WINDOW_MS) {
    windowStart = now;
    requests = 0;
  }
  requests += 1;
  if (requests >= LOAD && state === "lean") endLean();
}

/** Clears up after the start, once, as soon as there is no load: 3 MB for a pause of 50 ms. */
export function tidyUp(): void {
  if (state === "off") return;
  const wait = setTimeout(() => {
    if (requests < LOAD || Date.now() - windowStart > 2 * WINDOW_MS) collectGarbage();
    else wait.refresh();
  }, TIDY_AFTER_MS).unref();
}

function endLean(): void {
  state = "loaded";
  setFlagsFromString("--semi-space-growth-factor=2");
  setFlagsFromString("--opt");
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  // The function is there in contexts that are made from then on. It is V8's, and Node has no type for it.
  const collect = runInNewContext("gc") as (options: object) => void;
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
