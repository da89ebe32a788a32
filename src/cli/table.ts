/** Plain tables: aligned columns, fitted to the terminal's width. */
import { createRequire } from "node:module";
import type stringWidth from "string-width";
import { terminalText } from "../base/visible-text.ts";

const GAP = 2;
/** Columns do not get narrower, so that their content stays distinguishable. */
const MIN_COLUMN_WIDTH = 8;
/** Columns that may be dropped are, before others get narrower than this. */
const READABLE_WIDTH = 28;

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** Its form on a terminal, if that is another. */
  readonly short?: (row: Row) => string;
  /** Shrinks first if the table is too wide. */
  readonly shrink?: boolean;
  /** Left out of a table that is too wide all the same, the lowest number first. */
  readonly dropAt?: number;
  /** The usual width of what is not known yet, in a table that grows. */
  readonly usual?: number;
}

interface TableOptions {
  /** In cells; without it nothing is cut, so that piped output stays complete. */
  readonly width?: number | undefined;
  readonly paintTitle?: (text: string) => string;
}

/** The lines of the table, without trailing blanks. On a terminal, columns that say nothing are left out. */
export function renderTable<Row>(
  given: readonly Column<Row>[],
  rows: readonly Row[],
  options: TableOptions = {},
): string[] {
  const columns = options.width === undefined ? given : fittingColumns(given, rows, options.width);
  const cells = rows.map((row) => columns.map((column) => textOf(column, row, options.width)));
  const wanted = columns.map((column, index) =>
    Math.max(textWidth(column.title), ...cells.map((line) => textWidth(line[index] ?? ""))),
  );
  const widths = options.width === undefined ? wanted : fitWidths(columns, wanted, options.width);
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

/** A table whose rows come one by one: its columns are chosen before. */
export function growingTable<Row>(
  given: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): { readonly title: string; readonly line: (row: Row) => string } {
  const columns = fittingColumns(given, rows, width, { isGrowing: true });
  const wanted = columns.map((column) => Math.max(column.usual ?? 0, wantedWidth(column, rows, width)));
  const widths = fitWidths(columns, wanted, width);
  const free = width - widths.reduce((sum, each) => sum + each + GAP, -GAP);
  // What is left goes to the last column, which usually has a sentence.
  widths.push((widths.pop() ?? 0) + Math.max(0, free));
  return {
    title: renderLine(
      columns.map(({ title }) => title),
      widths,
    ),
    line: (row) =>
      renderLine(
        columns.map((column) => textOf(column, row, width)),
        widths,
      ),
  };
}

function wantedWidth<Row>(column: Column<Row>, rows: readonly Row[], width: number | undefined): number {
  return Math.max(textWidth(column.title), ...rows.map((row) => textWidth(textOf(column, row, width))));
}

function textOf<Row>({ cell, short = cell }: Column<Row>, row: Row, width: number | undefined): string {
  return firstLine(width === undefined ? cell(row) : short(row));
}

function fittingColumns<Row>(
  all: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
  { isGrowing = false }: { readonly isGrowing?: boolean } = {},
): Column<Row>[] {
  const usualWidth = ({ usual = 0 }: Column<Row>): number => (isGrowing ? usual : 0);
  const isTelling = (column: Column<Row>): boolean =>
    rows.length === 0 || usualWidth(column) > 0 || rows.some((row) => !["", "-"].includes(textOf(column, row, width)));
  const columns = all.filter(isTelling);
  const leastWidth = (column: Column<Row>): number =>
    Math.min(
      column.shrink === true ? Math.max(MIN_COLUMN_WIDTH, usualWidth(column)) : READABLE_WIDTH,
      Math.max(usualWidth(column), wantedWidth(column, rows, width)),
    );
  const droppable = columns.filter(({ dropAt }) => dropAt !== undefined);
  droppable.sort((one, other) => (other.dropAt ?? 0) - (one.dropAt ?? 0));
  while (columns.reduce((sum, column) => sum + leastWidth(column) + GAP, -GAP) > width) {
    const dropped = droppable.pop();
    if (dropped === undefined) break;
    columns.splice(columns.indexOf(dropped), 1);
  }
  return columns;
}

function renderLine(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((cell, index) => pad(clip(cell, widths[index] ?? 0), widths[index] ?? 0))
    .join(" ".repeat(GAP))
    .trimEnd();
}

function fitWidths<Row>(columns: readonly Column<Row>[], wanted: readonly number[], width: number): number[] {
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
    if (width <= MIN_COLUMN_WIDTH || !takes(index)) continue;
    if (widest === undefined || width > (widths[widest] ?? 0)) widest = index;
  }
  return widest;
}

const ASCII = /^[ -~]*$/;
let measure: typeof stringWidth | undefined;

/** How many terminal cells a text takes. string-width needs 30 ms for its first text, so ASCII does without it. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  // Loaded synchronously, because text is written synchronously.
  measure ??= (createRequire(import.meta.url)("string-width") as { default: typeof stringWidth }).default;
  return measure(text);
}

/** Cuts to at most `width` cells; a cut is shown by an ellipsis. */
export function clip(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  if (ASCII.test(text)) return `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
  let clipped = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += textWidth(segment);
    if (used > width - 1) break;
    clipped += segment;
  }
  return `${clipped.trimEnd()}…`;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

export function firstLine(text: string): string {
  const line = terminalText(text)
    .split("\n")
    .find((candidate) => candidate.trim() !== "");
  return (line ?? "").replaceAll("\t", " ").trim();
}

/** `1 skill`, `2 skills`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
