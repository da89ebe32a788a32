import { describe, expect, it } from "vitest";
import type { Stats } from "../../../src/contract/stats-schemas.ts";
import { roundTop } from "../../../web/src/components/chart-series.ts";
import {
  callSeries,
  callsText,
  isRange,
  latencySeries,
  latencyText,
  shareText,
  timesOf,
} from "../../../web/src/views/overview/series.ts";

const NONE = { calls: 0, failed: 0, refused: 0, waiting: 0, cancelled: 0, p50: null, p95: null, p99: null };
const points: Stats["points"] = [
  { at: "2026-01-01T00:00:00.000Z", ...NONE },
  { ...NONE, at: "2026-01-01T00:01:00.000Z", calls: 10, failed: 2, refused: 3, p50: 5, p95: 1500, p99: 90_000 },
];

describe("figures of calls as charts", () => {
  it("[joy-05e] stack what failed and what was refused, and keep the true values for reading", () => {
    expect(timesOf({ points })).toEqual([1_767_225_600, 1_767_225_660]);
    const [calls, refused, failed] = callSeries({ points });
    expect(calls?.values).toEqual([0, 10]);
    expect([refused?.values, refused?.drawn]).toEqual([
      [0, 3],
      [0, 5],
    ]);
    expect(failed?.values).toEqual([0, 2]);
    expect(latencySeries({ points }).map(({ values }) => values[0])).toEqual([null, null, null]);
  });

  it("[joy-05e] end above the highest value, at a round one", () => {
    expect([null, 0, 1, 7, 10, 19, 51, 1999].map(roundTop)).toEqual([2, 2, 2, 10, 20, 20, 100, 2000]);
  });

  it("[joy-05e] say in words what they show", () => {
    const figures = { ...NONE, resultBytes: null, slowest: null, last: null };
    expect(callsText(figures)).toBe("No calls in this range.");
    expect(callsText({ ...figures, calls: 1200, failed: 2, refused: 3, waiting: 1 })).toBe(
      "1,200 calls in this range: 2 failed, 3 refused, 1 held for approval.",
    );
    expect(latencyText(figures)).toBe("No call ran in this range.");
    expect(latencyText({ ...figures, p50: 5, p95: 1500, p99: 90_000 })).toBe(
      "Half of the calls took at most 5 ms, 95% at most 1.5 s, 99% at most 1 min.",
    );
    expect([shareText(1, 3), shareText(0, 0)]).toEqual(["33.3%", "0%"]);
    expect([isRange("7d"), isRange("8d"), isRange(undefined)]).toEqual([true, false, false]);
  });
});
