/** Somebody who can publish on NATS and is no node. */
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Cluster } from "../../../src/cluster/cluster.ts";
import { loadNats } from "../../../src/cluster/nats-link.ts";
import { encodeMessage } from "../../../src/cluster/call-messages.ts";
import { MessageSigner, ReplayGuard } from "../../../src/cluster/message-signer.ts";
import { EngineBench, missing } from "./bench.ts";

describe.skipIf(missing !== undefined)("[trust-18b] messages between nodes", () => {
  let bench: EngineBench;
  let intruder: NatsConnection;
  beforeAll(async () => {
    bench = await EngineBench.start({ leases: false });
    intruder = await (await loadNats()).transport.connect({ servers: bench.nats.url });
  });
  beforeEach(() => bench.fresh());
  afterEach(() => bench.clear());
  afterAll(async () => {
    await intruder.close();
    await bench.stop();
  });

  /** Two nodes; the first serves an address of its own, and keeps the heads of what it ran. */
  async function scene(): Promise<{ a: Cluster; b: Cluster; ran: unknown[]; forged: string[]; address: string }> {
    const [a, b] = await bench.nodes("a", "b");
    const [ran, forged]: [unknown[], string[]] = [[], []];
    a.on("forged", ({ subject }) => forged.push(subject));
    const address = `node.${a.node.id}.x`;
    a.serve(address, async ({ head }) => {
      ran.push(head);
      return { head: {} };
    });
    await bench.ready(a);
    return { a, b, ran, forged, address };
  }

  it("that no node has signed are dropped and reported: calls, news and entries of maps", async () => {
    const { a, b, ran, forged, address } = await scene();
    const call = `toolcrib.${a.name}.call.${address}`;
    const head = { call: "1", from: b.node.id, epoch: 0, value: { caller: "admin" } };
    const signedWithAnother = new MessageSigner(Buffer.alloc(32, "guess")).sign(call, "reply", encodeMessage(head));
    intruder.publish(call, encodeMessage(head), { reply: "reply" });
    intruder.publish(call, signedWithAnother, { reply: "reply" });
    await vi.waitFor(() => expect(forged).toEqual([call]));
    expect(bench.warnings).toEqual([expect.stringContaining("no node of this cluster signed it")]);

    const news: unknown[] = [];
    a.subscribe("config", (message) => news.push(message));
    intruder.publish(`toolcrib.${a.name}.topic.config`, encodeMessage({ from: b.node.id, value: { is: "false" } }));
    await bench.ready(a);
    b.publish("config", { is: "true" });
    await vi.waitFor(() => expect(news).toEqual([{ is: "true" }]));

    const [inA, inB] = await Promise.all([a.map("grants"), b.map("grants")]);
    await inB.put("ada", { grant: "read" });
    const { kv } = await loadNats();
    const bucket = await new kv.Kvm(intruder).open(`toolcrib_${a.name}_map_grants`);
    await bucket.put("eve", JSON.stringify({ grant: "everything" }));
    await bucket.put("ada", JSON.stringify({ grant: "everything" }));
    // One that a node signed for another key.
    await bucket.put("mallory", (await bucket.get("ada", { revision: 1 }))?.string() ?? "");
    await inB.put("last", {});
    await vi.waitFor(() => expect(inA.get("last")).toEqual({}));
    expect(inA.entries()).toEqual(
      new Map([
        ["ada", { grant: "read" }],
        ["last", {}],
      ]),
    );
    expect(await inA.takeOut("eve")).toBeUndefined();

    await b.call(address, { head: { honest: true } });
    expect(ran).toEqual([{ honest: true }]);
  });

  it("are taken once, and at the address for which they were signed", async () => {
    const { a, b, ran, forged, address } = await scene();
    const other = `node.${a.node.id}.y`;
    a.serve(other, async ({ head }) => {
      ran.push({ other: head });
      return { head: {} };
    });
    await bench.ready(a);
    const subject = `toolcrib.${a.name}.call.${address}`;
    const heard: { data: Uint8Array; reply: string }[] = [];
    intruder.subscribe(subject, { callback: (_error, { data, reply = "" }) => void heard.push({ data, reply }) });
    await intruder.flush();
    await b.call(address, { head: { n: 1 } });
    await vi.waitFor(() => expect(heard).toHaveLength(1));
    for (const { data, reply } of [...heard]) {
      intruder.publish(subject, data, { reply });
      intruder.publish(subject, data, { reply: "elsewhere" });
      intruder.publish(`toolcrib.${a.name}.call.${other}`, data, { reply });
    }
    await vi.waitFor(() => expect(forged).not.toEqual([]));
    await b.call(address, { head: { n: 2 } });
    await b.call(other, { head: { n: 3 } });
    expect(ran).toEqual([{ n: 1 }, { n: 2 }, { other: { n: 3 } }]);
  });

  it("nodes with another key are not heard", async () => {
    const { a } = await scene();
    const stranger = await bench.node("stranger", {}, undefined, Buffer.alloc(32, "another"));
    await vi.waitFor(() => expect(bench.warnings).not.toEqual([]));
    expect(a.nodes().map(({ name }) => name)).not.toContain("stranger");
    expect(stranger.nodes().map(({ name }) => name)).toEqual(["stranger"]);
  });
});

describe("[trust-18b] the window of a subscription", () => {
  it("takes each number once, in any order within it, and nothing that is older", () => {
    const taken = new ReplayGuard();
    const numbers = [1, 3, 2, 5000, 4999, 3000];
    expect(numbers.map((number) => taken.add("a", number))).toEqual(numbers.map(() => true));
    expect([...numbers, 2900, 4].map((number) => taken.add("a", number))).toEqual(
      Array.from({ length: 8 }, () => false),
    );
    expect(taken.add("b", 1)).toBe(true);
  });
});
