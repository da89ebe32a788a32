/** Calls for a fixed time, many at once, spread over nodes as a balancer would; and one call after the other. */
import { connect, listTools } from "../client/connect.ts";
import type { McpClient } from "../client/protocol.ts";
import { setTimeout as sleep } from "node:timers/promises";

const TEXT = "The quick brown fox jumps over the lazy dog.";
const PATIENCE_MS = 60_000;

export async function callsPerSecond(
  clients: readonly McpClient[],
  tool: string,
  { inFlight, ms }: { readonly inFlight: number; readonly ms: number },
): Promise<number> {
  const end = performance.now() + ms;
  let done = 0;
  const worker = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < end; turn += 1) {
      const client = clients[turn % clients.length];
      if (client === undefined) return;
      await echo(client, tool);
      done += 1;
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: inFlight }, (_, index) => worker(index)));
  return done / ((performance.now() - start) / 1000);
}

/** Milliseconds of each of so many calls, one at a time. */
export async function callTimes(client: McpClient, tool: string, calls: number): Promise<number[]> {
  const times: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const start = performance.now();
    await echo(client, tool);
    times.push(performance.now() - start);
  }
  return times;
}

async function echo(client: McpClient, tool: string): Promise<void> {
  const { result, error } = await client.request("tools/call", { name: tool, arguments: { text: TEXT } });
  // What the echo server answers. It is looked at: who fails quickly must not win.
  const content = result?.["content"] as readonly { text?: string }[] | undefined;
  if (content?.[0]?.text !== TEXT) throw new Error(error?.message ?? `no echo: ${JSON.stringify(result)}`);
}

/** A client for each node, as soon as the node lists the tools. */
export function clientsOf(urls: readonly string[], tools: readonly string[]): Promise<McpClient[]> {
  return Promise.all(
    urls.map(async (url) => {
      const client = await connect({ kind: "streamable", url: `${url}/mcp`, era: "modern" });
      await untilListed(client, tools);
      return client;
    }),
  );
}

async function untilListed(client: McpClient, tools: readonly string[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const listed = await listTools(client);
    if (tools.every((tool) => listed.includes(tool))) return;
    if (performance.now() > deadline) throw new Error(`Not listed within ${PATIENCE_MS / 1000} s: ${tools.join(", ")}`);
    await sleep(20);
  }
}
