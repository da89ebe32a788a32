/** What a tool takes in the heap: a hub may have ten thousand, and V8 marks all of them in each full collection. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listBytes } from "../../src/doors/mcp/shared-requests.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const TOOLS = 4000;
/** A definition as the server sends it has 380 bytes, and takes 700 when it is parsed. */
const MAX_BYTES = 2200;
/** Pins are written and names compared some time after a list has come in. */
const SETTLED_MS = 2500;

const SERVER = `
import { createInterface } from "node:readline";
const properties = {
  path: { type: "string", description: "The file, below the folder of the project." },
  lines: { type: "integer", description: "How many lines at most." },
  kind: { type: "string", enum: ["text", "bytes"] },
};
const tools = Array.from({ length: Number(process.argv[2]) }, (_, n) => ({
  name: "read_part_" + n,
  description: "Reads part " + n + " of a file, as much of it as is asked for, and says where the next one begins.",
  inputSchema: { type: "object", properties, required: ["path"] },
}));
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } });
  } else if (method === "tools/list") answer(id, { tools });
  else if (id !== undefined) answer(id, {});
}
`;

let dir: string;
let hub: Hub | undefined;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-memory-"));
  writeFileSync(join(dir, "server.mjs"), SERVER);
});

afterEach(async () => {
  await hub?.close();
  hub = undefined;
  rmSync(dir, { recursive: true, force: true });
});

/** A hub with so many tools, all of which a client has listed. @returns Bytes of the heap that are in use. */
async function openHub(tools: number): Promise<() => number> {
  const place = join(dir, String(tools));
  mkdirSync(place, { recursive: true });
  const entry = { command: process.execPath, args: [join(dir, "server.mjs"), String(tools)] };
  writeFileSync(join(place, "toolcrib.json"), JSON.stringify({ mcpServers: { files: entry } }));
  await hub?.close();
  hub = await createHub(join(place, "toolcrib.json"), { home: join(place, "home") });
  const { session } = hub;
  await expect.poll(() => hub?.view(session).tools.length, { timeout: 20_000 }).toBe(tools);
  const list = listBytes(hub.view(session).tools);
  return () => {
    collect();
    return list.length > 0 ? process.memoryUsage().heapUsed : Number.NaN;
  };
}

it("[speed-06b] a tool of a server takes little more than its definition", { timeout: 60_000 }, async () => {
  const [, measure] = [await openHub(1), await openHub(1)];
  await sleep(SETTLED_MS);
  const few = measure();
  const used = await openHub(TOOLS);
  await sleep(SETTLED_MS);
  // What was written and read meanwhile goes sooner or later; what is kept stays.
  await expect.poll(() => (used() - few) / TOOLS, { interval: 300, timeout: 20_000 }).toBeLessThan(MAX_BYTES);
});
