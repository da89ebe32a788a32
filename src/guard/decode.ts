/** Encodings that hide words from a reader but not from a model that can decode them. */
import type { Budget } from "./structure.ts";
import { fromNumbers, fromPercent, reversed, rotate } from "../base/spellings.ts";
import { type CharacterSet, characterSet, isIn, runEnd, runsAround, runsOf, unitsOf } from "../base/character-runs.ts";
import { isLetter } from "../base/words-around.ts";

export interface Encoded {
  readonly start: number;
  readonly end: number;
  /** The decoded text, "" if there is no room for it. */
  readonly text: string;
}

type Decode = (found: string) => string | undefined;

interface Form {
  /** All characters that a match can have, and the fewest of them. */
  readonly characters: CharacterSet;
  readonly shortest: number;
  /** Characters that are decoded together. */
  readonly unit?: number;
  /** One of these stands in every match. */
  readonly signs?: readonly string[];
  /** Belongs to the match although it is before it. */
  readonly lead?: RegExp;
  /** The encoded parts of a run, or the whole of it, and how it is decoded. */
  readonly patterns: readonly (readonly [part: RegExp | undefined, decode: Decode])[];
}

const BASE64 = characterSet("A-Za-z0-9+/_-");
const BASE64_LINE = 20;
/** Of one part; the rest of a longer one is not decoded. */
const MAX_ENCODED_LENGTH = 256 * 1024;

