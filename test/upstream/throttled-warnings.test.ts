import { describe, expect, it } from "vitest";
import { ThrottledWarnings } from "../../src/upstream/wire.ts";
import { FakeClock } from "../support/fake-clock.ts";

describe("JunkWarnings", () => {
  it("[spine-09e] lets five a minute through and tells later how many there were", async () => {
    const clock = new FakeClock();
    const shown: string[] = [];
    const warnings = new ThrottledWarnings(clock, (text) => shown.push(text));
    for (let n = 0; n < 1000; n++) warnings.add("junk", `line ${n}`);
    expect(shown).toEqual([0, 1, 2, 3, 4].map((n) => `junk: "line ${n}"`));
    await clock.advance(60_000);
    warnings.add("junk", "again");
    expect(shown.at(-1)).toBe('junk (and 995 before it that were not shown): "again"');
  });

  it("shows only the beginning of a long sample", () => {
    const shown: string[] = [];
    new ThrottledWarnings(new FakeClock(), (text) => shown.push(text)).add("junk", "x".repeat(10_000));
    expect(shown[0]?.length).toBeLessThan(200);
  });
});
