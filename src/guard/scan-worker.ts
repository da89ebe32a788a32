/** A thread that reads large texts. */
import { getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { readParts, type SharedText } from "../base/shared-text.ts";
import { offerFunctions } from "../base/thread-calls.ts";
import { type ScanOptions, scanSlice, slicesOf } from "./scan-text.ts";
import { scanTexts } from "./scan-texts.ts";

/** On Linux it is that of this thread alone: where cores are few, small calls go first. Added, because few may have less than they had. */
const LATER = 5;

if (parentPort !== null) {
  if (process.platform === "linux") setPriority(Math.min(getPriority() + LATER, 19));
  offerFunctions(parentPort, {
    scan: scanTexts,
    shared: (text: SharedText, options: ScanOptions) =>
      readParts(text, slicesOf(text), (slice, from) => scanSlice(slice, from, options)),
  });
}