const FORMS: readonly Form[] = [
  { characters: BASE64, shortest: BASE64_LINE, unit: 4, patterns: [[undefined, fromBase64]] },
  { characters: characterSet("0-9A-Fa-f"), shortest: 32, unit: 2, patterns: [[undefined, fromHex]] },
  {
    characters: characterSet("\\\\x0-9A-Fa-f ,"),
    shortest: 48,
    signs: ["\\x", "0x"],
    patterns: [[/(?:(?:\\x|0x)[0-9A-Fa-f]{2}[ ,]{0,2}){12,}/g, (found) => fromHex(found.replace(/\\x|0x/g, ""))]],
  },
  {
    characters: characterSet("\\\\u0-9A-Fa-f"),
    shortest: 72,
    signs: ["\\u"],
    patterns: [[/(?:\\u[0-9A-Fa-f]{4}){12,}/g, fromNumbers]],
  },
  {
    // From the first percent sign on; the word that stands before it is looked at backwards, which is cheaper.
    characters: characterSet("%\\w.~!*'()-"),
    shortest: 9,
    signs: ["%"],
    lead: /[\w.~!*'()-]{0,40}$/,
    patterns: [[/%[0-9A-Fa-f]{2}(?:[\w.~!*'()-]{0,40}%[0-9A-Fa-f]{2}){2,}[\w.~!*'()-]{0,40}/g, fromPercent]],
  },
  {
    characters: characterSet("&#x0-9A-Fa-f; "),
    shortest: 40,
    signs: ["&#"],
    patterns: [[/(?:&#(?:x[0-9A-Fa-f]{1,6}|\d{1,7});[ ]{0,1}){10,}/g, fromNumbers]],
  },
  // Numbers with something between them: all are looked for in the same runs.
  {
    characters: characterSet("0-9A-Fa-f :,-"),
    shortest: 47,
    patterns: [
      [/(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :,-]){15,}[0-9A-Fa-f]{2}/g, fromHex],
      [/(?:[01]{8}[ ]){11,}[01]{8}/g, (found) => fromNumbers(found, 2)],
      [/(?:\d{2,3}[ ,]{1,2}){15,}\d{2,3}/g, fromNumbers],
    ],
  },
];

/** The encoded parts of a text that decode to text, as far as the budget goes. */
export function* encodedParts(text: string, budget?: Budget, units = unitsOf(text)): Generator<Encoded> {
  const found = FORMS.map(({ characters, shortest, signs }) => {
    // Most texts end here, and most are short: a search that is begun costs more than these looks.
    if (text.length < shortest || signs?.some((sign) => text.includes(sign)) === false) return [];
    return signs === undefined
      ? runsOf(units, text.length, characters, shortest)
      : runsAround(text, signs, characters, shortest);
  });
  for (const [at, form] of FORMS.entries()) {
    let done = 0;
    for (const { start, end } of found[at] ?? []) {
      if (start < done) continue;
      done = form.characters === BASE64 ? base64End(text, end) : end;
      if (budget?.overspends(25 + (done - start) / (form.unit === undefined ? 2 : 8)) === true) return;
      yield* partsOf(text, form, start, done);
    }
  }
}

function* partsOf(text: string, { patterns, lead, unit = 1 }: Form, start: number, end: number): Generator<Encoded> {
  for (const [pattern, decode] of patterns) {
    if (pattern === undefined) {
      // A run that begins with the text, or behind the rest of a line, may be that of one that was cut, wherever.
      const isRest = start < BASE64_LINE + 2 && /^(?:[\w+/-]*\r?\n)?$/.test(text.slice(0, start));
      for (let skip = 0; skip < (isRest ? unit : 1); skip += 1) {
        const part = decoded(text, decode, start + skip, end);
        if (part === undefined) continue;
        yield part;
        break;
      }
      continue;
    }
    const run = text.slice(start, end);
    for (let at = 0; ;) {
      // Set each time: what a part decodes to is searched with the same patterns.
      pattern.lastIndex = at;
      const found = pattern.exec(run);
      if (found === null) break;
      at = found.index + found[0].length;
      const part = decoded(text, decode, start + found.index, start + at, lead);
      if (part !== undefined) yield part;
    }
  }
}

function decoded(text: string, decode: Decode, start: number, end: number, lead?: RegExp): Encoded | undefined {
  const before = lead?.exec(text.slice(Math.max(0, start - 40), start))?.[0] ?? "";
  const encoded = before + text.slice(start, Math.min(end, start + MAX_ENCODED_LENGTH));
  const plain = decode(encoded);
  if (plain === undefined || !looksLikeText(plain)) return undefined;
  return { start: start - before.length, end, text: plain };
}

/** Base64 goes on in further lines, as mails have them, and ends with its padding. */
function base64End(text: string, from: number): number {
  let end = from;
  for (;;) {
    const line = text[end] === "\n" ? end + 1 : text.startsWith("\r\n", end) ? end + 2 : undefined;
    if (line === undefined) break;
    const lineEnd = runEnd(text, BASE64, line);
    if (lineEnd - line < BASE64_LINE) break;
    end = lineEnd;
  }
  if (text[end] !== "=") return end;
  return text[end + 1] === "=" ? end + 2 : end + 1;
}

/** Characters of a decoded text by which it is told. */
const LOOKED_AT = 400;

/** Too many for a text. */
function isMostlyOdd(odd: number, length: number): boolean {
  return odd * 20 > length;
}

/** A picture or a key shows in its first bytes that it is none; the rest is then never looked at. */
function looksLikeText(decoded: string): boolean {
  const start = decoded.slice(0, LOOKED_AT);
  let odd = 0;
  for (let at = 0; at < start.length; at += 1) {
    const unit = start.charCodeAt(at);
    if (unit < 9 || (unit > 13 && unit < 32) || (unit > 126 && unit < 160) || unit === 0xfffd) odd += 1;
  }
  return !isMostlyOdd(odd, start.length) && /[\p{L}]{2}[\s\p{P}\p{L}]{0,40}[\p{L}]{2}/u.test(start);
}

const HEX = /^[0-9A-Fa-f]+$/;

function fromBase64(found: string): string | undefined {
  // The shortest payload worth its name, not a hash, and the first bytes before all of a large picture is decoded.
  if (found.length < 24 || HEX.test(found)) return undefined;
  const plain = found.includes("\n") ? found.replace(/\s/g, "") : found;
  const length = firstBytes.write(plain.slice(0, 120), "base64");
  if (isMostlyOdd(oddBytes(length), length)) return undefined;
  const start = firstBytes.toString("utf8", 0, length);
  if (!looksLikeText(start.slice(0, -1))) return undefined;
  return plain.length <= 120 ? start : Buffer.from(plain, "base64").toString("utf8");
}

const firstBytes = Buffer.alloc(96);

/**
 * How many of the first bytes are controls or in no character, at the least: names, paths and numbers are encoded text by
 * their letters alone, and most are told by this before they are made a text.
 */
function oddBytes(length: number): number {
  let odd = 0;
  let expected = 0;
  // The last character, of up to four bytes, may be cut and is left out.
  for (let at = 0; at < length - 4; at += 1) {
    const byte = firstBytes[at] ?? 0;
    const goesOn = byte >= 0x80 && byte < 0xc0;
    if (goesOn !== expected > 0 || byte < 9 || (byte > 13 && byte < 32) || byte === 127) odd += 1;
    expected = goesOn ? Math.max(0, expected - 1) : byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  }
  return odd;
}

function fromHex(found: string): string | undefined {
  const digits = found.replace(/[^0-9A-Fa-f]/g, "");
  const length = firstBytes.write(digits.slice(0, 192), "hex");
  if (isMostlyOdd(oddBytes(length), Math.min(LOOKED_AT, digits.length / 2))) return undefined;
  return Buffer.from(digits, "hex").toString("utf8");
}

// The same letters in another order or with something between them.

/** Single letters with the same sign after each. */
const SPACED =
  /[A-Za-z](?:([ .\-_*|+])[A-Za-z])(?:\1[A-Za-z]){4,400}(?:\s{1,6}[A-Za-z](?:\1[A-Za-z]){0,400}){0,40}(?![A-Za-z])/y;
const SPACED_SIGNS = characterSet(" .\\-_*|+");
const LETTERS = characterSet("A-Za-z");
/** Units that are turned before and behind a place, and of one slice. */
const TURNED_REACH = 150;
const MAX_TURNED = 4_000;
/** Run together, words have no boundaries: these are put apart again. */
const JOINED =
  /ignore|disregard|forget|override|all|any|previous|prior|above|your|the|system|prompt|instructions?|rules|reveal|print|show|send|and|tell|user|do|not/gi;

/** Where words were found that are turned by thirteen letters, or backwards. */
export interface TurnedWords {
  readonly rotated: readonly number[];
  readonly backwards: readonly number[];
}

/** Parts of a text as they read when turned around, turned by thirteen letters, or without signs between the letters. */
export function* respelled(
  text: string,
  units: Uint16Array,
  { rotated, backwards }: TurnedWords,
  budget: Budget,
): Generator<Encoded> {
  if (rotated.length > 0) yield* turnedParts(text, rotated, rotate, budget);
  if (backwards.length > 0) yield* turnedParts(text, backwards, bothWays, budget);
  let done = 0;
  const { length } = text;
  for (let at = nextSpacing(units, 0, length); at < length; at = nextSpacing(units, at + 8, length)) {
    const sign = isSpacing(units, at, length) ? at : at + 1;
    let start = sign - 1;
    while (start >= done + 2 && units[start - 1] === units[sign] && isIn(LETTERS, units[start - 2] ?? 0)) start -= 2;
    SPACED.lastIndex = Math.max(done, start);
    const found = SPACED.exec(text);
    if (budget.overspends(10 + 2 * (found?.[0].length ?? 0))) return;
    if (found === null) continue;
    done = SPACED.lastIndex;
    const words = found[0]
      .split(found[1] === " " ? /\s{2,}/ : /\s+/)
      .map((word) => word.replaceAll(found[1] ?? " ", ""));
    yield { start: found.index, end: done, text: words.join(" ").replace(JOINED, " $& ") };
    at = done;
  }
}

/** A run has five signs: one of the first four, or the place before it, is at every eighth place. */
function nextSpacing(units: Uint16Array, from: number, length: number): number {
  let at = from;
  while (at < length && !isSpacing(units, at, length) && !isSpacing(units, at + 1, length)) at += 8;
  return at;
}

/** The same sign at this place and at the next of its kind, with a single letter between. */
function isSpacing(units: Uint16Array, at: number, length: number): boolean {
  const unit = units[at] ?? 0;
  return unit === units[at + 2] && isIn(SPACED_SIGNS, unit) && isIn(LETTERS, units[at + 1] ?? 0) && at + 2 < length;
}

/** The places with the rest of their lines close by. Short words are those of other languages too, with half of the room. */
function* turnedParts(
  text: string,
  places: readonly number[],
  turn: typeof rotate,
  budget: Budget,
): Generator<Encoded> {
  let room = MAX_TURNED;
  let lineEnd = -1;
  for (let at = 0, first = places[0] ?? Infinity; first < text.length; first = places[at] ?? Infinity) {
    if (lineEnd <= first) lineEnd = text.indexOf("\n", first + 1);
    if (lineEnd === -1) lineEnd = text.length;
    const reach = Math.max(0, first - TURNED_REACH);
    const start = reach + text.slice(reach, first + 1).lastIndexOf("\n") + 1;
    let [end, isCommon] = [first, true];
    for (let place = first; place < lineEnd && place <= end + TURNED_REACH; place = places[at] ?? Infinity) {
      end = Math.max(end, place + TURNED_REACH);
      for (let length = 0; isCommon && isLetter(text.charCodeAt(place + length)); length += 1) isCommon = length < 4;
      at += 1;
    }
    end = Math.min(end, lineEnd);
    const cut = Math.min(end, start + Math.max(0, isCommon ? room - MAX_TURNED / 2 : room));
    room -= cut - start;
    if (budget.overspends(20 + cut - start)) return;
    if (cut > start) yield { start, end: cut, text: turn(text.slice(start, cut)) };
    if (cut < end && !isCommon) yield { start: cut, end, text: "" };
  }
}

/** The line turned around, and each of its words where it is. */
const bothWays = (line: string): string => `${reversed(line)}\n${reversed(line.split(" ").toReversed().join(" "))}`;
