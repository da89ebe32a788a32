/** Matches of a pattern all over a text, or at places that are known beforehand, in steps. */
import type { Steps } from "./steps.ts";

/** `index` is where the match stands in the text; `found.index` may count from a later place. */
export type Visit = (found: RegExpExecArray, index: number) => void;

/** No pattern may match, or look ahead, further than this. */
const LONGEST = 4_096;
/** What a pattern or its visitor may look back. */
const CONTEXT = 128;
const WINDOW = 65_536;
const MATCH_COST = 3_000;
const TRY_COST = 30;

/** Counts the cost of work that a visitor had to do, which cannot yield by itself. */
export class Meter {
  #units = 0;

  add(units: number): void {
    this.#units += units;
  }

  /** What has come together, once it is worth a word; else 0. */
  take(): number {
    if (this.#units < 200_000) return 0;
    const units = this.#units;
    this.#units = 0;
    return units;
  }
}

interface MatchOptions {
  readonly meter?: Meter;
  /** What one character costs. */
  readonly unitCost?: number;
  /** The part of the text in which matches may start. */
  readonly from?: number;
  readonly to?: number;
}

/**
 * `pattern` has the flag `g`. Its place is set before every use, so that it can be shared by readings that take turns;
 * `matchAll` would copy it for every text, which costs more than a short text is worth.
 */
export function* eachMatch(
  pattern: RegExp,
  text: string,
  visit: Visit,
  { meter, unitCost = 1, from = 0, to = text.length }: MatchOptions = {},
): Steps<void> {
  let at = from;
  let matches = 0;
  while (at < to) {
    const last = text.length - at <= WINDOW + LONGEST;
    const limit = Math.min(to, last ? text.length : at + WINDOW);
    const base = Math.max(0, at - CONTEXT);
    const part = last && base === 0 ? text : text.slice(base, last ? text.length : limit + LONGEST);
    yield (limit - at) * unitCost;
    while (at < limit) {
      pattern.lastIndex = at - base;
      const found = pattern.exec(part);
      // A match that starts behind the window is found again, and whole, in the next one.
      if (found === null || base + found.index >= limit) break;
      at = base + found.index + Math.max(1, found[0].length);
      visit(found, base + found.index);
      if ((matches += 1) % 64 === 0) yield 64 * MATCH_COST;
      const spent = meter?.take() ?? 0;
      if (spent > 0) yield spent;
    }
    at = Math.max(at, limit);
  }
}

/** `pattern` has the flag `y`. `places` are all indices at which it could match, rising. */
export function* matchesAt(
  pattern: RegExp,
  text: string,
  places: readonly number[],
  visit: Visit,
  meter?: Meter,
): Steps<void> {
  let end = 0;
  let tries = 0;
  let matches = 0;
  for (const at of places) {
    if (at < end) continue;
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if ((tries += 1) % 1024 === 0) yield 1024 * TRY_COST;
    if (found === null) continue;
    end = at + found[0].length;
    visit(found, at);
    if ((matches += 1) % 64 === 0) yield 64 * MATCH_COST;
    const spent = meter?.take() ?? 0;
    if (spent > 0) yield spent;
  }
}

/** Where a literal stands. */
export function placesOf(literal: string, text: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(literal); at !== -1; at = text.indexOf(literal, at + 1)) places.push(at);
  return places;
}

/** Where `^` matches with the flag `m`, in a normalised text. */
export function lineStarts(text: string): number[] {
  const places = [0];
  if (text.includes("\r")) {
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit === 10 || unit === 13) places.push(at + 1);
    }
    return places;
  }
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) places.push(at + 1);
  return places;
}
