/** Figures of calls as the series of charts, and in words. */
import type { StatsRange } from "../../../../src/contract/stats-ranges.ts";
import type { Stats, StatsFigures } from "../../../../src/contract/stats-schemas.ts";
import type { ChartSeries } from "../../components/chart-series.ts";
import { type Message, t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { millisecondsText } from "../../text.ts";

export const RANGES: readonly (readonly [range: StatsRange, label: Message])[] = [
  ["1h", overview.hour],
  ["24h", overview.day],
  ["7d", overview.week],
  ["30d", overview.month],
];

export function isRange(text: string | undefined): text is StatsRange {
  return RANGES.some(([range]) => range === text);
}

export function timesOf({ points }: Pick<Stats, "points">): number[] {
  return points.map(({ at }) => Date.parse(at) / 1000);
}

/** Bars on top of each other: what failed at the foot, then what was refused, then the rest. */
export function callSeries({ points }: Pick<Stats, "points">): ChartSeries[] {
  return [
    { label: t(overview.calls), colour: "accent", values: points.map(({ calls }) => calls) },
    {
      label: t(overview.refused),
      colour: "warn",
      values: points.map(({ refused }) => refused),
      drawn: points.map(({ failed, refused }) => failed + refused),
    },
    { label: t(overview.failed), colour: "bad", values: points.map(({ failed }) => failed) },
  ];
}

export function latencySeries({ points }: Pick<Stats, "points">): ChartSeries[] {
  return [
    { label: "p99", colour: "bad", values: points.map(({ p99 }) => p99) },
    { label: "p95", colour: "warn", values: points.map(({ p95 }) => p95) },
    { label: "p50", colour: "accent", values: points.map(({ p50 }) => p50) },
  ];
}

export function callsText({ calls, failed, refused, waiting }: StatsFigures): string {
  return calls === 0 ? t(overview.noCalls) : t(overview.callsSummary, { calls, failed, refused, waiting });
}

export function latencyText({ p50, p95, p99 }: StatsFigures): string {
  if (p50 === null || p95 === null || p99 === null) return t(overview.noLatency);
  const [half, most, almost] = [p50, p95, p99].map(millisecondsText);
  return t(overview.latencySummary, { p50: half ?? "", p95: most ?? "", p99: almost ?? "" });
}

export function durationText(value: number | null): string {
  return value === null ? "–" : millisecondsText(value);
}
