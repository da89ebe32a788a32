/** Encodings that hide words from a reader but not from a model that can decode them. */
import { type CharacterSet, characterSet, isIn, runEnd, runsAround, runsOf } from "../base/character-runs.ts";

export interface Encoded {
  readonly start: number;
  readonly end: number;
  /** The decoded text. */
  readonly text: string;
}

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
  readonly patterns: readonly (readonly [part: RegExp | undefined, decode: (found: string) => string | undefined])[];
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
    patterns: [[/(?:\\u[0-9A-Fa-f]{4}){12,}/g, fromUnicodeEscapes]],
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
    patterns: [[/(?:&#(?:x[0-9A-Fa-f]{1,6}|\d{1,7});[ ]{0,1}){10,}/g, fromEntities]],
  },
  // Numbers with something between them: all are looked for in the same runs.
  {
    characters: characterSet("0-9A-Fa-f :,-"),
    shortest: 47,
    patterns: [
      [/(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :,-]){15,}[0-9A-Fa-f]{2}/g, fromHex],
      [/(?:[01]{8}[ ]){11,}[01]{8}/g, fromBinary],
      [/(?:\d{2,3}[ ,]{1,2}){15,}\d{2,3}/g, fromDecimal],
    ],
  },
];

/** The encoded parts of a text that decode to text. */
export function* encodedParts(text: string): Generator<Encoded> {
  for (const form of FORMS) {
    const { characters, shortest, signs } = form;
    const runs =
      signs === undefined ? runsOf(text, characters, shortest) : runsAround(text, signs, characters, shortest);
    let done = 0;
    for (const { start, end } of runs) {
      if (start < done) continue;
      done = characters === BASE64 ? base64End(text, end) : end;
      yield* partsOf(text, form, start, done);
    }
  }
}

