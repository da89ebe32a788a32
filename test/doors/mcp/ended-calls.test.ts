/** What a call allocates is garbage when it has ended, and young: a full collection of the heap stops all others. */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { encodeAhead, encodedAhead, keepSource } from "../../../src/base/json-bytes.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { doorOn, LegacyClient, ModernClient } from "./door-bench.ts";

setFlagsFromString("--expose-gc");
const collect: (options: { type: "minor" | "major" }) => void = runInNewContext("gc");

const WARM_UP = 1500;
const CALLS = 1500;
/** Between two young collections. */
const BATCH = 250;
/** A call allocates 20 KB and more. One that is held is at least 4 KB; what stays is the text of its records. */
const MAX_KEPT_BYTES = 2000;

it("[speed-07c] nothing of a call that has ended is left in the old generation", { retry: 2 }, async () => {
  const registry = new ToolRegistry();
  registry.register({
    name: "echo",
    description: "Gives back its text.",
    parameters: { type: "object", properties: { text: { type: "string" } } },
    execute: async (_id, { text }) => ({ content: [{ type: "text", text: String(text) }] }),
  });
  const { door } = await doorOn({}, { registry });
  const legacy = new LegacyClient(door);
  await legacy.initialize({ elicitation: {}, sampling: {} });
  const modern = new ModernClient(door);
  const params = { name: "echo", arguments: { text: "hello" } };
  for (const client of [legacy, modern]) {
    const call = (): Promise<unknown> => client.request("tools/call", params);
    await repeat(WARM_UP, call);
    collect({ type: "major" });
    const before = oldBytes();
    await repeat(CALLS, call);
    expect((oldBytes() - before) / CALLS, client.constructor.name).toBeLessThan(MAX_KEPT_BYTES);
  }
});

it("[speed-07c] neither is the JSON of a large result", { retry: 2 }, async () => {
  // Above this size V8 gives a text a page of its own.
  const json = JSON.stringify({ content: [{ type: "text", text: "A line of text.\n".repeat(20_000) }] });
  const call = async (): Promise<void> => {
    const line = `${json.slice(0, 1000)}${json.slice(1000)}`;
    const result = JSON.parse(line) as object;
    keepSource(result, line);
    encodeAhead(result);
    expect(encodedAhead(result)).toBe(line);
  };
  await repeat(BATCH, call);
  collect({ type: "major" });
  const before = oldBytes();
  await repeat(2 * BATCH, call);
  expect((oldBytes() - before) / (2 * BATCH)).toBeLessThan(MAX_KEPT_BYTES);
});

async function repeat(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let done = 1; done <= times; done++) {
    await call();
    if (done % BATCH !== 0) continue;
    // Twice, because what survives once stays young.
    collect({ type: "minor" });
    collect({ type: "minor" });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function oldBytes(): number {
  const old = getHeapSpaceStatistics().filter(
    ({ space_name: name }) => name === "old_space" || name === "large_object_space",
  );
  return old.reduce((sum, { space_used_size: used }) => sum + used, 0);
}
