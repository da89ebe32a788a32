/** Where servers run after nodes have started together, and after each was restarted. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMissing } from "../support/skips.ts";
import { countingServer, overlaps } from "./rig/counting.ts";
import { missingForCluster, type Rig, startRig } from "./rig/rig.ts";

const missing = missingForCluster();
isMissing("where servers of a cluster run", missing);

const NAMES = ["one", "two", "three", "four", "five", "six"];

describe.skipIf(missing !== undefined)("servers of three nodes", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({
      cluster: { leaseMs: 2000 },
      servers: (dir) => Object.fromEntries(NAMES.map((name) => [name, countingServer(dir, name)])),
    });
    await rig.whenReady();
  }, 120_000);
  afterAll(async () => {
    expect(await rig.stop(), "processes that outlived their nodes").toEqual([]);
  }, 60_000);

  const perNode = (): number[] => rig.nodes.map((node) => node.children().length);

  it("[whole-41a] [whole-41b] are spread evenly at the start, and again when each node was restarted", async () => {
    await expect.poll(perNode, { timeout: 60_000 }).toEqual([2, 2, 2]);
    for (const node of rig.nodes) {
      await node.restart();
      await rig.whenReady();
    }
    await expect.poll(perNode, { timeout: 90_000 }).toEqual([2, 2, 2]);
    expect(overlaps(rig.dir)).toEqual([]);
  }, 240_000);
});
