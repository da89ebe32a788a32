/** A file of a skill as the rules read it: logical lines in one plain spelling, each with what stands around it. */
import { normalise } from "../../guard/detect/normalise.ts";
import { type Place, Places, type TextKind } from "./places.ts";
import { isCutShort, logicalLines } from "./logical-lines.ts";
import { collectVariables, plainCommand, type Variables } from "./plain-command.ts";

export interface ScannedLine extends Place {
  /** In the file, from 1. */
  readonly number: number;
  /** As it was written, continuation lines joined. */
  readonly raw: string;
  /** Lower case, without look-alike letters and invisible characters. */
  readonly text: string;
  /** The same with quoting inside words, escapes and known variables resolved. */
  readonly plain: string;
}

export interface ScannedText {
  readonly path: string;
  readonly kind: TextKind;
  /** As it was written. */
  readonly raw: string;
  readonly lines: readonly ScannedLine[];
  /** All lines, as they are read by rules. */
  readonly all: string;
  /** There are more lines than were read. */
  readonly cutShort: boolean;
}

const LINES_PER_STEP = 256;

export function scannedText(path: string, kind: TextKind, text: string): ScannedText {
  const steps = scanningText(path, kind, text);
  let next = steps.next();
  while (next.done !== true) next = steps.next();
  return next.value;
}

/** The same in steps, between which others may have a turn. */
export function* scanningText(path: string, kind: TextKind, text: string): Generator<undefined, ScannedText> {
  const places = new Places(kind);
  const drafts: { number: number; raw: string; text: string; place: Place }[] = [];
  for (const { number, raw } of logicalLines(text, kind)) {
    const folded = normalise(raw).text;
    drafts.push({ number, raw, text: folded, place: places.next(raw, folded) });
    if (drafts.length % LINES_PER_STEP === 0) yield undefined;
  }
  const variables: Variables = collectVariables(drafts.map((draft) => draft.text));
  const spellings: string[] = [];
  const lines: ScannedLine[] = [];
  for (const { number, raw, text: folded, place } of drafts) {
    const plain = plainCommand(folded, variables);
    spellings.push(folded);
    if (plain !== folded) spellings.push(plain);
    const { fenced, hidden, frontmatter, heading, intro } = place;
    lines.push({ number, raw, text: folded, plain, fenced, hidden, frontmatter, heading, intro });
    if (lines.length % LINES_PER_STEP === 0) yield undefined;
  }
  return { path, kind, raw: text, lines, all: spellings.join("\n"), cutShort: isCutShort(lines) };
}

/** The lines from `before` lines above to `after` lines below the one at an index. */
export function around(
  { lines }: Pick<ScannedText, "lines">,
  index: number,
  before: number,
  after: number,
): readonly ScannedLine[] {
  return lines.slice(Math.max(0, index - before), index + after + 1);
}

/** The logical line that holds a line of the file. */
export function lineAt({ lines }: ScannedText, number: number): ScannedLine | undefined {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((lines[middle]?.number ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return lines[low - 1];
}
