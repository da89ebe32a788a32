/** How large a catalog one node carries: many servers that are processes, and many more tools than any has. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Rig, startRig } from "../../test/cluster/rig/rig.ts";
import { listTools } from "../client/connect.ts";
import { StreamableClient } from "../client/streamable.ts";
import { startUpstreams } from "../measures/sustained.ts";
import { memoryOf } from "../processes.ts";
import { quantile } from "../stats.ts";
import { ECHO_STDIO } from "../subjects/subject.ts";
import { callTimes } from "./burst.ts";

const PATIENCE_MS = 600_000;

export interface ServersSize {
  readonly servers: number;
  /** Of each server. */
  readonly tools: number;
  readonly rounds: number;
}

export interface ServersFigures extends ServersSize {
  /** From the start of the node until all tools were listed. */
  readonly readySeconds: number;
  readonly nodeMb: number;
  /** Of one server, without what all share, such as Node itself; undefined where servers are no processes of their own. */
  readonly serverMb: number | undefined;
  /** All tools, page by page. */
  readonly listMs: Percentiles;
  /** With `tools.max` at 50. */
  readonly offeredMs: Percentiles;
  readonly searchMs: Percentiles;
  readonly callMs: Percentiles;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
}

/** Real processes, each with a few tools. */
export function measureProcesses(size: ServersSize): Promise<ServersFigures> {
  return measure(size, (dir) => {
    const entry = { command: process.execPath, args: [ECHO_STDIO, `--tools=${size.tools}`, `--name=${dir}`] };
    return Object.fromEntries(Array.from({ length: size.servers }, (_, index) => [`s${index}`, entry]));
  });
}

/** Servers that share one process, so that only their number and their tools count: it answers at every path. */
export async function measureCatalog(size: ServersSize): Promise<ServersFigures> {
  const fakes = await startUpstreams({ upstream: "http", servers: 1, tools: size.tools });
  try {
    const entries = Array.from({ length: size.servers }, (_, index) => [
      `s${index}`,
      { url: `${fakes.urls[0] ?? ""}/${index}` },
    ]);
    return await measure(size, () => Object.fromEntries(entries));
  } finally {
    await fakes.stop();
  }
}

async function measure(
  size: ServersSize,
  servers: (dir: string) => Record<string, { url: string } | { command: string; args: string[] }>,
): Promise<ServersFigures> {
  const begun = performance.now();
  const rig = await startRig({ nodes: 1, cluster: false, servers });
  const node = rig.node(0);
  try {
    // Asking for the tools while they come would cost more than the rest.
    await rig.whenReady(PATIENCE_MS);
    await until(rig, async () => (await toolsOf(rig)) >= size.servers * size.tools);
    const readySeconds = (performance.now() - begun) / 1000;
    const client = await StreamableClient.open({ url: `${node.url}/mcp`, era: "modern" });
    const listMs = await timed(size.rounds, () => listTools(client));
    const callMs = percentiles(await callTimes(client, `s${size.servers - 1}__echo`, size.rounds * 5));
    node.changeConfig((config) => ({ ...config, tools: { max: 50 } }));
    await until(rig, async () => (await listTools(client)).includes("toolcrib_search"));
    const search = (): Promise<unknown> =>
      client.request("tools/call", { name: "toolcrib_search", arguments: { query: "echo text in bytes" } });
    // The first search after a change builds the index.
    await search();
    const searchMs = await timed(size.rounds * 5, search);
    const offeredMs = await timed(size.rounds * 5, () => listTools(client));
    await client.close();
    const children = node.children();
    const anon = children.reduce((sum, pid) => sum + memoryOf(pid).anonMb, 0);
    return {
      ...size,
      readySeconds,
      nodeMb: memoryOf(node.pid).rssMb,
      serverMb: children.length === 0 ? undefined : anon / children.length,
      listMs,
      offeredMs,
      searchMs,
      callMs,
    };
  } finally {
    await rig.stop();
  }
}

async function toolsOf(rig: Rig): Promise<number> {
  const answer = await fetch(`${rig.node(0).url}/api/v1/mcp/tools?limit=1`);
  // What the contract says of the list.
  return ((await answer.json()) as { readonly total?: number }).total ?? 0;
}

async function until(rig: Rig, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${PATIENCE_MS / 1000} s for nothing.\n${rig.logs()}`);
    await sleep(50);
  }
}

async function timed(rounds: number, run: () => Promise<unknown>): Promise<Percentiles> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return percentiles(times);
}

function percentiles(times: readonly number[]): Percentiles {
  return { p50: quantile(times, 0.5), p95: quantile(times, 0.95) };
}
