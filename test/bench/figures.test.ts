import { describe, expect, it } from "vitest";
import { judge } from "../../bench/aims.ts";
import { type Figures, figuresOf } from "../../bench/measures/figures.ts";
import { pairedRatio, quantile } from "../../bench/stats.ts";
import type { Kind, Subject } from "../../bench/subjects/subject.ts";
import { renderTable } from "../../bench/table.ts";

const subject = (name: string, kind: Kind): Subject => ({
  name,
  kind,
  can: () => true,
  start: () => Promise.reject(new Error("is not started here")),
});
const SUBJECTS = [
  subject("direct HTTP", "floor"),
  subject("bare relay", "relay"),
  subject("Toolcrib", "toolcrib"),
  subject("slow", "peer"),
  subject("fast", "peer"),
];

function figures(measure: string, better: Figures["better"], values: readonly number[]): Figures {
  const samples = new Map(
    SUBJECTS.map(({ name }, index) => [name, { values: [values[index] ?? 0], floor: [values[0] ?? 0] }]),
  );
  return figuresOf({ measure, title: measure, unit: "µs", better, floor: "direct HTTP", subjects: SUBJECTS, samples });
}

describe("ratios", () => {
  it("[gate-12a] are paired by rounds, so that a slow spell of the machine cancels out", () => {
    const base = [10, 10, 90, 90, 10];
    const twice = base.map((value) => value * 2);
    expect(pairedRatio(twice, base)).toEqual({ median: 2, low: 2, high: 2 });
  });

  it("[gate-12a] show how far the rounds were apart", () => {
    expect(pairedRatio([1, 2, 3, 4], [1, 1, 1, 1])).toEqual({ median: 3, low: 2, high: 4 });
  });

  it("[gate-12a] take quantiles of any order", () => {
    expect(quantile([5, 1, 4, 2, 3], 0.5)).toBe(3);
    expect(quantile([5, 1, 4, 2, 3], 0.99)).toBe(5);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe("the aims", () => {
  it("[gate-12a] are judged against the floor and the best peer of the same run", () => {
    const aims = judge(
      [
        figures("p50-stdio", "lower", [100, 200, 250, 900, 630]),
        figures("throughput-stdio", "higher", [1000, 900, 500, 100, 190]),
        figures("start-30", "lower", [0, 0, 600, 2000, 500]),
        figures("memory", "lower", [60, 61, 91, 120, 81]),
      ],
      [],
    );
    expect(aims.map(({ got, relay, peer, met }) => ({ got, relay, peer, met }))).toEqual([
      { got: 2.5, relay: 2, peer: 6.3, met: true },
      { got: 0.5, relay: 0.9, peer: 0.19, met: false },
      { got: 1.2, relay: undefined, peer: 1, met: false },
      { got: 91, relay: 61, peer: 81, met: false },
    ]);
  });

  it("[gate-12a] leave out what was not measured", () => {
    expect(judge([], [])).toEqual([]);
    const alone = figuresOf({
      measure: "start-30",
      title: "start",
      unit: "ms",
      better: "lower",
      subjects: SUBJECTS,
      samples: new Map([["Toolcrib", { values: [500] }]]),
    });
    expect(judge([alone], [])).toEqual([]);
  });

  it("[gate-14a] ask that calls are as quick with idle things as without", () => {
    const row = { sessions: 0, servers: 1, tools: 1, callsPerSecond: 1000, cpuUs: 100, rssMb: 60, loadedMb: 90 };
    const ratio = (median: number) => ({ median, low: median, high: median });
    const rows = [
      { ...row, ratio: ratio(1) },
      { ...row, sessions: 1000, ratio: ratio(0.4) },
    ];
    expect(judge([], [{ dimension: "sessions", rows, failures: {} }])).toMatchObject([{ got: 0.4, met: false }]);
  });
});

it("[gate-12a] prints tables that a document takes as they are", () => {
  expect(renderTable(["what", "µs"], [["a call", "12"]]).split("\n")).toEqual([
    "| what   |  µs |",
    "| ------ | --: |",
    "| a call |  12 |",
  ]);
});
