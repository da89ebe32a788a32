/** Numbers of the last minutes as shapes in a box of 100 by 40, and in words. */
import type { Overview } from "../../../../src/contract/activity-schemas.ts";
import { countText, millisecondsText } from "../../text.ts";

export type Minute = Overview["minutes"][number];

export const WIDTH = 100;
export const HEIGHT = 40;

export interface Bar {
  readonly x: number;
  readonly width: number;
  readonly y: number;
  readonly height: number;
  /** The part that failed, at the foot. */
  readonly failed: number;
}

export function barsOf(minutes: readonly Minute[]): Bar[] {
  const most = mostCalls(minutes);
  const step = WIDTH / Math.max(1, minutes.length);
  return minutes.map(({ calls, failed }, index) => {
    const height = (calls / most) * HEIGHT;
    return {
      x: index * step + step * 0.12,
      width: step * 0.76,
      y: HEIGHT - height,
      height,
      failed: (failed / most) * HEIGHT,
    };
  });
}

/** The lines of one value; a minute without calls makes a gap. A lone point becomes a short dash. */
export function linesOf(minutes: readonly Minute[], key: "p50" | "p95", most: number): string[] {
  const step = WIDTH / Math.max(1, minutes.length);
  const lines: string[] = [];
  let points: (readonly [number, number])[] = [];
  const end = (): void => {
    const [first] = points;
    if (first !== undefined)
      lines.push(
        points.length === 1
          ? `M${round(first[0] - step * 0.3)} ${first[1]}H${round(first[0] + step * 0.3)}`
          : `M${points.map(([x, y]) => `${x} ${y}`).join("L")}`,
      );
    points = [];
  };
  minutes.forEach((minute, index) => {
    const value = minute[key];
    if (value === null) end();
    else points.push([round((index + 0.5) * step), round(HEIGHT - (value / most) * HEIGHT)]);
  });
  end();
  return lines;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** What the upper edge of a chart stands for: round, and above every value, so that none lies on the edge. */
function roundTop(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return unit * ([1, 2, 5].find((each) => each * unit > value) ?? 10);
}

export function mostCalls(minutes: readonly Minute[]): number {
  return roundTop(Math.max(0, ...minutes.map((minute) => minute.calls)));
}

export function slowest(minutes: readonly Minute[]): number {
  return roundTop(Math.max(0, ...minutes.map((minute) => minute.p95 ?? minute.p50 ?? 0)));
}

/** What a chart of calls shows. */
export function callsText(minutes: readonly Minute[]): string {
  const calls = sum(minutes.map((minute) => minute.calls));
  const failed = sum(minutes.map((minute) => minute.failed));
  if (calls === 0) return `No calls in the last ${minutes.length} minutes.`;
  const most = Math.max(...minutes.map((minute) => minute.calls));
  return `${countText(calls, "call")} in the last ${minutes.length} minutes, ${failed.toLocaleString("en")} failed; at most ${most.toLocaleString("en")} a minute.`;
}

export function latencyText(minutes: readonly Minute[]): string {
  const last = minutes.findLast((minute) => minute.p50 !== null);
  if (last === undefined || last.p50 === null) return "No call has finished yet.";
  const p95 = last.p95 === null ? "" : `, 95% within ${millisecondsText(last.p95)}`;
  return `Last: half of the calls within ${millisecondsText(last.p50)}${p95}.`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
