/** Steps from word to word, the words being those of the tokeniser, over units of a text and without keeping any. */
import { LOOKALIKE_LETTERS, ONE } from "../lookalike-letters.ts";
import { DIGIT, INNER, KINDS, kindOf, LATIN, LETTER, LOOKS_LIKE_LETTER } from "../units.ts";
import { nextHash, type Vocabulary } from "../vocabulary.ts";

/** Some units of a text, with enough of others around them that no step leads out of the list. */
export type Units = Uint16Array;

const IN_WORD = LETTER | DIGIT;
const DOLLAR = 0x24;
const DOT = 0x2e;
const LOW_LINE = 0x5f;

function kindAt(units: Units, at: number): number {
  return kindOf(units[at] ?? 0);
}

/** A letter, a digit or an underscore: always part of a word. */
function isInWord(units: Units, at: number): boolean {
  return (kindAt(units, at) & IN_WORD) !== 0;
}

/** A word goes on over an apostrophe, "@" or "$" at this place. */
function goesOn(units: Units, at: number): boolean {
  if ((kindAt(units, at) & INNER) === 0) return false;
  return (kindAt(units, at + 1) & LETTER) !== 0 || units[at + 1] === DOLLAR;
}

/** Where the word ends that holds `at`, or `limit` if that is nearer. */
export function wordEnd(units: Units, at: number, limit: number): number {
  const kinds = KINDS;
  let end = at;
  while (end < limit) {
    // What the table does not know yet is 0, and looked up by the slower way.
    if (((kinds[units[end] ?? 0] ?? 0) & IN_WORD) === 0 && !isInWord(units, end) && !goesOn(units, end)) break;
    end += 1;
  }
  return end;
}

/** Where the word starts that holds `at`, a place of a letter or digit, or `limit` if that is nearer. */
export function wordStart(units: Units, at: number, limit: number): number {
  const kinds = KINDS;
  let start = at;
  while (start > limit) {
    let before = start - 1;
    if (((kinds[units[before] ?? 0] ?? 0) & IN_WORD) === 0) {
      // Signs belong to the word only if it reaches them from a letter or digit before.
      while (before > limit && goesOn(units, before)) before -= 1;
      if (!isInWord(units, before)) break;
    }
    start = before;
  }
  return start;
}

/** Where the next word starts at or behind `at`, or `limit`. */
export function nextWord(units: Units, at: number, limit: number): number {
  const kinds = KINDS;
  let next = at;
  while (next < limit && ((kinds[units[next] ?? 0] ?? 0) & IN_WORD) === 0 && !isInWord(units, next)) next += 1;
  return next;
}

/** Just behind the word before `at`, or `limit`. */
export function wordBefore(units: Units, at: number, limit: number): number {
  const kinds = KINDS;
  let end = at;
  while (end > limit && ((kinds[units[end - 1] ?? 0] ?? 0) & IN_WORD) === 0 && !isInWord(units, end - 1)) end -= 1;
  // A word can end with a sign that goes on to a sign.
  while (end > limit && end < at && goesOn(units, end)) end += 1;
  return end;
}

/** No word of a vocabulary is longer. */
const LONGEST_WORD = 28;

/**
 * Which words of a vocabulary a word may be: as written, as the name of a dot file, and with letters for digits. Hashes
 * decide, so there may be one too many, never one too few.
 */
export class WordNumbers {
  count = 0;
  readonly all = new Int32Array(4);
  readonly #vocabulary: Vocabulary;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Reads the word between two places, without the underscores around it. */
  read(units: Units, from: number, to: number): void {
    this.count = 0;
    let start = from;
    let end = to;
    while (start < end - 1 && units[start] === LOW_LINE) start += 1;
    while (end > start + 1 && units[end - 1] === LOW_LINE) end -= 1;
    if (end - start > LONGEST_WORD) return;
    let hash = 0;
    let seen = 0;
    for (let at = start; at < end; at += 1) {
      const unit = lower(units[at] ?? 0);
      seen |= KINDS[unit] || kindOf(unit);
      hash = nextHash(hash, unit);
    }
    this.#add(hash);
    if (units[start - 1] === DOT) this.#add(dottedHash(units, start, end));
    if ((seen & LATIN) === 0 || (seen & LOOKS_LIKE_LETTER) === 0) return;
    for (const one of ONES) this.#add(plainHash(units, start, end, one));
  }

  /** One of them is that of a witness which may stand so many words off. */
  reach(reach: ReadonlyMap<number, number>, words: number): boolean {
    for (let index = 0; index < this.count; index += 1)
      if ((reach.get(this.all[index] ?? 0) ?? 0) >= words) return true;
    return false;
  }

  some(ask: (number: number) => boolean): boolean {
    return this.all.subarray(0, this.count).some(ask);
  }

  #add(hash: number): void {
    const number = this.#vocabulary.withHash(hash);
    if (number === 0) return;
    this.all[this.count] = number;
    this.count += 1;
  }
}

function lower(unit: number): number {
  return unit >= 0x41 && unit <= 0x5a ? unit | 0x20 : unit;
}

function dottedHash(units: Units, start: number, end: number): number {
  let hash = nextHash(0, DOT);
  for (let at = start; at < end; at += 1) hash = nextHash(hash, lower(units[at] ?? 0));
  return hash;
}

/** "1" is written for "i" and for "l". */
const ONES = [0x69, 0x6c];
const PLAIN_UNITS = Uint8Array.from({ length: 128 }, (_, unit) => {
  const character = String.fromCharCode(unit).toLowerCase();
  return (LOOKALIKE_LETTERS[character] ?? character).charCodeAt(0);
});

function plainHash(units: Units, start: number, end: number, one: number): number {
  let hash = 0;
  for (let at = start; at < end; at += 1) {
    const unit = units[at] ?? 0;
    hash = nextHash(hash, unit === ONE ? one : unit < 128 ? (PLAIN_UNITS[unit] ?? unit) : unit);
  }
  return hash;
}
