/** How much more memory buffers take after some work than before, garbage not counted. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

export function keptBytes(work: () => void): number {
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  work();
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().arrayBuffers - before;
}
