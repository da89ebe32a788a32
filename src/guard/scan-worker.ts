/** A thread that reads large texts. */
import { parentPort } from "node:worker_threads";
import { ThreadCalls } from "../base/thread-calls.ts";
import { scanTexts } from "./scan-texts.ts";

if (parentPort !== null) void new ThreadCalls(parentPort, { scan: scanTexts });
