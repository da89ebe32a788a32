/** Faults of every kind in an order that only the seed knows, for minutes, under load. `npm run test:cluster` runs it. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Random } from "../../bench/soak/random.ts";
import { isFull } from "./full.ts";
import { countingServer, overlaps } from "./rig/counting.ts";
import { Load, verdictOn } from "./rig/load.ts";
import type { NodeProcess } from "./rig/node-process.ts";
import { missingForCluster, type Rig, startRig } from "./rig/rig.ts";
import { isMissing } from "../support/skips.ts";

const missing = isFull ? missingForCluster() : "only with `npm run test:cluster`, for it takes minutes";
isMissing("random faults of a cluster", missing);

const SECONDS = Number(process.env["CLUSTER_SECONDS"] ?? 120);
const SEED = Number(process.env["CLUSTER_SEED"] ?? Date.now() % 1_000_000);

/** What happens to one node, or to all; each ends with everything as it was. */
const FAULTS = {
  kill: async ({ node, random }) => {
    await node.kill();
    await sleep(random.below(7000));
    await node.start();
  },
  stop: async ({ node }) => node.restart(),
  freeze: async ({ node, random, frozen }) => {
    for (const pid of node.children()) frozen.add(pid);
    node.pause({ servers: random.next() < 0.5 });
    await sleep(random.below(9000));
    node.resume();
  },
  "cut NATS": async ({ rig, node, random }) => {
    rig.setLinks(node, random.next() < 0.5 ? "cut" : "silent", ["nats"]);
    await sleep(random.below(9000));
    rig.setLinks(node, "open", ["nats"]);
  },
  "cut PostgreSQL": async ({ rig, node, random }) => {
    rig.setLinks(node, random.next() < 0.5 ? "cut" : "silent", ["postgres"]);
    await sleep(random.below(6000));
    rig.setLinks(node, "open", ["postgres"]);
  },
  "cut both": async ({ rig, node, random }) => {
    rig.setLinks(node, random.next() < 0.5 ? "cut" : "silent");
    await sleep(random.below(9000));
    rig.setLinks(node, "open");
  },
  "NATS again": async ({ rig }) => rig.nats?.restart(),
  "NATS frozen": async ({ rig, random }) => {
    rig.nats?.freeze(true);
    await sleep(random.below(8000));
    rig.nats?.freeze(false);
  },
} as const satisfies Readonly<Record<string, (scene: Scene) => Promise<void>>>;

interface Scene {
  readonly rig: Rig;
  readonly node: NodeProcess;
  readonly random: Random;
  /** Processes of servers that were frozen, or whose node was. */
  readonly frozen: Set<number>;
}

describe.skipIf(missing !== undefined)("a cluster in bad weather", () => {
  it(
    `[scale-10b] ${SECONDS} s of random faults: nothing acknowledged is lost, nothing runs twice (seed ${SEED})`,
    { timeout: SECONDS * 1000 + 240_000 },
    async () => {
      console.log(`CLUSTER_SEED=${SEED} CLUSTER_SECONDS=${SECONDS} repeats these faults.`);
      const random = new Random(SEED);
      const frozen = new Set<number>();
      const rig = await startRig({
        servers: (dir) => ({ count: countingServer(dir, "count"), other: countingServer(dir, "other") }),
      });
      const story: string[] = [];
      try {
        await rig.whenReady();
        const load = new Load({
          url: `${rig.url}/mcp`,
          clients: { legacy: 3, modern: 5 },
          tools: ["count__append", "other__append"],
        });
        const end = Date.now() + SECONDS * 1000;
        while (Date.now() < end) {
          const fault = random.pick(Object.keys(FAULTS) as (keyof typeof FAULTS)[]) ?? "kill";
          const node = rig.node(random.below(rig.nodes.length));
          story.push(`${new Date().toISOString()} ${fault} ${node.name}`);
          await FAULTS[fault]({ rig, node, random, frozen });
          await sleep(random.below(3000));
        }
        await rig.whenReady();
        await load.progress(5, 60_000);
        await load.stop();
        console.log(`${story.length} faults. ${load.summary()}`);
        expect(verdictOn(load, rig.dir)).toMatchObject({ lost: [], doubled: [], denied: [] });
        expect(overlaps(rig.dir).filter(({ earlier }) => !frozen.has(earlier))).toEqual([]);
      } catch (error) {
        throw new Error(`${String(error)}\n${story.join("\n")}\n${rig.logs()}`, { cause: error });
      } finally {
        expect(await rig.stop(), "processes that outlived their nodes").toEqual([]);
      }
    },
  );
});
