/** The lines and bars of a chart. */
export type ChartColour = "accent" | "bad" | "warn" | "info";

export interface ChartSeries {
  readonly label: string;
  readonly colour: ChartColour;
  readonly values: readonly (number | null)[];
  /** Drawn in place of the values, such as for bars on top of each other. */
  readonly drawn?: readonly (number | null)[];
}

/** The value at the upper edge: round, and above every value. */
export function roundTop(value: number | null): number {
  const most = Math.max(1, value ?? 1);
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit * ([1, 2, 5].find((each) => each * unit > most) ?? 10);
}

/** Neighbours added up, so that there are at most so many. The last sum ends with the last value. */
export function summedTo(values: readonly number[], most: number): number[] {
  const width = Math.max(1, Math.ceil(values.length / most));
  const sums: number[] = [];
  for (let end = values.length; end > 0; end -= width)
    sums.unshift(values.slice(Math.max(0, end - width), end).reduce((sum, value) => sum + value, 0));
  return sums;
}
