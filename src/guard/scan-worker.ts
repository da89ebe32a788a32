/** A thread that reads large texts. */
import { parentPort } from "node:worker_threads";
import { type ScanJob, scanTexts } from "./scan-texts.ts";

const port = parentPort;
port?.on("message", ({ texts, options }: ScanJob) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  port.postMessage(scanTexts(texts, options));
});
