/** How long nobody answers for a server when its node is killed, frozen, cut off, or ends in order. */
import { countingServer } from "../../test/cluster/rig/counting.ts";
import { Load, verdictOn } from "../../test/cluster/rig/load.ts";
import type { NodeProcess } from "../../test/cluster/rig/node-process.ts";
import { ownerOf } from "../../test/cluster/rig/owner.ts";
import { type Rig, startRig } from "../../test/cluster/rig/rig.ts";
import { type Spread, spreadOf } from "../stats.ts";

export const FAULTS = ["stop", "kill", "pause", "cut"] as const;
export type Fault = (typeof FAULTS)[number];

export interface FailoverSize {
  readonly times: number;
  readonly leaseMs: number;
  readonly faults: readonly Fault[];
}

export interface FailoverRow {
  readonly fault: Fault;
  /** Until a call that was begun after the fault was answered by a new process. */
  readonly ms: Spread;
  readonly worstMs: number;
  /** Calls that clients saw fail, in all rounds. */
  readonly failed: number;
  readonly answered: number;
  readonly lost: number;
  readonly doubled: number;
}

const LIMIT_MS = 60_000;
const SERVER = "--name=count";

export async function measureFailover({ times, leaseMs, faults }: FailoverSize): Promise<readonly FailoverRow[]> {
  const rig = await startRig({
    nodes: 3,
    cluster: { leaseMs },
    servers: (dir) => ({ count: countingServer(dir, "count") }),
  });
  try {
    const rows: FailoverRow[] = [];
    for (const fault of faults) rows.push(await measureFault(rig, fault, times));
    return rows;
  } finally {
    await rig.stop();
  }
}

async function measureFault(rig: Rig, fault: Fault, times: number): Promise<FailoverRow> {
  const took: number[] = [];
  let [failed, answered, lost, doubled] = [0, 0, 0, 0];
  for (let time = 0; time < times; time += 1) {
    const load = new Load({
      url: `${rig.url}/mcp`,
      clients: { legacy: 0, modern: 4 },
      tools: ["count__append"],
      name: `${fault}${time}`,
    });
    await load.progress(5, LIMIT_MS);
    const { node, pid } = ownerOf(rig, SERVER);
    const untilAnswered = load.untilAnswered(LIMIT_MS, (attempt) => attempt.pid !== pid);
    const undo = strike(rig, node, fault);
    took.push(await untilAnswered);
    await (
      await undo
    )();
    await load.progress(5, LIMIT_MS);
    await load.stop();
    await rig.whenReady();
    const verdict = verdictOn(load, rig.dir);
    failed += load.failed.length;
    answered += verdict.answered;
    lost += verdict.lost.length;
    doubled += verdict.doubled.length;
  }
  return { fault, ms: spreadOf(took), worstMs: Math.max(...took), failed, answered, lost, doubled };
}

/** Does it, and gives what undoes it. */
async function strike(rig: Rig, node: NodeProcess, fault: Fault): Promise<() => Promise<void>> {
  switch (fault) {
    case "stop": {
      const stopped = node.stop();
      return () => stopped.then(() => node.start());
    }
    case "kill":
      await node.kill();
      return () => node.start();
    case "pause":
      node.pause({ servers: true });
      return async () => node.resume();
    case "cut":
      rig.setLinks(node, "silent", ["nats"]);
      return async () => rig.setLinks(node, "open", ["nats"]);
  }
}
