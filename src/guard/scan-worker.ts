/** A thread that reads large texts. */
import { getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { offerFunctions } from "../base/thread-calls.ts";
import { scanPiece, scanTexts } from "./scan-texts.ts";

/** On Linux it is that of this thread alone: where cores are few, small calls go first. Added, because few may have less than they had. */
const LATER = 5;

if (parentPort !== null) {
  if (process.platform === "linux") setPriority(Math.min(getPriority() + LATER, 19));
  offerFunctions(parentPort, { scan: scanTexts, piece: scanPiece });
}
