import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Cluster, Lease } from "../../../src/cluster/cluster.ts";
import { lineTo } from "./cut.ts";
import type { ToolcribError } from "../../../src/model/errors.ts";
import { EngineBench, failure, LEASE_MS, missing } from "./bench.ts";

const PATIENT = { timeout: 15 * LEASE_MS, interval: 20 };

describe.skipIf(missing !== undefined)("a cluster under faults", () => {
  let bench: EngineBench;
  beforeAll(async () => {
    bench = await EngineBench.start();
  });
  beforeEach(() => bench.fresh());
  afterEach(() => bench.clear());
  afterAll(() => bench.stop());

  it("[scale-05c] a handler's node that is killed leaves its call in doubt", async () => {
    const [a] = await bench.nodes("a");
    const child = await bench.child("serve", "x");
    await child.said("ready");
    const call = failure(a.call("x", { head: {} }));
    await child.said("began");
    await child.end();
    const error = await call;
    expect(error.code).toBe("server_unavailable");
    expect(error.details?.["sent"]).toBeUndefined();
    expect(error.message).toContain("not known");
  });

  it("[scale-05c] a handler's node that is paused stops its call when it wakes up", async () => {
    const [a] = await bench.nodes("a");
    const child = await bench.child("serve", "x");
    await child.said("ready");
    const call = failure(a.call("x", { head: {} }));
    await child.said("began");
    child.process.kill("SIGSTOP");
    expect((await call).details?.["sent"]).toBeUndefined();
    // NATS still has its subscription: nobody takes the call, and that it did not run is not certain.
    const second = await failure(a.call("x", { head: {} }));
    expect(second.details?.["sent"]).toBeUndefined();
    child.process.kill("SIGCONT");
    await child.said("aborted");
    await vi.waitFor(() => expect(a.nodes()).toHaveLength(2), PATIENT);
    // What waited for it was not begun.
    expect(child.lines.filter((line) => line === "began")).toHaveLength(1);
    const cancelling = new AbortController();
    const third = failure(a.call("x", { head: {}, signal: cancelling.signal }));
    await vi.waitFor(() => expect(child.lines.filter((line) => line === "began")).toHaveLength(2), PATIENT);
    cancelling.abort();
    expect((await third).code).toBe("cancelled");
    await vi.waitFor(() => expect(child.lines.filter((line) => line === "aborted")).toHaveLength(2), PATIENT);
  });

  it("[scale-05c] a caller's node that is paused or killed has its call ended", async () => {
    const [a] = await bench.nodes("a");
    let aborted = 0;
    a.serve("x", async (call) => {
      await call.emit({});
      return await new Promise((_resolve, reject) => {
        call.signal.addEventListener("abort", () => {
          aborted += 1;
          reject(new Error("aborted"));
        });
      });
    });
    await bench.ready(a);
    const [paused, killed] = await Promise.all([bench.child("call", "x"), bench.child("call", "x")]);
    await Promise.all([paused.said("event"), killed.said("event")]);
    paused.process.kill("SIGSTOP");
    await killed.end();
    await vi.waitFor(() => expect(aborted).toBe(2), PATIENT);
    paused.process.kill("SIGCONT");
    expect(await paused.said("failed")).toContain("counts as gone");
  });

  it("[scale-05c] one node alone is cut off: its calls and those to it end on both sides", async () => {
    const line = await lineTo(bench.nats.url);
    try {
      const [a, b] = await Promise.all([bench.node("a"), bench.node("b", { url: line.url })]);
      const aborted: string[] = [];
      for (const node of [a, b]) {
        node.serve(`at.${node.node.name}`, async (call) => {
          await call.emit({});
          return await new Promise((_resolve, reject) => {
            call.signal.addEventListener("abort", () => {
              aborted.push(node.node.name);
              reject(new Error("aborted"));
            });
          });
        });
      }
      await bench.ready(a, b);
      const begin = async (node: Cluster, address: string): Promise<Promise<ToolcribError>[]> => {
        let call: Promise<ToolcribError> | undefined;
        await new Promise<void>(
          (onEvent) => (call = failure(node.call(address, { head: {}, onEvent: () => onEvent() }))),
        );
        return call === undefined ? [] : [call];
      };
      const calls = (await Promise.all([begin(a, "at.b"), begin(b, "at.a")])).flat();
      // Shorter than a lease, so that nobody counts as gone.
      line.cut(true);
      line.cut(false);
      for (const error of await Promise.all(calls)) {
        expect(error.code).toBe("server_unavailable");
        expect(error.details?.["sent"]).toBeUndefined();
      }
      await vi.waitFor(() => expect(aborted.toSorted()).toEqual(["a", "b"]), PATIENT);
      await vi.waitFor(() => expect(b.isUp).toBe(true), PATIENT);
      await Promise.all((await begin(b, "at.a")).map(() => b.close()));
    } finally {
      await bench.clear();
      await line.stop();
    }
  });

  it("[scale-05c] a reply that is lost with the connection of the node that sent it leaves the call in doubt", async () => {
    const line = await lineTo(bench.nats.url);
    try {
      const [a, b] = await Promise.all([bench.node("a"), bench.node("b", { url: line.url })]);
      const finish = Promise.withResolvers<void>();
      b.serve("x", async (call) => {
        await call.emit({});
        await finish.promise;
        return { head: {} };
      });
      await bench.ready(b);
      await vi.waitFor(() => expect(a.nodes()).toHaveLength(2));
      const gone: string[] = [];
      a.on("gone", ({ node }) => gone.push(node));
      const onEvent = (): void => {
        line.swallow(true);
        finish.resolve();
      };
      const sent = line.subjects.length;
      const call = failure(a.call("x", { head: {}, onEvent }));
      const replies = (): string[] => line.subjects.slice(sent).filter((subject) => subject.includes(".reply."));
      // That it was taken, an event, and the reply.
      await vi.waitFor(() => expect(replies()).toHaveLength(3));
      line.cut(true);
      line.swallow(false);
      line.cut(false);
      const error = await call;
      expect(error.code).toBe("server_unavailable");
      expect(error.details?.["sent"]).toBeUndefined();
      expect(gone).toEqual([]);
      // Now that it is back, it asks NATS for nothing more, and says no more than before.
      await vi.waitFor(() => expect(b.isUp).toBe(true), PATIENT);
      await b.map("m");
      await delay(LEASE_MS / 2);
      const settled = line.subjects.length;
      await delay(LEASE_MS / 2);
      const since = line.subjects.slice(settled);
      expect(since.filter((subject) => subject.startsWith("$JS.API"))).toEqual([]);
      expect(since.filter((subject) => subject.startsWith("$KV")).length).toBeLessThan(4);
    } finally {
      await bench.clear();
      await line.stop();
    }
  });

  it("[scale-05c] a NATS that restarts: calls under way end on both sides, later ones work", async () => {
    const line = await lineTo(bench.nats.url);
    const [a, b] = await bench.nodes("a", "b");
    const away = (await bench.node("away", { url: line.url })).node.id;
    await vi.waitFor(() => expect(a.nodes()).toHaveLength(3));
    let ran = 0;
    const aborted: string[] = [];
    b.serve("x", async (call) => {
      ran += 1;
      if (call.head["wait"] !== true) return { head: { ran } };
      return await new Promise((_resolve, reject) => {
        call.signal.addEventListener("abort", () => {
          aborted.push(call.from);
          reject(new Error("aborted"));
        });
      });
    });
    await bench.ready(b);
    const map = await a.map("m");
    await map.put("kept", { n: 1 });
    const lease = await a.leases.claim("k", {});
    const call = failure(a.call("x", { head: { wait: true } }));
    await vi.waitFor(() => expect(ran).toBe(1));
    const seen = follow(a);
    let upAt = Infinity;
    a.on("up", () => (upAt = performance.now()));
    const gone: (string | number)[] = [];
    a.on("gone", ({ node }) => gone.push(node, performance.now() - upAt));
    await bench.nats.kill();
    await line.stop();
    expect((await call).details?.["sent"]).toBeUndefined();
    await vi.waitFor(() => expect(aborted).toEqual([a.node.id]));
    expect(a.isUp).toBe(false);
    expect(await failure(a.call("x", { head: {} }))).toMatchObject({ details: { sent: false } });
    await expect(a.leases.claim("other", {})).rejects.toMatchObject({ code: "server_unavailable" });
    // Longer than the lease lasts.
    await vi.waitFor(() => expect(lease?.lost.aborted).toBe(true), PATIENT);
    await bench.nats.restart();
    await Promise.all([a, b].map((node) => vi.waitFor(() => expect(node.isUp).toBe(true), PATIENT)));
    expect((await a.call("x", { head: {} })).head).toEqual({ ran: 2 });
    expect(seen).toEqual(["down", "up"]);
    await vi.waitFor(async () => expect(await b.leases.claim("k", {})).toBeDefined(), PATIENT);
    await vi.waitFor(async () => expect(await map.take("kept")).toBe(true), PATIENT);
    expect(ran).toBe(2);
    // Who does not come back at once has a whole lease for it: perhaps it has to dial first.
    await vi.waitFor(() => expect(gone).toEqual([away, expect.any(Number)]), PATIENT);
    expect(gone[1]).toBeGreaterThan(LEASE_MS / 2);
    expect(a.nodes()).toHaveLength(2);
  });

  it("[scale-09a] a NATS that stands still: leases end in time, nothing runs late, nobody counts as gone", async () => {
    const [a, b] = await bench.nodes("a", "b");
    let ran = 0;
    b.serve("x", async () => ({ head: { ran: ++ran } }));
    await bench.ready(b);
    await vi.waitFor(() => expect(a.nodes()).toHaveLength(2));
    const lease = await a.leases.claim("k", {});
    const gone: string[] = [];
    for (const node of [a, b]) node.on("gone", (event) => gone.push(event.node));
    bench.nats.freeze(true);
    const frozen = performance.now();
    try {
      const call = await failure(a.call("x", { head: {} }));
      expect(call.details?.["sent"]).toBeUndefined();
      await vi.waitFor(() => expect(lease?.holds).toBe(false), PATIENT);
      expect(performance.now() - frozen).toBeLessThan(LEASE_MS * 3);
      await vi.waitFor(() => expect(a.isUp).toBe(false), PATIENT);
    } finally {
      bench.nats.freeze(false);
    }
    await Promise.all([a, b].map((node) => vi.waitFor(() => expect(node.isUp).toBe(true), PATIENT)));
    // It lay in the socket of a dead connection: it may have run once, as the caller was told, and not twice.
    const before = ran;
    expect(before).toBeLessThanOrEqual(1);
    expect((await a.call("x", { head: {} })).head).toEqual({ ran: before + 1 });
    expect(gone).toEqual([]);
    expect(a.nodes()).toHaveLength(2);
  });

  it("a node can leave while NATS stands still", async () => {
    const [a] = await bench.nodes("a");
    await a.leases.claim("k", {});
    bench.nats.freeze(true);
    try {
      const started = performance.now();
      await a.close();
      expect(performance.now() - started).toBeLessThan(LEASE_MS * 5);
    } finally {
      bench.nats.freeze(false);
    }
  });

  it("[scale-09a] a NATS that lost everything: no lease has two holders, terms still grow, and all heals", async () => {
    const line = await lineTo(bench.nats.url);
    try {
      const [a, b] = await Promise.all([bench.node("a", { url: line.url }), bench.node("b")]);
      const [inA, inB] = await Promise.all([a.map("m"), b.map("m")]);
      await inA.put("old", {});
      for (let n = 0; n < 5; n++) await inA.put("both", { n });
      const lease = await a.leases.claim("k", {});
      expect(lease?.holds).toBe(true);
      // It does not hear that NATS has forgotten it.
      line.cut(true);
      await bench.nats.restart({ wiped: true });
      const c = await bench.node("c");
      let next: Lease | undefined;
      let before: boolean | undefined;
      await vi.waitFor(async () => {
        const claims = await Promise.all([b, c].map((node) => node.leases.claim("k", {}).catch(() => undefined)));
        before = lease?.holds;
        next = claims.find((claim) => claim !== undefined);
        expect(next).toBeDefined();
      }, PATIENT);
      expect(before).toBe(false);
      expect(next?.term).toBeGreaterThan(lease?.term ?? Infinity);
      await vi.waitFor(() => inB.put("both", { n: "new" }), PATIENT);
      line.cut(false);
      await vi.waitFor(() => expect(a.leases.all().get("k")?.term).toBe(next?.term), PATIENT);
      for (const map of [inA, inB]) {
        await vi.waitFor(() => expect([...map.entries()]).toEqual([["both", { n: "new" }]]), PATIENT);
      }
      await vi.waitFor(() => expect([a, b, c].map((node) => node.nodes().length)).toEqual([3, 3, 3]), PATIENT);
    } finally {
      await bench.clear();
      await line.stop();
    }
  });

  function follow(cluster: Cluster): string[] {
    const seen: string[] = [];
    cluster.on("up", () => seen.push("up"));
    cluster.on("down", () => seen.push("down"));
    return seen;
  }
});
