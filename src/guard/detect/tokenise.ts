/** Cuts a normalised text into words and sentences, in one pass over its characters. */
import { finish, type Steps } from "./steps.ts";
import { Tokens } from "./tokens.ts";
import { hashOf, nextHash, type Vocabulary } from "./vocabulary.ts";
import { isSpace, kindOf, LATIN, LETTER, LOOKS_LIKE_LETTER, OTHER, STOP, INNER } from "./units.ts";

const LONGEST_WORD = 28;
/** Words written as one, or with invisible separators, are looked at as a whole up to this length. */
const LONGEST_GLUED = 90;
const SHORTEST_GLUED = 16;
const DOT = 0x2e;
const DOLLAR = 0x24;
const UNDERSCORE = 0x5f;
const NEWLINE = 0x0a;
/** Characters that one step reads, and what each costs. */
const STRIDE = 32_768;
const UNIT_COST = 12;

export function tokenise(text: string, vocabulary: Vocabulary): Tokens {
  return finish(tokeniseInSteps(text, vocabulary));
}

export function* tokeniseInSteps(text: string, vocabulary: Vocabulary): Steps<Tokens> {
  const tokens = new Tokens(text);
  let at = 0;
  let sentence = 0;
  while (at < text.length) {
    const from = at;
    ({ at, sentence } = addTokens(tokens, vocabulary, at, sentence));
    yield (at - from) * UNIT_COST;
  }
  return tokens;
}

interface Progress {
  readonly at: number;
  readonly sentence: number;
}

function addTokens(tokens: Tokens, vocabulary: Vocabulary, from: number, before: number): Progress {
  const { text } = tokens;
  const { length } = text;
  const limit = Math.min(length, from + STRIDE);
  let sentence = before;
  let at = from;
  while (at < limit) {
    const gapStart = at;
    let signs = 0;
    while (at < length) {
      const kind = kindOf(text.charCodeAt(at));
      if ((kind & OTHER) === 0) break;
      signs |= kind;
      at += 1;
    }
    if ((signs & STOP) !== 0 && endsSentence(text, gapStart, at)) sentence += 1;
    if (at >= length) break;

    let start = at;
    let hash = 0;
    let kinds = 0;
    while (at < length) {
      const unit = text.charCodeAt(at);
      const kind = kindOf(unit);
      if ((kind & OTHER) !== 0 && !isInner(text, at, kind)) break;
      kinds |= kind;
      hash = nextHash(hash, unit);
      at += 1;
    }
    let end = at;
    if (text.charCodeAt(start) === UNDERSCORE || text.charCodeAt(end - 1) === UNDERSCORE) {
      while (start < end - 1 && text.charCodeAt(start) === UNDERSCORE) start += 1;
      while (end > start + 1 && text.charCodeAt(end - 1) === UNDERSCORE) end -= 1;
      hash = hashOf(text, start, end);
    }
    tokens.add(start, end, wordAt(text, start, end, hash, kinds, vocabulary), sentence);
    const size = end - start;
    if (size >= SHORTEST_GLUED && size <= LONGEST_GLUED) tokens.glued.push(tokens.count - 1);
  }
  return { at, sentence };
}

/** Inside a word: the apostrophe of "don't", and the signs that stand for letters in "p@$$word". */
function isInner(text: string, at: number, kind: number): boolean {
  if ((kind & INNER) === 0 || at + 1 >= text.length) return false;
  const next = text.charCodeAt(at + 1);
  return (kindOf(next) & LETTER) !== 0 || next === DOLLAR;
}

/** A stop followed by space or a quote, an empty line, or the end of a JSON string. */
function endsSentence(text: string, from: number, to: number): boolean {
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

/** The line starts with a bar. Only its near part is read. */
function isTableRow(text: string, at: number): boolean {
  const line = text.slice(Math.max(0, at - 300), at + 1);
  return line.slice(line.lastIndexOf("\n") + 1).startsWith("|");
}

function wordAt(
  text: string,
  start: number,
  end: number,
  hash: number,
  kinds: number,
  vocabulary: Vocabulary,
): number {
  if (start > 0 && text.charCodeAt(start - 1) === DOT && isDotted(text, start)) {
    const dotted = vocabulary.number(text.slice(start - 1, Math.min(end, start + LONGEST_WORD)));
    if (dotted !== 0) return dotted;
  }
  if (end - start > LONGEST_WORD) return 0;
  const known = vocabulary.find(text, start, end, hash);
  if (known !== 0 || (kinds & LATIN) === 0 || (kinds & LOOKS_LIKE_LETTER) === 0) return known;
  return lookalike(text, start, end, "i", vocabulary) || lookalike(text, start, end, "l", vocabulary);
}

/** The name of a dot file: `.env`, `~/.ssh`, but not the end of `process.env`. */
function isDotted(text: string, start: number): boolean {
  return !/[\p{L}\p{N}_)\]]/u.test(text[start - 2] ?? " ");
}

const LOOKALIKES = new Map(
  Object.entries({ "0": "o", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", $: "s" }).map(([sign, letter]) => [
    sign.charCodeAt(0),
    letter.charCodeAt(0),
  ]),
);
const ONE = 0x31;

/** The number of the word that has letters where this one has digits. Numbers of logs are many, so a hash comes first. */
function lookalike(text: string, start: number, end: number, one: "i" | "l", vocabulary: Vocabulary): number {
  const units: number[] = [];
  let hash = 0;
  for (let at = start; at < end; at += 1) {
    const unit = text.charCodeAt(at);
    const plain = unit === ONE ? one.charCodeAt(0) : (LOOKALIKES.get(unit) ?? unit);
    units.push(plain);
    hash = nextHash(hash, plain);
  }
  return vocabulary.hasHash(hash) ? vocabulary.number(String.fromCharCode(...units)) : 0;
}
