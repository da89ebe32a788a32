/** One plain spelling of a text, with the way back: every detector of words reads this, every finding speaks of the original. */
import { finish, type Steps } from "./steps.ts";
import { lastAtOrBefore } from "./sorted.ts";
import { CONFUSABLES, symbolLetter } from "./confusables.ts";

export interface NormalText {
  readonly text: string;
  /** The index in the original of an index in `text`; `text.length` maps to the end of the original. */
  originalAt(index: number): number;
  /** The original had characters that were folded or removed (not counting upper case). */
  readonly folded: boolean;
  /** Some of them have no trace in `text`: what is invisible, and what a terminal acts on. */
  readonly removed: boolean;
}

// oxlint-disable-next-line no-control-regex -- tab and newlines are the controls that need no folding
const NOT_PLAIN = /[^\t\n\r\x20-\x7e]/;
const REMOVED = /[\p{M}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const SPACE = /^[\s\p{Z}]$/u;
const ESCAPE = 0x1b;

/** What a unit folds into, for units that fold into one; filled as they are met. */
const FOLDED = new Uint16Array(0x10000);
/** A unit that needs a closer look: half of a pair, an escape, or a character that folds into none or several. */
const SPECIAL = 0xffff;
const STRIDE = 4_096;
const UNIT_COST = 12;

/**
 * Compatibility forms, accents, case, look-alike letters, invisible characters and colour codes are folded away.
 * Works code point by code point, so it is linear and the offsets stay exact.
 */
export function normalise(text: string): NormalText {
  return finish(normaliseInSteps(text));
}

export function* normaliseInSteps(text: string): Steps<NormalText> {
  yield text.length;
  if (!NOT_PLAIN.test(text))
    return { text: text.toLowerCase(), originalAt: (index) => index, folded: false, removed: false };
  const folding = new Folding(text);
  for (let to = STRIDE; !folding.isDone; to += STRIDE) {
    folding.advance(to);
    yield STRIDE * UNIT_COST;
  }
  return folding.result();
}

/** Units are folded one by one into blocks; what is plain for longer than a stretch is copied as a whole. */
const BLOCK = 8_192;
const STRETCH = 64;
const NEXT_NOT_PLAIN = new RegExp(NOT_PLAIN, "g");

class Folding {
  readonly #text: string;
  readonly #offsets = new Offsets();
  readonly #parts: string[] = [];
  readonly #block: Uint16Array;
  #filled = 0;
  /** All bits that occur in the block. */
  #wide = 0;
  /** Units in the parts. */
  #flushed = 0;
  #at = 0;
  /** The last stretch was plain. */
  #plain = false;
  #removed = false;

  constructor(text: string) {
    this.#text = text;
    this.#block = new Uint16Array(Math.min(BLOCK, text.length + STRETCH));
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length;
  }

  advance(limit: number): void {
    const to = Math.min(this.#text.length, limit);
    while (this.#at < to) {
      if (this.#plain) this.#copyPlain();
      else if (this.#foldStretch()) this.#at = this.#special(this.#at);
    }
  }

  result(): NormalText {
    this.#flush();
    const end = this.#text.length;
    const count = this.#flushed;
    const offsets = this.#offsets;
    return {
      text: this.#parts.join(""),
      originalAt: (index) => (index >= count ? end : offsets.at(index)),
      folded: true,
      removed: this.#removed,
    };
  }

  #copyPlain(): void {
    NEXT_NOT_PLAIN.lastIndex = this.#at;
    const next = NEXT_NOT_PLAIN.exec(this.#text)?.index ?? this.#text.length;
    this.#plain = false;
    if (next - this.#at < STRETCH) return;
    this.#flush();
    this.#parts.push(this.#text.slice(this.#at, next).toLowerCase());
    this.#flushed += next - this.#at;
    this.#at = next;
  }

  /** Units that fold one to one. True where one is met that does not. */
  #foldStretch(): boolean {
    const text = this.#text;
    const block = this.#block;
    const shift = this.#filled - this.#at;
    const end = Math.min(text.length, block.length - shift, this.#at + STRETCH);
    let at = this.#at;
    let seen = 0;
    let wide = 0;
    while (at < end) {
      const unit = text.charCodeAt(at);
      const known = FOLDED[unit] ?? 0;
      const folded = known === 0 ? learn(unit) : known;
      if (folded === SPECIAL) break;
      block[at + shift] = folded;
      seen |= unit;
      wide |= folded;
      at += 1;
    }
    this.#at = at;
    this.#filled = at + shift;
    this.#wide |= wide;
    this.#plain = seen < 0x80 && at === end;
    if (this.#filled === block.length) this.#flush();
    return at < end;
  }

  /** Folds what does not fold one to one; returns where it goes on. */
  #special(at: number): number {
    const codePoint = this.#text.codePointAt(at) ?? 0;
    let next = at + (codePoint > 0xffff ? 2 : 1);
    let plain = "";
    if (codePoint === ESCAPE || codePoint === 0x9b) next = afterEscape(this.#text, at);
    else plain = foldedText(codePoint);
    if (plain === "") this.#removed = true;
    for (let index = 0; index < plain.length; index += 1) {
      this.#offsets.note(this.#flushed + this.#filled, at);
      const unit = plain.charCodeAt(index);
      this.#wide |= unit;
      this.#block[this.#filled] = unit;
      this.#filled += 1;
      if (this.#filled === this.#block.length) this.#flush();
    }
    this.#offsets.note(this.#flushed + this.#filled, next);
    return next;
  }

  #flush(): void {
    if (this.#filled === 0) return;
    const units = this.#block.subarray(0, this.#filled);
    // A string of single bytes where it can be one: patterns run twice as fast over those.
    this.#parts.push(
      this.#wide < 0x100
        ? Buffer.from(new Uint8Array(units).buffer).toString("latin1")
        : Buffer.from(units.buffer, 0, units.byteLength).toString("utf16le"),
    );
    this.#wide = 0;
    this.#flushed += this.#filled;
    this.#filled = 0;
  }
}

function learn(unit: number): number {
  let folded = SPECIAL;
  if (unit < 0x80 && (unit >= 0x20 || unit === 0x0a || unit === 0x09 || unit === 0x0d)) {
    folded = String.fromCharCode(unit).toLowerCase().charCodeAt(0);
  } else if (unit !== ESCAPE && unit !== 0x9b && (unit < 0xd800 || unit > 0xdfff)) {
    const plain = fold(unit);
    if (plain.length === 1) folded = plain.charCodeAt(0);
  }
  FOLDED[unit] = folded;
  return folded;
}

/** What is folded into none or several units, remembered up to a bound. */
const REMEMBERED = new Map<number, string>();
const MOST_REMEMBERED = 4_096;

function foldedText(codePoint: number): string {
  const known = REMEMBERED.get(codePoint);
  if (known !== undefined) return known;
  const plain = fold(codePoint);
  if (REMEMBERED.size < MOST_REMEMBERED) REMEMBERED.set(codePoint, plain);
  return plain;
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

/** Where an index comes from: noted only where the distance to the original changes, one to one in between. */
class Offsets {
  readonly #indices: number[] = [0];
  readonly #origins: number[] = [0];

  note(index: number, origin: number): void {
    const last = this.#indices.length - 1;
    const lastIndex = this.#indices[last] ?? 0;
    const lastOrigin = this.#origins[last] ?? 0;
    if (index - lastIndex === origin - lastOrigin) return;
    if (lastIndex === index) {
      this.#origins[last] = origin;
      return;
    }
    this.#indices.push(index);
    this.#origins.push(origin);
  }

  at(index: number): number {
    const part = lastAtOrBefore(this.#indices, index);
    return (this.#origins[part] ?? 0) + index - (this.#indices[part] ?? 0);
  }
}
