/** Values over time, drawn by uPlot: hover shows a step, dragging zooms. Behind each chart is the same as a table. */
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { charts } from "../messages/charts.ts";
import { currentLanguage, t } from "../messages/messages.ts";
import { useTheme } from "../shell/theme.ts";
import { Button } from "./button.tsx";
import { type ChartColour, type ChartSeries, roundTop } from "./chart-series.ts";
import { Cell, RowHead, Table } from "./table.tsx";

interface TimeChartProps {
  /** The content in a sentence. */
  readonly summary: string;
  /** Beginning of each step, in seconds since 1970. */
  readonly times: readonly number[];
  /** Later ones are drawn over earlier ones. */
  readonly series: readonly ChartSeries[];
  readonly kind: "bars" | "lines";
  readonly format: (value: number) => string;
  /** The same for charts that point at the same time. */
  readonly group: string;
}

const HEIGHT = 168;
/** Between the values of an axis: no one makes half a call, and half a millisecond would be shown as a whole one. */
const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((unit) => unit * 10 ** power)).flat();

export function TimeChart({ summary, times, series, kind, format, group }: TimeChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [hovered, setHovered] = useState<number>();
  const [isZoomed, setZoomed] = useState(false);
  const theme = useTheme();
  const shape = series.map(({ label, colour }) => `${label} ${colour}`).join("|");
  const data = useRef({ times, series, format });
  data.current = { times, series, format };

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: true },
          sync: { key: group },
          points: { show: kind === "lines" },
        },
        scales: { y: { range: (_, __, most) => [0, roundTop(most)] } },
        axes: [
          axis({ values: (_, ticks) => timeLabels(ticks), size: 28 }),
          axis({ incrs: WHOLE_STEPS, values: (_, ticks) => ticks.map((tick) => data.current.format(tick)), size: 56 }),
        ],
        series: [
          {},
          ...series.map(({ label, colour }): uPlot.Series => {
            const shown = (): string => cssColour(colour);
            if (kind === "lines")
              return { label, stroke: shown, width: 1.6, points: { size: 5, fill: shown, filter: lonePoints } };
            return { label, stroke: shown, fill: shown, width: 0, paths: BARS, points: { show: false } };
          }),
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx } }) =>
              setHovered(idx === null || idx === undefined ? undefined : Math.min(idx, data.current.times.length - 1)),
          ],
          setScale: [
            (self, key) => {
              if (key !== "x") return;
              const [first, last] = [self.data[0][0] ?? 0, self.data[0].at(-1) ?? 0];
              const { min, max } = self.scales["x"] ?? {};
              setZoomed((min ?? first) > first || (max ?? last) < last);
            },
          ],
        },
      },
      drawnData(data.current),
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // Labels and colours change with the language or the kind of figure only: then it is made again.
  }, [shape, kind, group]);

  // New values keep the zoom.
  useEffect(() => {
    plot.current?.setData(drawnData({ times, series }), !isZoomed);
  }, [times, series, isZoomed]);
  useEffect(() => plot.current?.redraw(false, true), [theme]);

  const index = hovered ?? times.length - 1;
  const at = times[index];
  return (
    <figure className="min-w-0">
      <div className="flex min-h-7 flex-wrap items-center gap-x-4 gap-y-1 text-sm">
        <span className="text-faint">
          {at === undefined || hovered === undefined ? t(charts.latest) : timeText(at)}
        </span>
        {series.map(({ label, colour, values }) => {
          const value = values[index];
          return (
            <span key={label} className="inline-flex items-center gap-1.5">
              <span aria-hidden="true" className={`size-2.5 rounded-sm ${SWATCHES[colour]}`} />
              <span className="text-soft">{label}</span>
              <span className="font-medium">{value === undefined || value === null ? "–" : format(value)}</span>
            </span>
          );
        })}
        {isZoomed && (
          <Button size="sm" variant="ghost" onClick={() => plot.current?.setData(drawnData({ times, series }), true)}>
            {t(charts.wholeRange)}
          </Button>
        )}
      </div>
      <div ref={place} role="img" aria-label={summary} className="chart mt-1 min-w-0 overflow-hidden" />
      <figcaption className="mt-1 text-sm text-soft">{summary}</figcaption>
      <ChartTable summary={summary} times={times} series={series} format={format} />
    </figure>
  );
}

function ChartTable({
  summary,
  times,
  series,
  format,
}: Pick<TimeChartProps, "summary" | "times" | "series" | "format">) {
  const [isOpen, setOpen] = useState(false);
  const rows = times.map((at, index) => ({ at, values: series.map(({ values }) => values[index] ?? null) }));
  const shown = rows.filter(({ values }) => values.some((value) => value !== null && value !== 0)).toReversed();
  return (
    <details className="mt-1 text-sm" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="w-fit text-soft">{t(charts.asTable)}</summary>
      {isOpen && (
        <Table
          label={summary}
          className="mt-1 max-h-60 rounded-md border border-line"
          heads={[t(charts.time), ...series.map(({ label }) => ({ number: label }))]}
        >
          {shown.map(({ at, values }) => (
            <tr key={at}>
              <RowHead>{timeText(at)}</RowHead>
              {values.map((value, index) => (
                <Cell key={series[index]?.label} number>
                  {value === null ? "–" : format(value)}
                </Cell>
              ))}
            </tr>
          ))}
          {shown.length === 0 && (
            <tr>
              <td colSpan={series.length + 1} className="px-3 py-1.5 text-soft">
                {t(charts.nothing)}
              </td>
            </tr>
          )}
        </Table>
      )}
    </details>
  );
}

const SWATCHES: Readonly<Record<ChartColour, string>> = {
  accent: "bg-accent",
  bad: "bg-bad",
  warn: "bg-warn",
  info: "bg-info",
};

// 0.8 of a step, at most 24 pixels.
const BARS = uPlot.paths.bars?.({ size: [0.8, 24], align: 1 });

function drawnData({ times, series }: Pick<TimeChartProps, "times" | "series">): uPlot.AlignedData {
  // Bars begin at their time: the last one has room until the end of its step.
  const end = 2 * (times.at(-1) ?? 0) - (times.at(-2) ?? 0);
  return [[...times, end], ...series.map(({ values, drawn = values }) => [...drawn, null])];
}

/** A value between two gaps is on no line. */
function lonePoints(self: uPlot, index: number): number[] {
  const values = self.data[index] ?? [];
  const isGap = (at: number): boolean => values[at] === null || values[at] === undefined;
  return Array.from(values, (_, at) => at).filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
}

/** A canvas takes colours as they are, so they are looked up when it is drawn. */
function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(more: uPlot.Axis): uPlot.Axis {
  return {
    stroke: () => cssColour("faint"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => cssColour("line"), width: 1 },
    ticks: { stroke: () => cssColour("line"), width: 1, size: 4 },
    ...more,
  };
}

function timeText(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString(currentLanguage(), {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
}

/** The time of day, or the day where they are further apart. */
function timeLabels(ticks: readonly number[]): string[] {
  const isDays = (ticks[1] ?? 0) - (ticks[0] ?? 0) >= 86_400;
  return ticks.map((tick) =>
    new Date(tick * 1000).toLocaleString(
      currentLanguage(),
      isDays ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    ),
  );
}
