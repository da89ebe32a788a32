import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { startNats } from "../../support/nats.ts";
import { EngineBench, failure, LEASE_MS, missing } from "./bench.ts";

const PATIENT = { timeout: 10 * LEASE_MS, interval: 20 };

describe.skipIf(missing !== undefined)("nodes and shared maps", () => {
  let bench: EngineBench;
  beforeAll(async () => {
    bench = await EngineBench.start();
  });
  beforeEach(() => bench.fresh());
  afterEach(() => bench.clear());
  afterAll(() => bench.stop());

  it("nodes see each other, what they say of themselves, and who leaves", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const names = (): string[] =>
      a
        .nodes()
        .map(({ name }) => name)
        .toSorted();
    await vi.waitFor(() => expect(names()).toEqual(["a", "b"]));
    expect(a.nodes().map(({ id }) => id)).toEqual(
      a
        .nodes()
        .map(({ id }) => id)
        .toSorted(),
    );
    let changes = 0;
    a.on("nodes", () => (changes += 1));
    b.setFacts({ servers: 3 });
    await vi.waitFor(() => expect(a.nodes().find(({ name }) => name === "b")?.facts).toEqual({ servers: 3 }));
    expect(b.node.facts).toEqual({ servers: 3 });
    const gone: string[] = [];
    a.on("gone", ({ node }) => gone.push(node));
    await b.close();
    await vi.waitFor(() => expect(names()).toEqual(["a"]));
    expect(gone).toEqual([b.node.id]);
    expect(changes).toBe(2);
  });

  it("[trust-18c] a node says that NATS asks for no credentials", async () => {
    expect(bench.isWarnedOfOpenNats).toBe(false);
    await bench.node("a");
    expect(bench.isWarnedOfOpenNats).toBe(true);
  });

  it("a map is the same everywhere, and an entry can be taken once", async () => {
    const [a, b, c] = await bench.nodes("a", "b", "c");
    const [inA, inB] = await Promise.all([a.map("asks"), b.map("asks")]);
    const changes: string[] = [];
    inB.onChange((key) => changes.push(key));
    await inA.put("x.y z", { n: 1 });
    expect(inA.get("x.y z")).toEqual({ n: 1 });
    await inA.put("x.y z", { n: 2 });
    await inA.put("other", {});
    await vi.waitFor(() =>
      expect(inB.entries()).toEqual(
        new Map([
          ["x.y z", { n: 2 }],
          ["other", {}],
        ]),
      ),
    );
    // A value that was overwritten at once may never be seen.
    expect(new Set(changes)).toEqual(new Set(["x.y z", "other"]));
    // Whoever opens it later has all of it at once.
    const inC = await c.map("asks");
    expect(inC.entries().size).toBe(2);
    const taken = await Promise.all([inA, inB, inC, inA, inB, inC].map((map) => map.take("x.y z")));
    expect(taken.filter(Boolean)).toHaveLength(1);
    for (const map of [inA, inB, inC]) await vi.waitFor(() => expect([...map.entries().keys()]).toEqual(["other"]));
    expect(await inA.take("never")).toBe(false);
  });

  it("[scale-08c] an entry that was taken away does not come back when it is renewed, and nothing of it is kept", async () => {
    // A minute is short here.
    const clock = { ...systemClock, after: (ms: number, task: () => void) => systemClock.after(ms % 60_000, task) };
    const [a, b] = await Promise.all([bench.node("a", {}, clock), bench.node("b")]);
    const [inA, inB] = await Promise.all([a.map("m"), b.map("m")]);
    await inA.put("k", { n: 1 });
    expect(await inA.renew("k", { n: 2 })).toBe(true);
    // One of them cannot have heard of the other's write.
    expect(await Promise.all([inA.renew("k", { n: 3 }), inB.renew("k", { n: 3 })])).toEqual([true, true]);
    await vi.waitFor(() => expect([inA.get("k"), inB.get("k")]).toEqual([{ n: 3 }, { n: 3 }]));
    expect(await inB.take("k")).toBe(true);
    expect(await inA.renew("k", { n: 4 })).toBe(false);
    expect([inA.get("k"), inB.get("k")]).toEqual([undefined, undefined]);
    await vi.waitFor(async () => expect(await bench.kept("m")).toBe(0), PATIENT);
    expect([await inA.take("k"), await inA.renew("k", {})]).toEqual([false, false]);
  });

  it("entries of a map with a time to live run out", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const [inA, inB] = await Promise.all([a.map("short", { ttlMs: 300 }), b.map("short", { ttlMs: 300 })]);
    await inA.put("k", {});
    await vi.waitFor(() => expect(inB.get("k")).toEqual({}));
    await vi.waitFor(() => expect([inA.get("k"), inB.get("k")]).toEqual([undefined, undefined]), PATIENT);
  });

  it("nodes that disagree on how long a lease lasts are not one cluster", async () => {
    const [a] = await bench.nodes("a");
    expect(await failure(bench.node("b", { leaseMs: 2000 }))).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("a of this cluster has another `leaseMs`"),
    });
    await a.close();
    const later = await bench.node("b", { leaseMs: 2000 });
    expect(bench.warnings).toEqual([
      expect.stringContaining("kept entries for 1000 ms; now for 2000 ms"),
      expect.stringContaining("kept entries for 1000 ms; now for 2000 ms"),
    ]);
    await vi.waitFor(async () => expect(await later.leases.claim("k", {})).toBeDefined(), PATIENT);
  });

  it("[scale-05b] a NATS that is not there, has no JetStream or refuses the password is named, the password is not", async () => {
    const user = { user: "hub", password: "correct-horse-battery" };
    const [guarded, plain] = await Promise.all([startNats(user), startNats({ jetStream: false })]);
    try {
      const away = plain.url.replace("127.0.0.1", "hub:correct-horse-battery@127.0.0.1");
      expect(await failure(bench.node("a", { url: away }))).toMatchObject({
        code: "invalid_config",
        message: `NATS at ${plain.url} offers no JetStream, which a cluster needs.`,
      });
      await plain.kill();
      const unreachable = await failure(bench.node("a", { url: away }));
      expect(unreachable).toMatchObject({
        code: "server_unavailable",
        message: `No NATS server can be reached at ${plain.url}.`,
      });
      expect(JSON.stringify(unreachable.toObject())).not.toContain("correct-horse");
      const withPassword = (password: string): string => guarded.url.replace("//", `//hub:${password}@`);
      const refused = await failure(bench.node("a", { url: withPassword("wrong-horse") }));
      expect(refused.code).toBe("unauthorized");
      expect(JSON.stringify(refused.toObject())).not.toContain("wrong-horse");
      const refusing = withPassword(user.password);
      expect((await bench.node("a", { url: refusing })).isUp).toBe(true);
      expect(bench.isWarnedOfOpenNats).toBe(false);
      bench.fresh();
      // It is one server alone.
      expect(await failure(bench.node("a", { url: refusing, copies: 3 }))).toMatchObject({
        code: "server_unavailable",
        hint: expect.stringContaining("`cluster.copies`"),
      });
      await bench.clear();
    } finally {
      await Promise.all([guarded.stop(), plain.stop()]);
    }
  });
});
