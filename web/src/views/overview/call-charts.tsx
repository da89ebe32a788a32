/** Calls and latency of a selection over time, for the overview and for the details of servers and tools. */
import type { Stats } from "../../../../src/contract/stats-schemas.ts";
import { TimeChart } from "../../components/chart.tsx";
import { numberText } from "../../text.ts";
import { callSeries, callsText, durationText, latencySeries, latencyText, timesOf } from "./series.ts";

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
