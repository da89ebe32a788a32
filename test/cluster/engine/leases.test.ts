import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Cluster, Lease } from "../../../src/cluster/cluster.ts";
import { EngineBench, LEASE_MS, missing } from "./bench.ts";

const PATIENT = { timeout: 10 * LEASE_MS, interval: 20 };

describe.skipIf(missing !== undefined)("leases", () => {
  let bench: EngineBench;
  beforeAll(async () => {
    bench = await EngineBench.start();
  });
  beforeEach(() => bench.fresh());
  afterEach(() => bench.clear());
  afterAll(() => bench.stop());

  it("[scale-09a] of many who claim one at once, one gets it, and keeps it for longer than it lasts", async () => {
    const nodes = await bench.nodes("a", "b", "c");
    const claims = await Promise.all(
      Array.from({ length: 7 }).flatMap((_, at) => nodes.map((node) => node.leases.claim("server.x.0", { at }))),
    );
    const won = claims.filter((lease) => lease !== undefined);
    expect(won).toHaveLength(1);
    await delay(2.2 * LEASE_MS);
    expect(won[0]?.holds).toBe(true);
    const [lease] = won;
    for (const node of nodes) {
      expect([...node.leases.all()]).toEqual([
        ["server.x.0", { key: "server.x.0", holder: lease?.holder, term: lease?.term, value: lease?.value }],
      ]);
      expect(await node.leases.claim("server.x.0", {})).toBeUndefined();
    }
  });

  it("[scale-09a] given back it is free at once, and the next holder has a higher term", { retry: 2 }, async () => {
    const [a, b] = await bench.nodes("a", "b");
    const first = await held(a, "key with spaces.@");
    await vi.waitFor(() => expect(b.leases.all().get("key with spaces.@")?.holder).toBe(a.node.id));
    const changes: string[] = [];
    b.leases.onChange((key) => changes.push(key));
    await first.setValue({ ready: true });
    await vi.waitFor(() => expect(b.leases.all().get("key with spaces.@")?.value).toEqual({ ready: true }));
    const started = performance.now();
    await first.release();
    expect([first.holds, first.lost.aborted]).toEqual([false, true]);
    await vi.waitFor(() => expect(b.leases.all().size).toBe(0));
    const second = await held(b, "key with spaces.@");
    expect(performance.now() - started).toBeLessThan(LEASE_MS / 2);
    expect(second.term).toBeGreaterThan(first.term);
    expect(changes.length).toBeGreaterThanOrEqual(3);
    await expect(first.setValue({})).rejects.toMatchObject({ code: "conflict" });
    // An old holder that gives back once more takes nothing from the new one.
    await first.release();
    await delay(LEASE_MS);
    expect(second.holds).toBe(true);
  });

  it("[scale-09a] a node that leaves gives back what it holds", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const lease = await held(a, "k");
    await vi.waitFor(() => expect(b.leases.all().size).toBe(1));
    await a.close();
    expect(lease.lost.aborted).toBe(true);
    await held(b, "k");
  });

  it("[scale-09a] one whose holder was killed runs out for those who watch, and only then is free", async () => {
    const [b] = await bench.nodes("b");
    const child = await bench.child("hold", "k");
    await child.said("held");
    await vi.waitFor(() => expect(b.leases.all().get("k")?.holder).toBe(child.id));
    const gone: string[] = [];
    b.on("gone", ({ node }) => gone.push(node));
    let changes = 0;
    b.leases.onChange(() => (changes += 1));
    await child.end();
    expect(await b.leases.claim("k", {})).toBeUndefined();
    await vi.waitFor(() => expect(b.leases.all().size).toBe(0), PATIENT);
    await vi.waitFor(() => expect(changes).toBe(1));
    await vi.waitFor(() => held(b, "k"), PATIENT);
    await vi.waitFor(() => expect(gone).toEqual([child.id]), PATIENT);
  });

  it("[scale-09a] an answer that comes too late costs no lease", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const lease = await held(a, "k");
    // Longer than a renewal waits, shorter than the lease: NATS makes the write, and the holder does not hear of it.
    await delay(LEASE_MS / 3 - 30);
    bench.nats.freeze(true);
    await delay(LEASE_MS * 0.4);
    bench.nats.freeze(false);
    await delay(LEASE_MS);
    expect(lease.holds).toBe(true);
    await lease.setValue({ still: true });
    await vi.waitFor(() => expect(b.leases.all().get("k")).toMatchObject({ term: lease.term, value: { still: true } }));
  });

  it("[scale-09a] a paused holder that wakes up does nothing more in its name", async () => {
    const [b] = await bench.nodes("b");
    const child = await bench.child("hold", "k");
    const term = Number((await child.said("held")).slice("held ".length));
    await child.said("act");
    child.process.kill("SIGSTOP");
    const next = await vi.waitFor(() => held(b, "k"), PATIENT);
    const taken = Date.now();
    expect(next.term).toBeGreaterThan(term);
    await delay(100);
    child.process.kill("SIGCONT");
    await child.said("lost");
    await delay(200);
    const acts = child.lines.filter((line) => line.startsWith("act ")).map((line) => Number(line.slice(4)));
    expect(acts.length).toBeGreaterThan(0);
    expect(Math.max(...acts)).toBeLessThan(taken);
    expect(child.lines.at(-1)).toBe("lost");
    expect(next.holds).toBe(true);
    // Everybody sees it again.
    await vi.waitFor(() => expect(b.nodes().map(({ id }) => id)).toContain(child.id), PATIENT);
  });

  it("[scale-09a] a holder whose own thread stood still knows before its timers do", async () => {
    const [a] = await bench.nodes("a");
    const lease = await held(a, "k");
    let told = false;
    lease.lost.addEventListener("abort", () => (told = true));
    const until = performance.now() + LEASE_MS;
    while (performance.now() < until);
    expect(told).toBe(false);
    expect([lease.holds, told]).toEqual([false, true]);
    expect(a.leases.all().size).toBe(0);
  });

  async function held(cluster: Cluster, key: string): Promise<Lease> {
    const lease = await cluster.leases.claim(key, {});
    if (lease === undefined) throw new Error(`${key} is held by another.`);
    return lease;
  }
});
