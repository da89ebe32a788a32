import { describe, expect, it, vi } from "vitest";
import {
  CancelController,
  endsWithin,
  InFlight,
  mapLimit,
  pause,
  retry,
  SingleFlight,
  withAbort,
  withTimeout,
} from "../../src/base/async.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

const never = new Promise<never>(() => {});

describe("a time limit", () => {
  it("passes on what comes in time, and the error of what fails in time", async () => {
    const late = (): Error => new Error("late");
    expect(await withTimeout(Promise.resolve(1), { ms: 10, late })).toBe(1);
    await expect(withTimeout(Promise.reject(new Error("own")), { ms: 10, late })).rejects.toThrow("own");
  });

  it("rejects with the caller's error when the time is up", async () => {
    const clock = new ManualClock();
    const waiting = withTimeout(never, { ms: 10, late: () => new Error("late"), clock });
    const [outcome] = await Promise.allSettled([waiting, clock.advance(10)]);
    expect(outcome).toEqual({ status: "rejected", reason: new Error("late") });
  });

  it("says whether the work ended in time, was too slow or was aborted", async () => {
    const clock = new ManualClock();
    expect(await endsWithin(Promise.resolve(), { ms: 10, clock })).toBe(true);
    const slow = endsWithin(never, { ms: 10, clock });
    await clock.advance(10);
    expect(await slow).toBe(false);
    const controller = new AbortController();
    const aborted = endsWithin(never, { signal: controller.signal });
    controller.abort();
    expect(await aborted).toBe(false);
    expect(await endsWithin(never, { signal: controller.signal })).toBe(false);
  });
});

it("an abort ends the wait for work that ignores it", async () => {
  const controller = new AbortController();
  const waiting = withAbort(never, controller.signal, () => new Error("cancelled"));
  controller.abort();
  await expect(waiting).rejects.toThrow("cancelled");
  expect(await withAbort(Promise.resolve(1), new AbortController().signal, () => new Error("x"))).toBe(1);
});

describe("single-flight", () => {
  it("shares one run per key, and runs again afterwards", async () => {
    let runs = 0;
    const flights = new SingleFlight<string, number>();
    const work = async (): Promise<number> => ++runs;
    expect(await Promise.all([flights.run("a", work), flights.run("a", work), flights.run("b", work)])).toEqual([
      1, 1, 2,
    ]);
    expect(await flights.run("a", work)).toBe(3);
  });

  it("shares a failure and forgets it", async () => {
    let runs = 0;
    const flights = new SingleFlight<string, number>();
    const run = async (): Promise<number> => {
      runs += 1;
      if (runs === 1) throw new Error("once");
      return runs;
    };
    const work = (): Promise<number> => flights.run("a", run);
    const outcomes = await Promise.allSettled([work(), work()]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await work()).toBe(2);
  });
});

it("mapLimit keeps the order and the limit", async () => {
  let running = 0;
  let most = 0;
  const doubled = await mapLimit([5, 1, 3, 2], 2, async (ms) => {
    most = Math.max(most, ++running);
    await pause(ms);
    running -= 1;
    return ms * 2;
  });
  expect(doubled).toEqual([10, 2, 6, 4]);
  expect(most).toBe(2);
});

describe("retry", () => {
  it("repeats until it works, with the pauses asked for", async () => {
    const pauses: number[] = [];
    const options = { attempts: 3, delayMs: (failed: number) => (pauses.push(failed), 0) };
    expect(
      await retry(async (failed) => {
        if (failed < 2) throw new Error("not yet");
        return failed;
      }, options),
    ).toBe(2);
    expect(pauses).toEqual([1, 2]);
  });

  it("ends with the last error, with an error that is not worth it, or with an abort", async () => {
    let tries = 0;
    const fail = async (): Promise<never> => {
      throw new Error(`try ${++tries}`);
    };
    await expect(retry(fail, { attempts: 2, delayMs: () => 0 })).rejects.toThrow("try 2");
    await expect(retry(fail, { attempts: 5, delayMs: () => 0, isWorthRetrying: () => false })).rejects.toThrow("try 3");
    const controller = new AbortController();
    const waiting = retry(fail, { attempts: 5, delayMs: () => 60_000, signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toThrow("try 4");
  });
});

it("InFlight tells when the last one has ended", async () => {
  const inFlight = new InFlight();
  await inFlight.whenIdle();
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = inFlight.track(() => promise);
  const failing = inFlight.track(async () => {
    throw new Error("failed");
  });
  await expect(failing).rejects.toThrow("failed");
  expect(inFlight.count).toBe(1);
  let isIdle = false;
  const idle = inFlight.whenIdle().then(() => (isIdle = true));
  await Promise.resolve();
  expect(isIdle).toBe(false);
  resolve();
  await Promise.all([work, idle]);
  expect(inFlight.count).toBe(0);
});

it("Cancel calls the other listeners when one throws, and does not hide the fault", () => {
  const late = vi.spyOn(process, "nextTick").mockImplementation(() => {});
  try {
    const cancel = new CancelController();
    const called: string[] = [];
    cancel.addEventListener("abort", () => {
      throw new Error("a fault");
    });
    cancel.addEventListener("abort", () => called.push("second"));
    cancel.abort();
    expect(called).toEqual(["second"]);
    expect(late.mock.calls[0]?.[0]).toThrow("a fault");
  } finally {
    late.mockRestore();
  }
});

it("Cancel calls each listener once, and none that was removed", () => {
  const cancel = new CancelController();
  const called: string[] = [];
  const removed = (): void => void called.push("removed");
  cancel.addEventListener("abort", () => {
    called.push("first");
    cancel.removeEventListener("abort", removed);
  });
  cancel.addEventListener("abort", () => called.push("second"));
  cancel.addEventListener("abort", removed);
  cancel.removeEventListener("abort", removed);
  expect(cancel.aborted).toBe(false);
  cancel.abort();
  cancel.abort();
  expect([cancel.aborted, called]).toEqual([true, ["first", "second"]]);
});
