/** How much more memory is in use after some work than before, garbage not counted. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

export function keptBytes(work: () => void): number {
  collectGarbage();
  const before = usedBytes();
  work();
  collectGarbage();
  collectGarbage();
  return usedBytes() - before;
}

function usedBytes(): number {
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}
