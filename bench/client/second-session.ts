/**
 * A session beside the one that is measured, in a thread, so that what it reads does not keep the load client busy: calls for large
 * results, one after another, until it is told to stop.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { Running } from "../subjects/subject.ts";
import { connect, type Endpoint, listTools } from "./connect.ts";

interface Given {
  readonly endpoint: Endpoint;
  /** What the name of the tool has in it. */
  readonly tool: string;
  readonly arguments: { readonly bytes: number; readonly kind: string };
}

const RETRY_MS = 20;

/** Resolves when it has got its first result. The function that it returns stops it, and rejects if it has failed. */
export async function startSecondSession(
  { endpoint, second }: Running,
  args: Given["arguments"],
): Promise<() => Promise<void>> {
  const given: Given = {
    endpoint: second ?? endpoint,
    tool: second === undefined ? "second" : "echo",
    arguments: args,
  };
  const thread = new Worker(new URL(import.meta.url), { workerData: given });
  const failed = new Promise<never>((_, reject) => thread.once("error", reject));
  failed.catch(() => {});
  const next = (): Promise<unknown> =>
    Promise.race([failed, new Promise((resolve) => thread.once("message", resolve))]);
  await next();
  return async () => {
    thread.postMessage("stop", []);
    await next();
  };
}

if (!isMainThread && parentPort !== null) {
  // What startSecondSession has sent.
  const { endpoint, tool, arguments: args } = workerData as Given;
  const client = await connect(endpoint);
  let name: string | undefined;
  while (name === undefined) {
    name = (await listTools(client)).find((each) => each.includes(tool));
    if (name === undefined) await sleep(RETRY_MS);
  }
  const stopping = new AbortController();
  parentPort.once("message", () => stopping.abort());
  for (let isFirst = true; !stopping.signal.aborted; isFirst = false) {
    const { result, error } = await client.request("tools/call", { name, arguments: args });
    // What the echo server answers.
    const text = (result?.["content"] as readonly { text?: string }[] | undefined)?.[0]?.text;
    if (text?.length !== args.bytes) throw new Error(error?.message ?? "not the text that was asked for");
    if (isFirst) parentPort.postMessage("begun", []);
  }
  await client.close();
  parentPort.postMessage("ended", []);
}
