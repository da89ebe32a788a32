import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { CallLimits } from "../../src/policy/call-limits.ts";

function setUp(
  callsPerMinute: number | undefined,
  concurrency = 10_000,
): { limits: CallLimits; time: { now: number } } {
  const time = { now: 1_000_000 };
  const clock: Clock = { now: () => time.now, after: () => () => {} };
  return { limits: new CallLimits(clock, { callsPerMinute, concurrency }), time };
}

describe("rate", () => {
  it("[spine-17d] refuses the call after the last, and says when to come back", () => {
    const { limits, time } = setUp(2);
    expect(limits.take("a", "s").ok).toBe(true);
    time.now += 10_000;
    expect(limits.take("a", "s").ok).toBe(true);
    expect(limits.take("a", "s")).toMatchObject({
      ok: false,
      retryAfterMs: 50_000,
      what: expect.stringContaining("this session") as string,
    });
    time.now += 49_999;
    expect(limits.take("a", "s")).toMatchObject({ ok: false, retryAfterMs: 1 });
    time.now += 1;
    expect(limits.take("a", "s").ok).toBe(true);
    expect(limits.take("a", "s")).toMatchObject({ ok: false, retryAfterMs: 10_000 });
  });

  it("[spine-17d] counts for each session over all servers", () => {
    const { limits } = setUp(2);
    expect(limits.take("a", "s").ok).toBe(true);
    expect(limits.take("b", "s").ok).toBe(true);
    expect(limits.take("c", "s")).toMatchObject({ ok: false, what: expect.stringContaining("session") as string });
    expect(limits.take("c", "other").ok).toBe(true);
  });

  it("[spine-17d] a refused call counts against nothing", () => {
    const { limits, time } = setUp(1);
    expect(limits.take("a", "s").ok).toBe(true);
    for (let i = 0; i < 10; i += 1) expect(limits.take("a", "s").ok).toBe(false);
    expect(limits.take("a", "t").ok).toBe(true);
    time.now += 60_000;
    expect(limits.take("a", "s").ok).toBe(true);
  });

  it("[spine-17d] never lets more than the limit through in any minute, and refuses only then", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer({ min: 0, max: 25_000 }), { maxLength: 60 }),
        (limit, gaps) => {
          const { limits, time } = setUp(limit);
          const accepted: number[] = [];
          for (const gap of gaps) {
            time.now += gap;
            const recent = accepted.filter((at) => at > time.now - 60_000).length;
            const taken = limits.take("a", "s");
            expect(taken.ok).toBe(recent < limit);
            if (taken.ok) accepted.push(time.now);
          }
        },
      ),
    );
  });

  it("does not stay shut when the clock is set back", () => {
    const { limits, time } = setUp(1);
    expect(limits.take("a", "s").ok).toBe(true);
    time.now -= 3_600_000;
    expect(limits.take("a", "s")).toMatchObject({ ok: false, retryAfterMs: 60_000 });
    time.now += 60_000;
    expect(limits.take("a", "s").ok).toBe(true);
  });
});

describe("[whole-12a] the rate that no one has set", () => {
  it("does not limit the owner of a hub on one machine, and others to 100", () => {
    const { limits } = setUp(undefined);
    const count = (options: object): number => {
      let taken = 0;
      while (taken < 1000 && limits.take("a", JSON.stringify(options), options).ok) taken += 1;
      return taken;
    };
    expect([count({ owner: true }), count({ owner: false })]).toEqual([1000, 100]);
    limits.configure({ callsPerMinute: 7, concurrency: 10_000 });
    expect(count({ owner: true })).toBe(7);
  });
});

