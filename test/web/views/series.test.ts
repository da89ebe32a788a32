import { describe, expect, it } from "vitest";
import type { Stats } from "../../../src/contract/stats-schemas.ts";
import { roundTop, summedTo } from "../../../web/src/components/chart-series.ts";
import { recentCallsOf } from "../../../web/src/views/servers/server-words.ts";
import {
  callSeries,
  callsText,
  isRange,
  latencySeries,
  latencyText,
  timesOf,
} from "../../../web/src/views/overview/series.ts";

const NONE = { calls: 0, failed: 0, refused: 0, waiting: 0, cancelled: 0, p50: null, p95: null, p99: null };
const points: Stats["points"] = [
  { at: "2026-01-01T00:00:00.000Z", ...NONE },
  { ...NONE, at: "2026-01-01T00:01:00.000Z", calls: 10, failed: 2, refused: 3, p50: 5, p95: 1500, p99: 90_000 },
];

describe("calls of servers in the list", () => {
  const group = (server: string, calls: number): Stats["servers"][number] => ({
    ...NONE,
    server,
    calls,
    resultBytes: null,
    slowest: null,
    last: null,
    series: [0, calls],
  });

  it("[joy-06e] are those of the figures, and none for a server that they do not name", () => {
    const recent = recentCallsOf({ points, servers: [group("files", 3)] });
    expect(recent("files")).toMatchObject({ calls: 3, series: [0, 3] });
    expect(recent("memory")).toEqual({ calls: 0, series: [0, 0] });
    expect(recentCallsOf(undefined)("files")).toBeUndefined();
  });

  it("[joy-06e] are unknown where the figures have room for other servers only", () => {
    const recent = recentCallsOf({ points, servers: Array.from({ length: 50 }, (_, at) => group(`s${at}`, 1)) });
    expect(recent("s49")).toMatchObject({ calls: 1 });
    expect(recent("s50")).toBeUndefined();
  });
});

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

  it("[joy-06e] add up neighbours where there is room for few, and keep the newest at the end", () => {
    expect(summedTo([1, 2, 3, 4, 5], 5)).toEqual([1, 2, 3, 4, 5]);
    expect(summedTo([1, 2, 3, 4, 5], 3)).toEqual([1, 5, 9]);
    expect(summedTo([], 3)).toEqual([]);
    expect(
      summedTo(
        Array.from({ length: 144 }, () => 1),
        48,
      ),
    ).toEqual(Array.from({ length: 48 }, () => 3));
  });

  it("[joy-05e] say in words what they show", () => {
    const figures = { ...NONE, resultBytes: null, slowest: null, last: null };
    expect(callsText(figures)).toBe("No calls in this range.");
    expect(callsText({ ...figures, calls: 1200, failed: 2, refused: 3, waiting: 1 })).toBe(
      "1,200 calls in this range: 2 failed, 3 refused, 1 held for approval.",
    );
    expect(latencyText(figures)).toBe("No call ran in this range.");
    expect(latencyText({ ...figures, p50: 5, p95: 1500, p99: 90_000 })).toBe(
      "Half of the calls took at most 5 ms, 95% at most 1.5 sec, 99% at most 1 min.",
    );
    expect([isRange("7d"), isRange("8d"), isRange(undefined)]).toEqual([true, false, false]);
  });
});
