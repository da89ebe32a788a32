/** Calls and latency of a selection over time, for the overview and for the details of servers and tools. */
import type { Stats, StatsRange } from "../../../../src/contract/stats-schemas.ts";
import { TimeChart } from "../../components/chart.tsx";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import {
  callSeries,
  callsText,
  durationText,
  latencySeries,
  latencyText,
  numberText,
  RANGES,
  timesOf,
} from "./series.ts";

interface ChartProps {
  readonly stats: Stats;
  /** The same for charts that point at the same time. */
  readonly group: string;
}

export function CallsChart({ stats, group }: ChartProps) {
  return (
    <TimeChart
      summary={callsText(stats.total)}
      times={timesOf(stats)}
      series={callSeries(stats)}
      kind="bars"
      format={numberText}
      group={group}
    />
  );
}

export function LatencyChart({ stats, group }: ChartProps) {
  return (
    <TimeChart
      summary={latencyText(stats.total)}
      times={timesOf(stats)}
      series={latencySeries(stats)}
      kind="lines"
      format={durationText}
      group={group}
    />
  );
}

interface RangeChoiceProps {
  readonly value: StatsRange;
  readonly onChange: (range: StatsRange) => void;
}

export function RangeChoice({ value, onChange }: RangeChoiceProps) {
  return (
    <div
      role="group"
      aria-label={t(overview.range)}
      className="flex w-fit rounded-md border border-line-strong bg-panel p-0.5"
    >
      {RANGES.map(([range, label]) => (
        <button
          key={range}
          type="button"
          aria-pressed={range === value}
          onClick={() => onChange(range)}
          className="min-h-7 rounded px-2.5 text-sm text-soft hover:text-ink aria-pressed:bg-accent-wash aria-pressed:font-medium aria-pressed:text-ink"
        >
          {t(label)}
        </button>
      ))}
    </div>
  );
}
