/** Plain tables: aligned columns, fitted to a width where there is one. */
import { clip, firstLine, pad, textWidth } from "./text-width.ts";

const GAP = 2;
/** No column is squeezed below this, so that its content can still be told apart. */
const NARROWEST = 8;

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** Given up first when the table is too wide. Other columns shrink only when these are at their narrowest. */
  readonly shrink?: boolean;
}

export interface TableOptions {
  /** Cells available; without it nothing is cut, so that piped output stays whole. */
  readonly width?: number | undefined;
  readonly paintTitle?: (text: string) => string;
}

/** The lines of the table, without trailing blanks. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  options: TableOptions = {},
): string[] {
  const cells = rows.map((row) => columns.map((column) => firstLine(column.cell(row))));
  const wanted = columns.map((column, index) =>
    Math.max(textWidth(column.title), ...cells.map((line) => textWidth(line[index] ?? ""))),
  );
  const widths = options.width === undefined ? wanted : fit(columns, wanted, options.width);
  const paintTitle = options.paintTitle ?? ((text: string) => text);
  return [
    paintTitle(
      renderLine(
        columns.map((column) => column.title),
        widths,
      ),
    ),
    ...cells.map((line) => renderLine(line, widths)),
  ];
}

function renderLine(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((cell, index) => pad(clip(cell, widths[index] ?? 0), widths[index] ?? 0))
    .join(" ".repeat(GAP))
    .trimEnd();
}

function fit<Row>(columns: readonly Column<Row>[], wanted: readonly number[], width: number): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, each) => sum + each, 0) + GAP * (widths.length - 1) - width;
  for (const shrinkable of [true, false]) {
    while (excess > 0) {
      const widest = widestIndex(widths, (index) => (columns[index]?.shrink ?? false) === shrinkable);
      if (widest === undefined) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      excess -= 1;
    }
  }
  return widths;
}

function widestIndex(widths: readonly number[], takes: (index: number) => boolean): number | undefined {
  let widest: number | undefined;
  for (const [index, width] of widths.entries()) {
    if (width <= NARROWEST || !takes(index)) continue;
    if (widest === undefined || width > (widths[widest] ?? 0)) widest = index;
  }
  return widest;
}
