/** A thread that reads and scans skills. */
import { parentPort } from "node:worker_threads";
import { mapLimit } from "../../base/async.ts";
import { offerFunctions } from "../../base/thread-calls.ts";
import { readOrReport } from "./inspect-skills.ts";

if (parentPort !== null) {
  offerFunctions(parentPort, { read: (dirs: readonly string[]) => mapLimit(dirs, 1, readOrReport) });
}
