/** What it costs a call that its server runs on another node. */
import { ownerOf } from "../../test/cluster/rig/owner.ts";
import { startRig } from "../../test/cluster/rig/rig.ts";
import { pairedRatio, quantile, type Spread, spreadOf } from "../stats.ts";
import { ECHO_STDIO } from "../subjects/subject.ts";
import { callTimes, clientsOf } from "./burst.ts";

export interface ForwardingSize {
  readonly rounds: number;
  readonly calls: number;
}

export interface ForwardingRow {
  readonly what: string;
  readonly p50Ms: Spread;
  readonly p95Ms: Spread;
  /** To a call at the node that runs the server, in the same rounds. */
  readonly p50Ratio: Spread;
  readonly p95Ratio: Spread;
}

export async function measureForwarding({ rounds, calls }: ForwardingSize): Promise<readonly ForwardingRow[]> {
  const rig = await startRig({
    nodes: 2,
    servers: (dir) => ({ pipe: { command: process.execPath, args: [ECHO_STDIO, `--name=${dir}`] } }),
  });
  try {
    const clients = await clientsOf(
      rig.nodes.map(({ url }) => url),
      ["pipe__echo"],
    );
    const local = rig.nodes.indexOf(ownerOf(rig, `--name=${rig.dir}`).node);
    const times = rig.nodes.map((): { p50: number[]; p95: number[] } => ({ p50: [], p95: [] }));
    for (let round = -1; round < rounds; round += 1) {
      for (const [index, client] of clients.entries()) {
        const took = await callTimes(client, "pipe__echo", calls);
        if (round < 0) continue;
        times[index]?.p50.push(quantile(took, 0.5));
        times[index]?.p95.push(quantile(took, 0.95));
      }
    }
    await Promise.all(clients.map((client) => client.close()));
    const base = times[local] ?? { p50: [], p95: [] };
    return [base, times[1 - local] ?? base].map(({ p50, p95 }, index) => ({
      what: index === 0 ? "at the node of the server" : "at another node",
      p50Ms: spreadOf(p50),
      p95Ms: spreadOf(p95),
      p50Ratio: pairedRatio(p50, base.p50),
      p95Ratio: pairedRatio(p95, base.p95),
    }));
  } finally {
    await rig.stop();
  }
}
