/** One plain spelling of a text, with the way back: every detector of words reads this, every finding speaks of the original. */
import { CONFUSABLES, symbolLetter } from "./confusables.ts";

export interface NormalText {
  readonly text: string;
  /** The index in the original of an index in `text`; `text.length` maps to the end of the original. */
  originalAt(index: number): number;
  /** The original had characters that were folded or removed (not counting upper case). */
  readonly folded: boolean;
}

// oxlint-disable-next-line no-control-regex -- tab and newlines are the controls that need no folding
const PLAIN = /^[\t\n\r\x20-\x7e]*$/;
const REMOVED = /[\p{M}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const SPACE = /^[\s\p{Z}]$/u;
const ESCAPE = 0x1b;

/**
 * Compatibility forms, accents, case, look-alike letters, invisible characters and colour codes are folded away.
 * Works code point by code point, so it is linear and the offsets stay exact.
 */
export function normalise(text: string): NormalText {
  if (PLAIN.test(text)) return { text: text.toLowerCase(), originalAt: (index) => index, folded: false };
  const parts: string[] = [];
  const offsets = new Offsets(text.length);
  const seen = new Map<number, string>();
  let plainFrom = 0;
  let at = 0;
  const flush = (): void => {
    if (at === plainFrom) return;
    parts.push(text.slice(plainFrom, at).toLowerCase());
    for (let index = plainFrom; index < at; index += 1) offsets.push(index);
  };
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80 && (unit >= 0x20 || unit === 0x0a || unit === 0x09 || unit === 0x0d)) {
      at += 1;
      continue;
    }
    flush();
    const codePoint = text.codePointAt(at) ?? 0;
    if (codePoint === ESCAPE || codePoint === 0x9b) {
      at = afterEscape(text, at);
    } else {
      let plain = seen.get(codePoint);
      if (plain === undefined) {
        plain = fold(codePoint);
        seen.set(codePoint, plain);
      }
      if (plain !== "") {
        parts.push(plain);
        for (let count = 0; count < plain.length; count += 1) offsets.push(at);
      }
      at += codePoint > 0xffff ? 2 : 1;
    }
    plainFrom = at;
  }
  flush();
  return { text: parts.join(""), originalAt: offsets.reader(text.length), folded: true };
}

/** The same folding for the words of a pattern. */
export function foldWord(word: string): string {
  return normalise(word).text;
}

function fold(codePoint: number): string {
  if (codePoint < 0x20 || codePoint === 0x7f || codePoint === 0x85)
    return codePoint === 0 || codePoint === 0x08 ? "" : " ";
  if (codePoint === 0x2028 || codePoint === 0x2029) return "\n";
  const symbol = symbolLetter(codePoint);
  if (symbol !== undefined) return symbol;
  const character = String.fromCodePoint(codePoint);
  const direct = CONFUSABLES.get(character);
  if (direct !== undefined) return direct;
  if (SPACE.test(character)) return " ";
  let plain = "";
  for (const part of character.normalize("NFKC").toLowerCase().normalize("NFKD").replace(REMOVED, "")) {
    plain += CONFUSABLES.get(part) ?? part;
  }
  return plain;
}

/** Past a terminal's control sequence; of any other escape only the two characters that start it. */
function afterEscape(text: string, at: number): number {
  let next = at + 1;
  if (text.charCodeAt(at) === ESCAPE) {
    if (text[next] !== "[") return Math.min(text.length, at + 2);
    next += 1;
  }
  const limit = Math.min(text.length, next + 64);
  while (next < limit && isBetween(text.charCodeAt(next), 0x20, 0x3f)) next += 1;
  return next < text.length && isBetween(text.charCodeAt(next), 0x40, 0x7e) ? next + 1 : next;
}

function isBetween(value: number, low: number, high: number): boolean {
  return value >= low && value <= high;
}

/** A growing list of offsets: some characters fold into up to eighteen. */
class Offsets {
  #values: Uint32Array;
  #count = 0;

  constructor(expected: number) {
    this.#values = new Uint32Array(expected + 16);
  }

  push(offset: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Uint32Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count] = offset;
    this.#count += 1;
  }

  reader(end: number): (index: number) => number {
    const values = this.#values;
    const count = this.#count;
    return (index) => (index >= count ? end : (values[index] ?? end));
  }
}
