/** A thread that reads and scans skills. */
import { parentPort } from "node:worker_threads";
import { mapLimit } from "../../base/async.ts";
import { readOrReport } from "./inspect-skills.ts";

const port = parentPort;
port?.on("message", async (dirs: readonly string[]) => {
  const read = await mapLimit(dirs, 1, readOrReport);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  port.postMessage(read);
});
