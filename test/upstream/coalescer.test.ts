import { describe, expect, it } from "vitest";
import { Coalescer } from "../../src/upstream/live-lists.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

function setUp() {
  const clock = new FakeClock();
  const runs: PromiseWithResolvers<void>[] = [];
  const coalescer = new Coalescer(
    clock,
    () => 50,
    () => {
      const run = Promise.withResolvers<void>();
      runs.push(run);
      return run.promise;
    },
  );
  return { clock, runs, coalescer };
}

describe("Coalescer", () => {
  it("runs at once, and once more for all that came meanwhile", async () => {
    const { clock, runs, coalescer } = setUp();
    coalescer.trigger();
    expect(runs).toHaveLength(1);
    for (let n = 0; n < 50; n++) coalescer.trigger();
    runs[0]?.resolve();
    await clock.advance(49);
    coalescer.trigger();
    expect(runs).toHaveLength(1);
    await clock.advance(1);
    expect(runs).toHaveLength(2);
    runs[1]?.resolve();
    await clock.advance(500);
    expect(runs).toHaveLength(2);
  });

  it("gives those who wait a run that began after they asked, and shares it", async () => {
    const { runs, coalescer } = setUp();
    coalescer.trigger();
    let done = 0;
    void coalescer.now().then(() => done++);
    void coalescer.now().then(() => done++);
    runs[0]?.resolve();
    await settle();
    expect(runs).toHaveLength(2);
    expect(done).toBe(0);
    runs[1]?.resolve();
    await settle();
    expect(done).toBe(2);
  });

  it("does nothing more after it was stopped", async () => {
    const { clock, runs, coalescer } = setUp();
    coalescer.trigger();
    runs[0]?.resolve();
    await settle();
    coalescer.trigger();
    coalescer.stop();
    await clock.advance(100);
    expect(runs).toHaveLength(1);
  });
});
