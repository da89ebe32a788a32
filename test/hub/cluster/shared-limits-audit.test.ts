import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { verifyAll } from "../../../src/hub/audit/verify.ts";
import { type Bench, missingParts, startBench, type TestCluster, type TestNode } from "./shared-bench.ts";
import { eventually } from "../../support/eventually.ts";

const missing = missingParts();

const TEN = { limits: { callsPerMinute: 10 } };

describe.skipIf(missing !== undefined)("limits and audit of two nodes", () => {
  let bench: Bench;
  let cluster: TestCluster;
  let one: TestNode;
  let two: TestNode;
  beforeAll(async () => {
    bench = await startBench();
  });
  afterAll(() => bench.stop());
  beforeEach(async () => {
    cluster = await bench.cluster();
    [one, two] = [await cluster.start("one", TEN), await cluster.start("two", TEN)];
    await eventually(
      () => [one, two].every(({ hub }) => hub.internals.cluster?.nodes().length === 2),
      "both see each other",
    );
  });
  afterEach(() => cluster.close());

  it("[scale-08d] audit is two chains, which either node shows and verifies", async () => {
    expect(await two.hub.audit.verify()).toMatchObject({ ok: true, problems: [] });
    await one.hub.call({ session: one.hub.openSession(), name: "read" });
    await one.hub.audit.flush();
    expect(await two.hub.audit.verify()).toMatchObject({ ok: true, chains: 1, problems: [] });
    // Some time later: a node that has written nothing itself can judge it.
    const later = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 60_000);
    const judged = await verifyAll(join(two.home, "audit"), two.hub.internals.store).finally(() => later.mockRestore());
    expect(judged).toMatchObject({ ok: true, chains: [{ problems: [] }], problems: [] });
    const admin = await bench.postgres.connect(cluster.url);
    await two.hub.call({ session: two.hub.openSession(), name: "wipe" });
    await two.hub.audit.flush();
    for (const { hub } of [one, two]) {
      const { entries } = await hub.audit.query({ limit: 10, order: "oldest", type: "call" });
      expect(entries.map(({ name, node }) => [name, node])).toEqual([
        ["read", "one"],
        ["wipe", "two"],
      ]);
      expect(await hub.audit.verify()).toMatchObject({ ok: true, chains: 2 });
    }
    const report = await verifyAll(join(one.home, "audit"), one.hub.internals.store);
    expect(report.chains.map(({ node }) => node).toSorted()).toEqual(["one", "two"]);
    await admin.query("update audit_blocks set text = replace(text, '\"read\"', '\"rEad\"')");
    await admin.end();
    const { ok, problems } = await two.hub.audit.verify();
    expect(ok).toBe(false);
    expect(problems.join()).toContain("changed");
  });

  it("[scale-09d] audit goes on in files while PostgreSQL does not answer, and is taken in when it does", async () => {
    bench.postgres.freeze(true);
    try {
      const from = performance.now();
      for (let call = 0; call < 8; call++) {
        expect(await one.hub.call({ name: "read" })).toMatchObject({ ok: true });
      }
      expect(performance.now() - from).toBeLessThan(15_000);
    } finally {
      bench.postgres.freeze(false);
    }
    const count = async (): Promise<number> =>
      (await two.hub.audit.query({ limit: 50, order: "oldest", type: "call" })).entries.length;
    await eventually(async () => (await count()) === 8, "everything is in the store");
    expect(await two.hub.audit.verify()).toMatchObject({ ok: true });
  }, 60_000);

  it("[scale-09d] a node hears of what changed while PostgreSQL was gone", async () => {
    const admin = await bench.postgres.connect(cluster.url);
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'toolcrib'",
    );
    await admin.end();
    expect(await two.hub.call({ name: "read" })).toMatchObject({ ok: true });
    one.write({ limits: { callsPerMinute: 77 } });
    await eventually(() => two.hub.config.config.limits.callsPerMinute === 77, "the change is there");
  }, 60_000);

  /** How many of these calls of one caller, made at the nodes in turn, go through. */
  async function passed(calls: number, sharedKey: string): Promise<number> {
    const places = [one, two].map(({ hub }) => ({ hub, session: hub.openSession({ user: sharedKey, sharedKey }) }));
    let ok = 0;
    for (let call = 0; call < calls; call++) {
      const { hub, session } = places[call % 2] ?? { hub: one.hub, session: one.hub.session };
      const outcome = await hub.call({ session, name: "read" });
      if (outcome.ok) ok += 1;
      else expect(outcome.error).toMatchObject({ code: "rate_limited" });
    }
    return ok;
  }

  it("[scale-08b] a caller has its calls once, not once for each node", async () => {
    expect(await passed(40, "ann")).toBe(10);
  });

  it("[scale-08b] [scale-09d] with PostgreSQL stopped each node keeps to its part, and nothing hangs", async () => {
    bench.postgres.freeze(true);
    // Waits out a few limits of the store and of approvals, half a minute in all: what hangs fails by the test's own limit.
    try {
      expect(await passed(40, "bob")).toBe(10);
      const asked = one.hub.openSession({ user: "c", sharedKey: "c", holdsCalls: true });
      asked.narrow("test", { ask: ["wipe"] });
      expect(await one.hub.call({ session: asked, name: "wipe" })).toMatchObject({ ok: false });
      await one.hub.internals.activity.answer(one.hub.approvals.pending()[0]?.id ?? "", "once", null);
      expect(await one.hub.call({ session: asked, name: "wipe" })).toMatchObject({ ok: true });
    } finally {
      bench.postgres.freeze(false);
    }
    expect(await passed(1, "dan")).toBe(1);
  }, 120_000);
});