describe("[whole-12b] the rate", () => {
  it("is that of a session, or of a caller with several, never of all together", () => {
    const { limits } = setUp(2);
    const take = (session: string, caller?: string) => limits.takeAcrossNodes("a", session, caller);
    for (const session of ["s", "t", "u"])
      for (let n = 0; n < 2; n += 1) expect(take(session)).toMatchObject({ ok: true });
    expect(take("s")).toMatchObject({ ok: false });
    expect([take("v", "ann"), take("w", "ann"), take("x", "bob")]).toMatchObject([
      { ok: true },
      { ok: true },
      { ok: true },
    ]);
    expect(take("y", "ann")).toMatchObject({ ok: false, what: expect.stringContaining("this user") as string });
  });
});

describe("concurrency", () => {
  it("[spine-17d] holds for each server and is given back once", () => {
    const { limits } = setUp(1000, 2);
    const first = limits.take("a", "s");
    const second = limits.take("a", "t");
    expect(limits.take("a", "s")).toMatchObject({
      ok: false,
      what: expect.stringContaining("limits.concurrency") as string,
    });
    expect(limits.take("b", "s").ok).toBe(true);
    if (!first.ok || !second.ok) throw new Error("both must be taken");
    first.release();
    first.release();
    expect(limits.take("a", "s").ok).toBe(true);
    expect(limits.take("a", "s").ok).toBe(false);
  });

  it("a call refused for concurrency does not use up the rate", () => {
    const { limits } = setUp(2, 1);
    const first = limits.take("a", "s");
    for (let i = 0; i < 5; i += 1) expect(limits.take("a", "s").ok).toBe(false);
    if (first.ok) first.release();
    expect(limits.take("a", "s").ok).toBe(true);
  });
});

describe("[gate-07a] other limits", () => {
  it("hold at once, and what was counted before still counts", () => {
    const { limits, time } = setUp(5, 2);
    for (let call = 0; call < 4; call += 1) {
      const taken = limits.take("a", "s");
      if (taken.ok) taken.release();
      time.now += 1000;
    }
    limits.configure({ callsPerMinute: 3, concurrency: 2 });
    expect(limits.take("a", "s")).toMatchObject({ ok: false, retryAfterMs: 57_000 });
    limits.configure({ callsPerMinute: 4, concurrency: 2 });
    expect(limits.take("a", "s").ok).toBe(true);
    expect(limits.take("a", "s").ok).toBe(false);
    limits.configure({ callsPerMinute: 100, concurrency: 1 });
    expect(limits.take("a", "s")).toMatchObject({
      ok: false,
      what: expect.stringContaining("in progress") as string,
    });
    expect(limits.take("b", "s").ok).toBe(true);
  });

  it("keep a full ring in order", () => {
    const { limits, time } = setUp(3);
    for (let call = 0; call < 5; call += 1) {
      expect(limits.take("a", "s").ok).toBe(true);
      time.now += 30_000;
    }
    // Of the last three calls, 90 s, 60 s and 30 s ago, only the last is within a minute.
    limits.configure({ callsPerMinute: 1, concurrency: 1000 });
    expect(limits.take("a", "s")).toMatchObject({ ok: false, retryAfterMs: 30_000 });
  });
});

describe("memory", () => {
  it("forgets sessions that ended", () => {
    const { limits } = setUp(1);
    limits.take("a", "s");
    const before = limits.remembered;
    limits.forget("s");
    expect(limits.remembered).toBe(before - 1);
    expect(limits.take("b", "s").ok).toBe(true);
  });

  it("stays bounded under sessions that nobody forgets, and keeps the busy ones", () => {
    const { limits, time } = setUp(100_000);
    for (let i = 0; i < 20_000; i += 1) {
      time.now += 1000;
      limits.take("a", `s${i}`);
      expect(limits.remembered).toBeLessThanOrEqual(1025);
    }
    const tight = setUp(1);
    for (let i = 0; i < 5000; i += 1) expect(tight.limits.take(`server${i}`, `s${i}`).ok).toBe(true);
    for (let i = 0; i < 5000; i += 1) expect(tight.limits.take(`server${i}`, `s${i}`).ok).toBe(false);
  });
});
