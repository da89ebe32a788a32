import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";

// Like no other limit: other tests of this process may have left a real timer for theirs.
const LIMIT_MS = 31_337;

describe("a limit of time", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    // Spare timers of one test are not for the next.
    vi.runAllTimers();
    vi.useRealTimers();
  });

  it("is over after its time, counted from when it was set, also with a timer that others had before", () => {
    systemClock.after(LIMIT_MS, () => {})();
    vi.advanceTimersByTime(LIMIT_MS - 1);
    const late = vi.fn<() => void>();
    systemClock.after(LIMIT_MS, late);
    vi.advanceTimersByTime(LIMIT_MS - 1);
    expect(late).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(late).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(10 * LIMIT_MS);
    expect(late).toHaveBeenCalledTimes(1);
  });

  it("that is taken back does not run, and taken back twice leaves the next one alone", () => {
    const [first, second, third] = [vi.fn<() => void>(), vi.fn<() => void>(), vi.fn<() => void>()];
    const takeBack = systemClock.after(LIMIT_MS, first);
    takeBack();
    systemClock.after(LIMIT_MS, second);
    // At the same time as another, so with a timer of its own.
    systemClock.after(LIMIT_MS, third)();
    takeBack();
    vi.advanceTimersByTime(LIMIT_MS);
    expect([first, second, third].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 0]);
  });

  it("leaves one timer behind at most, however many were set at once", () => {
    const before = vi.getTimerCount();
    const takeBacks = Array.from({ length: 100 }, () => systemClock.after(LIMIT_MS, () => {}));
    for (const takeBack of takeBacks) takeBack();
    expect(vi.getTimerCount() - before).toBeLessThanOrEqual(1);
  });
});
