import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { CallLimits, type LimitOutcome } from "../../src/policy/call-limits.ts";
import { SharedWindows, type TokenPool } from "../../src/policy/call-windows.ts";

const MINUTE = 60_000;

/** Sums as the store does, in memory; what is asked can be held back or fail. */
class MemoryPool implements TokenPool {
  readonly spans = new Map<string, Map<number, number>>();
  asked = 0;
  isAway = false;
  #waiting: (() => void)[] | undefined;

  async take({ key, span, since, limit, want }: Parameters<TokenPool["take"]>[0]): ReturnType<TokenPool["take"]> {
    this.asked += 1;
    if (this.#waiting !== undefined) await new Promise<void>((resolve) => this.#waiting?.push(resolve));
    if (this.isAway) throw new Error("away");
    const spans = this.spans.get(key) ?? new Map<number, number>();
    this.spans.set(key, spans);
    const used = [...spans].filter(([at, count]) => at >= since && count > 0);
    const given = Math.max(0, Math.min(want, limit - used.reduce((sum, [, count]) => sum + count, 0)));
    spans.set(span, (spans.get(span) ?? 0) + given);
    return { given, oldest: Math.min(span, ...used.map(([at]) => at)) };
  }

  async giveBack(key: string, span: number, tokens: number): Promise<void> {
    this.spans.get(key)?.set(span, (this.spans.get(key)?.get(span) ?? 0) - tokens);
  }

  async prune(): Promise<void> {}

  hold(): () => void {
    const waiting: (() => void)[] = (this.#waiting = []);
    return () => {
      this.#waiting = undefined;
      for (const go of waiting) go();
    };
  }
}

interface Setup {
  readonly pool: MemoryPool;
  readonly time: { now: number };
  readonly nodes: readonly CallLimits[];
  readonly timers: (() => void)[];
}

function setUp(callsPerMinute: number, { nodes = 2, concurrency = 1000 } = {}): Setup {
  const time = { now: 1_000_000_000 };
  const timers: (() => void)[] = [];
  const after = (_ms: number, run: () => void): (() => void) => {
    timers.push(run);
    return () => void timers.splice(timers.indexOf(run), 1);
  };
  const clock: Clock = { now: () => time.now, after };
  const pool = new MemoryPool();
  const made = Array.from({ length: nodes }, () => {
    const limits = new CallLimits(clock, { callsPerMinute, concurrency });
    const windows = new SharedWindows({ clock, pool });
    limits.share({ windows, isShared: (server) => server !== "own", nodes: () => nodes });
    return limits;
  });
  return { pool, time, nodes: made, timers };
}

const isOk = async (taken: LimitOutcome | Promise<LimitOutcome>): Promise<boolean> => {
  const { ok, ...rest } = await taken;
  if ("release" in rest) rest.release();
  return ok;
};

describe("[scale-08b] a limit that several hubs share", () => {
  it("lets no more through in all than one hub would, whoever is asked", async () => {
    const { nodes, time, pool } = setUp(100, { nodes: 3 });
    const times: number[] = [];
    for (let call = 0; call < 2000; call++) {
      const taken = nodes[call % 3]?.takeAcrossNodes(`server${call}`, `s${call}`, "ann");
      if (taken !== undefined && (await isOk(taken))) times.push(time.now);
      time.now += 100;
    }
    for (const from of times) {
      expect(times.filter((each) => each >= from && each < from + MINUTE).length).toBeLessThanOrEqual(100);
    }
    // 200 seconds, of which the first 100 calls use up the first minute at once.
    expect(times.length).toBeGreaterThan(250);
    expect(pool.asked).toBeLessThan(1500);
  });

  it("gives one caller at two hubs as much as at one, and leaves other callers alone", async () => {
    const { nodes } = setUp(10);
    const outcomes = [];
    for (let call = 0; call < 30; call++) {
      const taken = nodes[call % 2]?.takeAcrossNodes(`server${call}`, `session${call % 2}`, "ann");
      outcomes.push(taken !== undefined && (await isOk(taken)));
    }
    expect(outcomes.filter(Boolean)).toHaveLength(10);
    expect(await isOk(nodes[0]?.takeAcrossNodes("x", "session9", "bob") ?? refused())).toBe(true);
    expect(await isOk(nodes[0]?.takeAcrossNodes("x", "session10", undefined) ?? refused())).toBe(true);
  });

  it("decides without waiting while it has something in hand, and says when to come back", async () => {
    const { nodes, time } = setUp(40);
    const [one] = nodes;
    if (one === undefined) throw new Error("no node");
    for (let call = 0; call < 8; call++) await isOk(one.takeAcrossNodes("a", "s", "ann"));
    const next = one.takeAcrossNodes("a", "s", "ann");
    expect(next).not.toBeInstanceOf(Promise);
    while (await isOk(one.takeAcrossNodes("a", "s", "ann")));
    time.now += 100;
    const refusal = await one.takeAcrossNodes("a", "s", "ann");
    expect(refusal).toMatchObject({ ok: false, what: expect.stringContaining("this user") as string });
    if (!refusal.ok) expect(refusal.retryAfterMs).toBeGreaterThan(50_000);
    time.now += MINUTE + 5000;
    expect(await isOk(one.takeAcrossNodes("a", "s", "ann"))).toBe(true);
  });

  it("[whole-42a] lets more through at once when it is raised, and a refusal names the limit that refused", async () => {
    const { nodes, time, pool } = setUp(10);
    const [one, two] = nodes;
    if (one === undefined || two === undefined) throw new Error("no node");
    const take = (at: CallLimits): LimitOutcome | Promise<LimitOutcome> => at.takeAcrossNodes("a", "s", "user ann");
    while (await isOk(take(one)));
    while (await isOk(take(two)));
    const refused = await take(one);
    expect(refused).toMatchObject({ ok: false, limit: "limits.callsPerMinute" });
    expect(refused.ok ? "" : refused.what).toContain("limits.callsPerMinute is 10)");
    for (const each of nodes) each.configure({ callsPerMinute: 15, concurrency: 1000 });
    let more = 0;
    while (await isOk(take(one))) more += 1;
    expect(more).toBe(5);
    const again = await take(one);
    expect(again.ok ? "" : again.what).toContain("limits.callsPerMinute is 15)");

    time.now += MINUTE + 5000;
    pool.isAway = true;
    while (await isOk(take(one)));
    const alone = await take(one);
    expect(alone.ok ? "" : alone.what).toContain(
      "limits.callsPerMinute is 15, of which this node has 8 while the store does not answer",
    );
  });

  it("[whole-42a] names the user where all of a user's calls count together", async () => {
    const { nodes } = setUp(10);
    const [one] = nodes;
    for (let call = 0; call < 10; call++)
      await isOk(one?.takeAcrossNodes(`s${call}`, "s", "user ann") ?? expect.fail());
    const refused = await one?.takeAcrossNodes("other", "s", "user ann");
    expect(refused).toMatchObject({ ok: false, what: expect.stringMatching(/^this user has used up/) as string });
  });

  it("gives back what it does not use, so that others can have it", async () => {
    const { nodes, time, pool } = setUp(100);
    const [one, two] = nodes;
    if (one === undefined || two === undefined) throw new Error("no nodes");
    for (let call = 0; call < 12; call++) await isOk(one.takeAcrossNodes("a", "s", "ann"));
    time.now += 5000;
    await isOk(one.takeAcrossNodes("a", "s", "ann"));
    let more = 0;
    while (await isOk(two.takeAcrossNodes("a", "s", "ann"))) more += 1;
    // Besides what was used, one has no more than a portion in hand.
    expect(more).toBeGreaterThanOrEqual(100 - 13 - 5);
    expect([...(pool.spans.get("session ann")?.values() ?? [])].reduce((sum, each) => sum + each, 0)).toBe(100);
  });

  it("takes no payment of debts for a refusal", async () => {
    const { nodes, time, pool } = setUp(1000);
    const [one] = nodes;
    if (one === undefined) throw new Error("no node");
    pool.isAway = true;
    expect(await isOk(one.takeAcrossNodes("a", "s", "ann"))).toBe(true);
    pool.isAway = false;
    time.now += 2000;
    const answer = pool.hold();
    // The first asks whether the pool is back; all of them are used without it.
    for (let call = 0; call < 6; call++) expect(await isOk(one.takeAcrossNodes("a", "s", "ann"))).toBe(true);
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await isOk(one.takeAcrossNodes("a", "s", "ann"))).toBe(true);
  });

  it("with the pool away each hub keeps to its part at once, and pays it back later", async () => {
    const { nodes, time, pool, timers } = setUp(20);
    const [one, two] = nodes;
    if (one === undefined || two === undefined) throw new Error("no nodes");
    pool.isAway = true;
    let local = 0;
    while (await isOk(one.takeAcrossNodes("a", "s", "ann"))) local += 1;
    expect(local).toBe(10);
    pool.isAway = false;
    time.now += 3000;
    // This one only finds out that the pool is back.
    await isOk(one.takeAcrossNodes("a", "s", "ann"));
    await Promise.resolve();
    let rest = 0;
    while (await isOk(two.takeAcrossNodes("a", "s", "ann"))) rest += 1;
    expect(local + rest).toBeLessThanOrEqual(20);

    time.now += 2 * MINUTE;
    const go = pool.hold();
    const slow = one.takeAcrossNodes("a", "s", "ann");
    for (const run of timers.slice()) run();
    expect(await isOk(slow)).toBe(true);
    expect(one.takeAcrossNodes("a", "s", "ann")).not.toBeInstanceOf(Promise);
    go();
  });

  it("[scale-09d] gives back what a pool gave too late, and asks a pool that is stuck once", async () => {
    const { nodes, time, pool, timers } = setUp(240);
    const [one, two] = nodes;
    if (one === undefined || two === undefined) throw new Error("no nodes");
    const answer = pool.hold();
    const first = one.takeAcrossNodes("a", "s", "ann");
    for (const run of timers.splice(0)) run();
    let used = (await isOk(first)) ? 1 : 0;
    for (let second = 0; second < 12; second++) {
      time.now += 1000;
      used += (await isOk(one.takeAcrossNodes("a", "s", "ann"))) ? 1 : 0;
      for (const run of timers.splice(0)) run();
    }
    expect([used, pool.asked]).toEqual([13, 1]);
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    expect([...(pool.spans.get("session ann")?.values() ?? [])]).toEqual([0]);
    // It is known to be back: what was used is paid, and the rest is there for others.
    expect(await isOk(one.takeAcrossNodes("a", "s", "ann"))).toBe(true);
    used += 1;
    let more = 0;
    while (await isOk(two.takeAcrossNodes("a", "s", "ann"))) more += 1;
    expect(used + more).toBeLessThanOrEqual(240);
    expect(more).toBeGreaterThan(200);
  });

  it("puts a token that was not needed back into the span it is of", async () => {
    const time = { now: 1_000_000_000 };
    const pool = new MemoryPool();
    const windows = new SharedWindows({ clock: { now: () => time.now, after: () => () => {} }, pool });
    expect(await windows.take("a", 1)).toBe(0);
    const { span } = windows;
    time.now += 5000;
    windows.putBack("a", span);
    expect([...(pool.spans.get("a") ?? [])]).toEqual([[span, 0]]);
    expect(await windows.take("a", 1)).toBe(0);
    windows.putBack("a", span + 1);
    expect(windows.take("a", 1)).toBe(0);
    expect(await windows.take("a", 1)).toBeGreaterThan(0);
  });

  it("leaves a hub's own sources to it, and divides calls under way", async () => {
    const { nodes, pool } = setUp(5, { concurrency: 4 });
    const [one] = nodes;
    expect(one?.takeAcrossNodes("own", "s", undefined)).toMatchObject({ ok: true });
    expect(pool.asked).toBe(0);
    await one?.takeAcrossNodes("a", "s", "ann");
    await one?.takeAcrossNodes("a", "s", "ann");
    expect(await one?.takeAcrossNodes("a", "s", "ann")).toMatchObject({
      ok: false,
      what: expect.stringContaining("for 2 nodes") as string,
    });
  });
});

function refused(): LimitOutcome {
  return { ok: false, retryAfterMs: 0, what: "", limit: "" };
}