function* partsOf(text: string, { patterns, lead, unit = 1 }: Form, start: number, end: number): Generator<Encoded> {
  for (const [pattern, decode] of patterns) {
    if (pattern === undefined) {
      // A run that begins with the text may be the rest of one that was cut, wherever.
      for (let skip = 0; skip < (start === 0 ? unit : 1); skip += 1) {
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

function decoded(
  text: string,
  decode: (found: string) => string | undefined,
  start: number,
  end: number,
  lead?: RegExp,
): Encoded | undefined {
  const before = lead?.exec(text.slice(Math.max(0, start - 40), start))?.[0] ?? "";
  const encoded = before + text.slice(start, Math.min(end, start + MAX_ENCODED_LENGTH));
  if (encoded.length > 2 * ENOUGH) {
    // The start tells whether it is text. Where it is cut in the middle of a character, that is behind what is looked at.
    const beginning = decode(encoded.slice(0, ENOUGH));
    if (beginning !== undefined && beginning.length >= LOOKED_AT + 4 && !looksLikeText(beginning)) return undefined;
  }
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

/** Characters of a decoded text by which it is told, and how much of an encoded one has at least as many, as a rule. */
const LOOKED_AT = 400;
const ENOUGH = 8_192;

/** Too many for a text. */
function isMostlyOdd(odd: number, length: number): boolean {
  return odd * 20 > length;
}

/** A picture or a key shows in its first bytes that it is none; the rest is then never looked at. */
function looksLikeText(decoded: string): boolean {
  const start = decoded.slice(0, LOOKED_AT);
  // oxlint-disable-next-line no-control-regex -- control characters are what tells bytes from text
  const odd = start.match(/[\u0000-\u0008\u000e-\u001f\u007f-\u009f\ufffd]/g)?.length ?? 0;
  return !isMostlyOdd(odd, start.length) && /[\p{L}]{2}[\s\p{P}\p{L}]{0,40}[\p{L}]{2}/u.test(start);
}

function fromBase64(found: string): string | undefined {
  // The shortest payload worth its name, and the first bytes before all of a large picture is decoded.
  if (found.length < 24) return undefined;
  const plain = found.includes("\n") ? found.replace(/\s/g, "") : found;
  const start = Buffer.from(plain.slice(0, 120), "base64");
  if (hasManyControls(start) || !looksLikeText(start.toString("utf8").slice(0, -1))) return undefined;
  return Buffer.from(plain, "base64").toString("utf8");
}

/** Names and paths are base64 by their letters alone; most are told by this before they are made a text. */
function hasManyControls(start: Uint8Array): boolean {
  let controls = 0;
  // The last character, of up to four bytes, may be cut and is left out.
  for (let at = 0; at < start.length - 4; at += 1) {
    const byte = start[at] ?? 0;
    if (byte < 9 || (byte > 13 && byte < 32) || byte === 127) controls += 1;
  }
  return isMostlyOdd(controls, start.length);
}

function fromHex(found: string): string {
  return Buffer.from(found.replace(/[^0-9A-Fa-f]/g, ""), "hex").toString("utf8");
}

function fromUnicodeEscapes(found: string): string {
  return found.replace(/\\u([0-9A-Fa-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function fromPercent(found: string): string | undefined {
  const bytes = found.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function fromEntities(found: string): string {
  return found.replace(/&#(x?)([0-9A-Fa-f]{1,7}); ?/g, (_, hex: string, digits: string) => {
    const codePoint = Number.parseInt(digits, hex === "x" ? 16 : 10);
    return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : "";
  });
}

function fromBinary(found: string): string {
  return found
    .split(" ")
    .map((byte) => String.fromCharCode(Number.parseInt(byte, 2)))
    .join("");
}

function fromDecimal(found: string): string {
  return found
    .split(/[ ,]+/)
    .map((number) => String.fromCharCode(Number(number)))
    .join("");
}

// The same letters in another order or with something between them.

/** Single letters with the same sign after each. */
const SPACED =
  /[A-Za-z](?:([ .\-_*|+])[A-Za-z])(?:\1[A-Za-z]){4,400}(?:\s{2,6}[A-Za-z](?:\1[A-Za-z]){1,400}){0,40}(?![A-Za-z])/y;
const SPACED_SIGNS = characterSet(" .\\-_*|+");
const LETTERS = characterSet("A-Za-z");
const MAX_TURNED_LENGTH = 2_000;
/** Of one slice: a longer text that is turned is found by its beginning. */
const MAX_TURNED_TOTAL = 8_000;
/** Run together, words have no boundaries: these are put apart again. */
const JOINED =
  /ignore|disregard|forget|override|all|any|previous|prior|above|your|the|system|prompt|instructions?|rules|reveal|print|show|send|and|tell|user|do|not/gi;

/** Where words were found that are turned by thirteen letters, or backwards. */
export interface TurnedWords {
  readonly rotated: readonly number[];
  readonly backwards: readonly number[];
}

/** Parts of a text as they read when turned around, turned by thirteen letters, or without signs between the letters. */
export function* respelled(text: string, { rotated, backwards }: TurnedWords): Generator<Encoded> {
  yield* turnedLines(text, rotated, rotate);
  yield* turnedLines(text, backwards, (line) => [...line].toReversed().join(""));
  let done = 0;
  // A run has five signs: one of the first four or the place before it is at every eighth place.
  for (let at = 0; at < text.length; at += 8) {
    const sign = isSpacing(text, at) ? at : isSpacing(text, at + 1) ? at + 1 : -1;
    if (sign === -1) continue;
    let start = sign - 1;
    while (start >= done + 2 && text[start - 1] === text[sign] && isIn(LETTERS, text.charCodeAt(start - 2))) start -= 2;
    SPACED.lastIndex = Math.max(done, start);
    const found = SPACED.exec(text);
    if (found === null) continue;
    done = SPACED.lastIndex;
    const words = found[0].split(/\s{2,}/).map((word) => word.replaceAll(found[1] ?? " ", ""));
    yield { start: found.index, end: done, text: words.join(" ").replace(JOINED, " $& ") };
    at = done;
  }
}

/** The same sign at this place and at the next of its kind, with a single letter between. */
function isSpacing(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return isIn(SPACED_SIGNS, unit) && text.charCodeAt(at + 2) === unit && isIn(LETTERS, text.charCodeAt(at + 1));
}

/** The lines that hold the places, up to a length around them. */
function* turnedLines(text: string, places: readonly number[], turn: (line: string) => string): Generator<Encoded> {
  let end = 0;
  let room = MAX_TURNED_TOTAL;
  for (const place of places) {
    if (place < end || room <= 0) continue;
    const start = Math.max(end, place - MAX_TURNED_LENGTH, text.lastIndexOf("\n", place) + 1);
    const stop = text.indexOf("\n", place);
    end = Math.min(stop === -1 ? text.length : stop, place + MAX_TURNED_LENGTH);
    room -= end - start;
    yield { start, end, text: turn(text.slice(start, end)) };
  }
}

function rotate(line: string): string {
  return line.replace(/[a-z]/gi, (letter) => {
    const first = letter < "a" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - first + 13) % 26) + first);
  });
}
