/** Somebody on NATS who hands a request on in the name of a caller that nobody has made sure of. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { encodeMessage } from "../../../../src/cluster/call-messages.ts";
import { loadNats } from "../../../../src/cluster/nats-link.ts";
import { forwardAddress, encodeHead } from "../../../../src/doors/http/forward-request.ts";
import type { Hub } from "../../../../src/hub/hub.ts";
import { type Ground, missing, startGround } from "../../../hub/cluster/nodes.ts";
import { openScene, OPS, type Scene } from "./cluster-setup.ts";
import type { Cluster } from "../../../../src/cluster/cluster.ts";

describe.skipIf(missing !== undefined)("[trust-18b] a request that no node handed on", () => {
  let ground: Ground;
  let scene: Scene;
  beforeAll(async () => {
    ground = await startGround();
  }, 60_000);
  afterEach(() => scene.close());
  afterAll(() => ground.stop());

  it("is not answered, whoever it claims to be from, and is logged and audited", { timeout: 60_000 }, async () => {
    scene = await openScene(ground);
    const [one, two] = await Promise.all([scene.start("one"), scene.start("two")]);
    const cluster = clusterOf(one.hub);
    const admin = { key: "token:ops", owner: true, scopes: new Set(["admin"] as const) };
    const head = encodeHead({ method: "GET", url: "/api/v1/config", headers: {}, caller: admin });
    const forged = { call: "1", from: clusterOf(two.hub).node.id, epoch: 0, value: head };
    const { transport } = await loadNats();
    const intruder = await transport.connect({ servers: ground.nats.url });
    const answers: Uint8Array[] = [];
    intruder.subscribe("answers", { callback: (_error, { data }) => void answers.push(data) });
    const subject = `toolcrib.${cluster.name}.call.${forwardAddress(cluster.node.id)}`;
    intruder.publish(subject, encodeMessage(forged), { reply: "answers" });
    await vi.waitFor(() =>
      expect(one.warnings).toContainEqual(expect.stringContaining("no node of this cluster signed")),
    );
    await intruder.flush();
    await intruder.close();
    expect(answers).toEqual([]);
    const { entries } = await one.hub.audit.query({ limit: 10, order: "newest" });
    expect(entries).toContainEqual(
      expect.objectContaining({ event: "cluster.forged", details: { subject, count: 1 } }),
    );
    // What nodes send each other still arrives: the node knows the other's servers, and answers with the same token.
    const response = await fetch(`${two.url}/api/v1/config`, { headers: { authorization: `Bearer ${OPS}` } });
    expect(response.status).toBe(200);
  });
});

function clusterOf({ internals: { cluster } }: Hub): Cluster {
  if (cluster === undefined) throw new Error("not a node");
  return cluster;
}
