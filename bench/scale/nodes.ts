/** One node against three: how many calls a second they take, each node with the same small share of a processor. */
import { startRig, type Rig } from "../../test/cluster/rig/rig.ts";
import type { McpClient } from "../client/protocol.ts";
import { cpuMsOf } from "../processes.ts";
import { median, pairedRatio, type Spread } from "../stats.ts";
import { startUpstreams } from "../measures/sustained.ts";
import { ECHO_STDIO } from "../subjects/subject.ts";
import { callsPerSecond, clientsOf } from "./burst.ts";
import { type CpuShare, cpuShare } from "./cpu-share.ts";

export interface NodesSize {
  readonly rounds: number;
  readonly burstMs: number;
  readonly inFlight: number;
}

export interface NodesRow {
  readonly what: string;
  readonly upstream: "stdio" | "http";
  readonly nodes: number;
  readonly callsPerSecond: number;
  /** To one node that stands alone, in the same rounds. */
  readonly ratio: Spread;
  /** Milliseconds of a processor, of all nodes together, for one call. */
  readonly cpuMsPerCall: number;
}

export interface NodesFigures {
  /** Of one processor, for each node; undefined where shares cannot be given: then the machine limits, not the nodes. */
  readonly share: number | undefined;
  readonly rows: readonly NodesRow[];
}

const SHARE = 0.2;
const TOOLS = { stdio: "pipe__echo", http: "web__echo" } as const;

interface Entrant {
  readonly what: string;
  readonly rig: Rig;
  readonly clients: readonly McpClient[];
}

export async function measureNodes({ rounds, burstMs, inFlight }: NodesSize): Promise<NodesFigures> {
  const web = await startUpstreams({ upstream: "http", servers: 1, tools: 1 });
  const entrants: Entrant[] = [];
  const shares: CpuShare[] = [];
  try {
    const open = async (what: string, nodes: number, cluster: false | undefined): Promise<void> => {
      const rig = await startRig({
        nodes,
        ...(cluster === false ? { cluster } : {}),
        servers: (dir) => ({
          pipe: { command: process.execPath, args: [ECHO_STDIO, `--name=${dir}`], replicas: nodes },
          web: { url: web.urls[0] ?? "" },
        }),
      });
      const clients = rig.nodes.map(({ url }) => url);
      entrants.push({ what, rig, clients: await clientsOf(clients, Object.values(TOOLS)) });
    };
    await open("one node, alone", 1, false);
    await open("one node of a cluster", 1, undefined);
    await open("three nodes", 3, undefined);
    const limited = giveShares(entrants, shares);
    const rows: NodesRow[] = [];
    for (const upstream of ["stdio", "http"] as const) {
      rows.push(...(await rowsOf(entrants, upstream, { rounds, burstMs, inFlight })));
    }
    return { share: limited ? SHARE : undefined, rows };
  } finally {
    for (const { rig, clients } of entrants) {
      await Promise.all(clients.map((client) => client.close().catch(() => {})));
      await rig.stop();
    }
    for (const share of shares) share.remove();
    await web.stop();
  }
}

/** False if a node could not be given one. */
function giveShares(entrants: readonly Entrant[], shares: CpuShare[]): boolean {
  for (const node of entrants.flatMap(({ rig }) => rig.nodes)) {
    const share = cpuShare(`toolcrib-bench-${process.pid}-${shares.length}`, SHARE);
    if (share === undefined) return false;
    shares.push(share);
    share.add(node.pid);
  }
  return true;
}

async function rowsOf(
  entrants: readonly Entrant[],
  upstream: keyof typeof TOOLS,
  { rounds, burstMs, inFlight }: NodesSize,
): Promise<NodesRow[]> {
  const rates = new Map<Entrant, number[]>(entrants.map((entrant) => [entrant, []]));
  const cpu = new Map<Entrant, number[]>(entrants.map((entrant) => [entrant, []]));
  // The first round warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const entrant of entrants) {
      const before = cpuOf(entrant);
      const rate = await callsPerSecond(entrant.clients, TOOLS[upstream], { inFlight, ms: burstMs });
      if (round < 0) continue;
      rates.get(entrant)?.push(rate);
      cpu.get(entrant)?.push((cpuOf(entrant) - before) / (rate * (burstMs / 1000)));
    }
  }
  const base = rates.values().next().value ?? [];
  return entrants.map((entrant) => ({
    what: entrant.what,
    upstream,
    nodes: entrant.rig.nodes.length,
    callsPerSecond: median(rates.get(entrant) ?? []),
    ratio: pairedRatio(rates.get(entrant) ?? [], base),
    cpuMsPerCall: median(cpu.get(entrant) ?? []),
  }));
}

function cpuOf({ rig }: Entrant): number {
  return rig.nodes.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
}
