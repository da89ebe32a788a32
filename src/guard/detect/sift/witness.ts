/** Looks for the words that must stand near an anchor. */
import { endsSentence } from "../tokenise.ts";
import { KINDS, STOP } from "../units.ts";
import type { Vocabulary } from "../vocabulary.ts";
import { type Anchor, initialOf, type Witnesses } from "./anchors.ts";
import { nextWord, type Units, wordBefore, wordEnd, WordNumbers, wordStart } from "./words.ts";

/** A witness further off is taken for granted. */
const WITHIN = 560;
const DOT = 0x2e;

export class Surroundings {
  readonly #units: Units;
  readonly #numbers: WordNumbers;

  constructor(units: Units, vocabulary: Vocabulary) {
    this.#units = units;
    this.#numbers = new WordNumbers(vocabulary);
  }

  /**
   * `start` and `end` are places of the units, `shift` less than those of the text; between them stands the anchor with
   * the underscores around it.
   */
  hasWitness(anchors: readonly Anchor[], start: number, end: number, text: string, shift: number): boolean {
    for (const { before, after } of anchors) {
      if (before === undefined || after === undefined) return true;
      if (this.#isAfter(after, end, text, shift) || this.#isBefore(before, start, text, shift)) return true;
    }
    return false;
  }

  /** One of the words may stand before this place. */
  mayFollow(words: ReadonlySet<number> | undefined, start: number): boolean {
    if (words === undefined) return true;
    const limit = start - WITHIN;
    const end = wordBefore(this.#units, start, limit);
    if (end === limit) return true;
    this.#numbers.read(this.#units, wordStart(this.#units, end - 1, limit), end);
    return this.#numbers.some((number) => words.has(number));
  }

  #isAfter({ reach, furthest, crosses, initials }: Witnesses, end: number, text: string, shift: number): boolean {
    const units = this.#units;
    const textEnd = text.length - shift;
    const limit = Math.min(textEnd, end + WITHIN);
    let at = end;
    for (let words = 1; words <= furthest; words += 1) {
      const start = nextWord(units, at, limit);
      if (start === textEnd) return false;
      if (start === limit) return true;
      if (!crosses && hasStop(units, at, start) && endsSentence(text, at + shift, start + shift)) return false;
      at = wordEnd(units, start, limit);
      if (at === limit && limit < textEnd) return true;
      if (!mayStartWith(units, start, initials)) continue;
      this.#numbers.read(units, start, at);
      if (this.#numbers.reach(reach, words)) return true;
    }
    return false;
  }

  #isBefore({ reach, furthest, crosses, initials }: Witnesses, start: number, text: string, shift: number): boolean {
    const units = this.#units;
    const textStart = -shift;
    const limit = Math.max(textStart, start - WITHIN);
    let at = start;
    for (let words = 1; words <= furthest; words += 1) {
      const end = wordBefore(units, at, limit);
      if (end === textStart) return false;
      if (end === limit) return true;
      if (!crosses && hasStop(units, end, at) && endsSentence(text, end + shift, at + shift)) return false;
      at = wordStart(units, end - 1, limit);
      if (at === limit && limit > textStart) return true;
      if (!mayStartWith(units, at, initials)) continue;
      this.#numbers.read(units, at, end);
      if (this.#numbers.reach(reach, words)) return true;
    }
    return false;
  }
}

/** One look at the first letter spares most words. A dot before it makes it another word. */
function mayStartWith(units: Units, start: number, initials: number): boolean {
  return (initialOf(units[start] ?? 0) & initials) !== 0 || units[start - 1] === DOT;
}

/** Something stands there that can end a sentence. Units of a gap are known by now. */
function hasStop(units: Units, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (((KINDS[units[at] ?? 0] ?? 0) & STOP) !== 0) return true;
  return false;
}
