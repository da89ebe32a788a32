/** Cuts a normalised text into words and sentences, in one pass over its characters. */
import { LOOKALIKE_LETTERS, ONE } from "./lookalike-letters.ts";
import { finish, type Steps } from "./steps.ts";
import { Tokens } from "./tokens.ts";
import { hashOf, nextHash, type Vocabulary } from "./vocabulary.ts";
import {
  DIGIT,
  isSpace,
  KINDS,
  kindOf,
  LATIN,
  LETTER,
  LOOKS_LIKE_LETTER,
  OTHER,
  STOP,
  INNER,
  UNDERSCORE,
} from "./units.ts";

const LONGEST_WORD = 28;
/** Words written as one, or with invisible separators, are looked at as a whole up to this length. */
const LONGEST_GLUED = 90;
const SHORTEST_GLUED = 16;
/** Two letters with up to three underscores between them, and some around them. */
const LONGEST_PAIR = 11;
const DOT = 0x2e;
const DOLLAR = 0x24;
const LOW_LINE = 0x5f;
const NEWLINE = 0x0a;
/** Characters that one step reads, and what each costs. */
const STRIDE = 16_384;
const UNIT_COST = 12;

export function tokenise(text: string, vocabulary: Vocabulary): Tokens {
  return finish(tokeniseInSteps(text, vocabulary));
}

export function* tokeniseInSteps(text: string, vocabulary: Vocabulary): Steps<Tokens> {
  const tokeniser = new Tokeniser(text, vocabulary);
  while (tokeniser.at < text.length) {
    const from = tokeniser.at;
    while (tokeniser.at < from + STRIDE && tokeniser.at < text.length) tokeniser.addNext();
    yield (tokeniser.at - from) * UNIT_COST;
  }
  return tokeniser.tokens;
}

/** One call for each word: the engine optimises what is called often sooner and better than what loops for long. */
export class Tokeniser {
  readonly tokens: Tokens;
  readonly #text: string;
  readonly #vocabulary: Vocabulary;
  #sentence = 0;
  /** How many very short words stand in a row. */
  #short = 0;
  at = 0;

  /** Starts at `from`, which is 0 or stands just behind a word; `length` is about how much will be read. */
  constructor(text: string, vocabulary: Vocabulary, from = 0, length: number = text.length) {
    this.tokens = new Tokens(text, length);
    this.#text = text;
    this.#vocabulary = vocabulary;
    this.at = from;
  }

  addNext(): void {
    const text = this.#text;
    const gapStart = this.at;
    // One space between two words is the commonest gap by far.
    if (text.charCodeAt(gapStart) === 0x20 && ((KINDS[text.charCodeAt(gapStart + 1)] ?? 0) & LETTER) !== 0) {
      this.at = gapStart + 1;
      this.#addWord();
      return;
    }
    const signs = this.#skipGap();
    if ((signs & STOP) !== 0 && endsSentence(text, gapStart, this.at)) this.#sentence += 1;
    if (this.at < text.length) this.#addWord();
  }

