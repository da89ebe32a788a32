/** Walks over a text in strides and tells where marked words stand. */
import { CUE_BOOK } from "../phrases/cue-book.ts";
import type { Steps } from "../steps.ts";
import { type Classes, type Marks, ODD, type PairClasses } from "./grams.ts";
import { Surroundings } from "./witness.ts";

/** Units that are looked at in one step. */
const STRIDE = 16_384;
/** Units around a stride that are looked at with it: as many as a witness may be off, and a word more. */
const AROUND = 640;
const ROOM = AROUND + STRIDE + AROUND;
const SPACE = 0x20;
/** What a marked word costs, with the look around it. */
const WORD_COST = 150;

/** Shared by all texts: each fills them anew before it looks, and nothing yields in between. */
export const units = new Uint16Array(ROOM);
const unitBytes = Buffer.from(units.buffer);
/** The same as single bytes, where they are all ASCII; with some room, so that a longer character shows by its length. */
const pairs = new Uint16Array(ROOM / 2 + 4);
const pairBytes = Buffer.from(pairs.buffer);

export const surroundings = new Surroundings(units, CUE_BOOK.vocabulary);

export interface Scanner {
  readonly marks: Marks;
  readonly classes: Classes;
  readonly pairClasses: PairClasses;
  /** `at` is a place of `units`; `shift` more is that of the text. */
  found(id: number, at: number, shift: number): void;
  /** False stops the scan. */
  foundOdd(unit: number): boolean;
}

/** Words that start from `from` to before `to`, and maybe some around them. False if it was stopped. */
export function* scan(text: string, scanner: Scanner, from = 0, to: number = text.length): Steps<boolean> {
  // Where one stride has other characters, the next ones have some as well, as a rule.
  let ascii = true;
  for (let start = from - (from % 2); start < to; start += STRIDE) {
    const end = Math.min(to, start + STRIDE);
    ascii = fill(text, start - AROUND, Math.min(text.length, end + AROUND), ascii);
    const words = scanStride(scanner, start, end, ascii);
    if (words === -1) return false;
    yield STRIDE + words * WORD_COST;
  }
  return true;
}

/** How many words were found; -1 if it was stopped. */
function scanStride(scanner: Scanner, from: number, end: number, ascii: boolean): number {
  const { marks } = scanner;
  const shift = from - AROUND;
  const next = ascii
    ? (at: number, to: number) => marks.nextOfPairs(units, scanner.classes, pairs, scanner.pairClasses, at, to)
    : (at: number, to: number) => marks.next(units, scanner.classes, at, to);
  let words = 0;
  const to = end - shift;
  // A sequence that starts before a word holds its edge; it may be that of the first word.
  for (let at = next(AROUND - 4, to); at !== -1; at = next(at + 2, to)) {
    words += marks.count;
    const { classes } = scanner;
    for (let index = 0; index < marks.count; index += 1)
      scanner.found(marks.ids[index] ?? 0, marks.starts[index] ?? 0, shift);
    for (let index = at; index < at + 4; index += 1) {
      const unit = units[index] ?? 0;
      if (classes[unit] === ODD && !scanner.foundOdd(unit)) return -1;
    }
  }
  return words;
}

/** Puts the text from `shift` on into the lists, with spaces around it. True if that is known to be all ASCII. */
function fill(text: string, shift: number, end: number, mayBeAscii: boolean): boolean {
  const before = Math.max(0, -shift);
  const part = text.slice(Math.max(0, shift), end);
  const filled = before + part.length;
  units.fill(SPACE, 0, before);
  unitBytes.write(part, 2 * before, "utf16le");
  units.fill(SPACE, filled, Math.min(ROOM, filled + AROUND));
  if (!mayBeAscii) return false;
  pairBytes.fill(SPACE, 0, before);
  if (pairBytes.write(part, before, "utf8") !== part.length) return false;
  pairBytes.fill(SPACE, filled, Math.min(ROOM, filled + AROUND));
  return true;
}
