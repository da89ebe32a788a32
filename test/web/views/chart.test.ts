import { describe, expect, it } from "vitest";
import {
  barsOf,
  callsText,
  HEIGHT,
  latencyText,
  linesOf,
  type Minute,
  mostCalls,
  slowest,
} from "../../../web/src/views/overview/chart.ts";

function minute(calls: number, failed = 0, p50: number | null = null, p95: number | null = null): Minute {
  return { at: "2026-01-01T00:00:00Z", calls, failed, p50, p95 };
}

describe("the charts of the overview", () => {
  it("[oper-09a] draws calls and failures below a round upper edge", () => {
    const minutes = [minute(5, 1), minute(10)];
    const [few, many] = barsOf(minutes);
    expect(mostCalls(minutes)).toBe(20);
    expect(many).toMatchObject({ y: HEIGHT / 2, height: HEIGHT / 2 });
    expect(few).toMatchObject({ y: HEIGHT * 0.75, height: HEIGHT / 4, failed: HEIGHT / 20 });
    expect([0, 1, 4, 7, 130].map((calls) => mostCalls([minute(calls)]))).toEqual([1, 2, 5, 10, 200]);
    expect(slowest([minute(1, 0, 3, 50)])).toBe(100);
  });

  it("draws nothing for minutes without calls", () => {
    expect(barsOf([minute(0)])[0]?.height).toBe(0);
    expect(barsOf([])).toEqual([]);
  });

  it("[oper-09a] leaves a gap where nothing was measured", () => {
    const minutes = [minute(1, 0, 10), minute(1, 0, 20), minute(0), minute(1, 0, 40)];
    const lines = linesOf(minutes, "p50", slowest(minutes));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^M[\d. ]+L[\d. ]+$/);
    expect(lines[1]).toMatch(/^M[\d. ]+H[\d. ]+$/);
    expect(linesOf(minutes, "p95", 1)).toEqual([]);
  });

  it("[oper-09a] says in words what they show", () => {
    expect(callsText([minute(0), minute(0)])).toBe("No calls in the last 2 minutes.");
    expect(callsText([minute(1), minute(1200, 3)])).toBe(
      "1,201 calls in the last 2 minutes, 3 failed; at most 1,200 a minute.",
    );
    expect(latencyText([minute(0)])).toBe("No call has finished yet.");
    expect(latencyText([minute(1, 0, 12, 1500), minute(0)])).toBe(
      "Last: half of the calls within 12 ms, 95% within 1.5 s.",
    );
  });
});