  /** Returns what was skipped. */
  #skipGap(): number {
    const text = this.#text;
    let at = this.at;
    let signs = 0;
    while (at < text.length) {
      const unit = text.charCodeAt(at);
      const kind = KINDS[unit] ?? 0;
      if ((kind & OTHER) === 0) {
        // A unit that is met for the first time is looked at again.
        if (kind !== 0) break;
        kindOf(unit);
        continue;
      }
      signs |= kind;
      at += 1;
    }
    this.at = at;
    return signs;
  }

  #addWord(): void {
    const text = this.#text;
    let start = this.at;
    let end = start;
    let hash = 0;
    let seen = 0;
    while (end < text.length) {
      const unit = text.charCodeAt(end);
      const kind = KINDS[unit] ?? 0;
      if ((kind & (LETTER | DIGIT)) === 0) {
        if (kind === 0) {
          kindOf(unit);
          continue;
        }
        if ((kind & INNER) === 0 || !goesOn(text, end)) break;
      }
      seen |= kind;
      hash = nextHash(hash, unit);
      end += 1;
    }
    this.at = end;
    this.#noteSpelling(start, end, seen);
    if ((seen & UNDERSCORE) !== 0) {
      while (start < end - 1 && text.charCodeAt(start) === LOW_LINE) start += 1;
      while (end > start + 1 && text.charCodeAt(end - 1) === LOW_LINE) end -= 1;
      hash = hashOf(text, start, end);
    }
    const { tokens } = this;
    tokens.add(start, end, wordAt(text, start, end, hash, seen, this.#vocabulary), this.#sentence);
    const size = end - start;
    if (size >= SHORTEST_GLUED && size <= LONGEST_GLUED) tokens.glued.push(tokens.count - 1);
  }

  /** Three in a row: of ten spelled letters the first two and last two may stand in other words. */
  #noteSpelling(start: number, end: number, seen: number): void {
    const lined = (seen & UNDERSCORE) !== 0;
    if (end - start === 1 || (lined && end - start <= LONGEST_PAIR)) {
      this.#short += 1;
      if (this.#short >= 3) this.tokens.spelled = true;
    } else {
      this.#short = 0;
    }
    if (lined && !this.tokens.spelled && isLetterBetweenLines(this.#text, start, end)) this.tokens.spelled = true;
  }
}

function isLetterBetweenLines(text: string, start: number, end: number): boolean {
  for (let at = start + 2; at < end; at += 1) {
    if (
      text.charCodeAt(at) === LOW_LINE &&
      text.charCodeAt(at - 2) === LOW_LINE &&
      text.charCodeAt(at - 1) !== LOW_LINE
    )
      return true;
  }
  return false;
}

/** Inside a word: the apostrophe of "don't", and the signs that stand for letters in "p@$$word". */
function goesOn(text: string, at: number): boolean {
  if (at + 1 >= text.length) return false;
  const next = text.charCodeAt(at + 1);
  return (kindOf(next) & LETTER) !== 0 || next === DOLLAR;
}

/**
 * A stop followed by space or a quote, an empty line, or the end of a JSON string. `from` to `to` is all that stands
 * between two words.
 */
export function endsSentence(text: string, from: number, to: number): boolean {
  let lines = 0;
  for (let at = from; at < to; at += 1) {
    switch (text.charCodeAt(at)) {
      case NEWLINE:
        if ((lines += 1) === 2 || startsItem(text.charCodeAt(at + 1))) return true;
        break;
      // Cells of tables, items of lists and numbered lines stand for themselves.
      case 0x7c:
        if (isTableRow(text, at)) return true;
        break;
      case 0x3b:
      case 0x3002:
      case 0xff01:
      case 0xff1f:
        return true;
      case DOT:
      case 0x21:
      case 0x3f:
        if (at + 1 >= text.length || followsStop(text.charCodeAt(at + 1))) return true;
        break;
      case 0x22:
        if (followsString(text.charCodeAt(at + 1))) return true;
        break;
      default:
    }
    // A gap can be megabytes of dashes; what matters is near its start or its end.
    if (at - from === 64 && to - at > 128) at = to - 64;
  }
  return false;
}

/** A digit or one of `*#|-`. */
function startsItem(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || unit === 0x2a || unit === 0x23 || unit === 0x7c || unit === 0x2d;
}

function followsStop(unit: number): boolean {
  return isSpace(unit) || (unit < 0x80 && "\"')]*_<\\`".includes(String.fromCharCode(unit)));
}

/** One of `,}]:`. */
function followsString(unit: number): boolean {
  return unit === 0x2c || unit === 0x7d || unit === 0x5d || unit === 0x3a;
}

/** How much of a line is read to see whether it is that of a table. */
export const TABLE_REACH = 300;

/** The line starts with a bar. */
function isTableRow(text: string, at: number): boolean {
  const line = text.slice(Math.max(0, at - TABLE_REACH), at + 1);
  return line.slice(line.lastIndexOf("\n") + 1).startsWith("|");
}

function wordAt(text: string, start: number, end: number, hash: number, seen: number, vocabulary: Vocabulary): number {
  if (start > 0 && text.charCodeAt(start - 1) === DOT && isDotted(text, start)) {
    const dotted = vocabulary.number(text.slice(start - 1, Math.min(end, start + LONGEST_WORD)));
    if (dotted !== 0) return dotted;
  }
  if (end - start > LONGEST_WORD) return 0;
  const known = vocabulary.find(text, start, end, hash);
  if (known !== 0 || (seen & LATIN) === 0 || (seen & LOOKS_LIKE_LETTER) === 0) return known;
  return lookalike(text, start, end, 0x69, vocabulary) || lookalike(text, start, end, 0x6c, vocabulary);
}

/** The name of a dot file: `.env`, `~/.ssh`, but not the end of `process.env`. */
function isDotted(text: string, start: number): boolean {
  return !/[\p{L}\p{N}_)\]]/u.test(text[start - 2] ?? " ");
}

/** The letter that an ASCII unit stands for. */
const LOOKALIKES = Uint8Array.from(
  { length: 128 },
  (_, unit) => LOOKALIKE_LETTERS[String.fromCharCode(unit)]?.charCodeAt(0) ?? unit,
);

function letterFor(unit: number, one: number): number {
  if (unit === ONE) return one;
  return unit < 128 ? (LOOKALIKES[unit] ?? unit) : unit;
}

/** The number of the word that has letters where this one has digits. Numbers of logs are many, so a hash comes first. */
function lookalike(text: string, start: number, end: number, one: number, vocabulary: Vocabulary): number {
  let hash = 0;
  for (let at = start; at < end; at += 1) hash = nextHash(hash, letterFor(text.charCodeAt(at), one));
  if (vocabulary.withHash(hash) === 0) return 0;
  let plain = "";
  for (let at = start; at < end; at += 1) plain += String.fromCharCode(letterFor(text.charCodeAt(at), one));
  return vocabulary.number(plain);
}
