/** Encodings that hide words from a reader but not from a model that can decode them. */
import { type CharacterSet, characterSet, nextRun, type Run, runEnd, runsAround } from "./runs.ts";

export interface Encoded {
  readonly start: number;
  readonly end: number;
  /** What it decodes to; only when that is text. */
  readonly text: string;
}

interface Form {
  /** All characters that a match can have, and the fewest of them. */
  readonly characters: CharacterSet;
  readonly shortest: number;
  /** One of these stands in every match. */
  readonly signs?: readonly string[];
  /** Found in every match, and cheaper to look for. */
  readonly needs?: RegExp;
  /** The encoded parts of a run; the whole of it without one. */
  readonly pattern?: RegExp;
  /** What belongs to the match although it stands before it. */
  readonly lead?: RegExp;
  decode(found: string): string | undefined;
}

const BASE64 = characterSet("A-Za-z0-9+/_-");
const BASE64_LINE = 20;

const FORMS: readonly Form[] = [
  { characters: BASE64, shortest: BASE64_LINE, decode: fromBase64 },
  { characters: characterSet("0-9A-Fa-f"), shortest: 32, decode: (found) => fromHex(found) },
  {
    characters: characterSet("0-9A-Fa-f :,-"),
    shortest: 47,
    needs: /[ :,-]/,
    pattern: /(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :,-]){15,}[0-9A-Fa-f]{2}/g,
    decode: fromHex,
  },
  {
    characters: characterSet("\\\\x0-9A-Fa-f ,"),
    shortest: 48,
    signs: ["\\x", "0x"],
    pattern: /(?:(?:\\x|0x)[0-9A-Fa-f]{2}[ ,]{0,2}){12,}/g,
    decode: (found) => fromHex(found.replace(/\\x|0x/g, "")),
  },
  {
    characters: characterSet("\\\\u0-9A-Fa-f"),
    shortest: 72,
    signs: ["\\u"],
    pattern: /(?:\\u[0-9A-Fa-f]{4}){12,}/g,
    decode: fromUnicodeEscapes,
  },
  {
    // From the first percent sign on; the word that stands before it is looked at backwards, which is cheaper.
    characters: characterSet("%\\w.~!*'()-"),
    shortest: 9,
    signs: ["%"],
    pattern: /%[0-9A-Fa-f]{2}(?:[\w.~!*'()-]{0,40}%[0-9A-Fa-f]{2}){2,}[\w.~!*'()-]{0,40}/g,
    lead: /[\w.~!*'()-]{0,40}$/,
    decode: fromPercent,
  },
  {
    characters: characterSet("&#x0-9A-Fa-f; "),
    shortest: 40,
    signs: ["&#"],
    pattern: /(?:&#(?:x[0-9A-Fa-f]{1,6}|\d{1,7});[ ]{0,1}){10,}/g,
    decode: fromEntities,
  },
  {
    characters: characterSet("01 "),
    shortest: 107,
    needs: / /,
    pattern: /(?:[01]{8}[ ]){11,}[01]{8}/g,
    decode: fromBinary,
  },
  {
    characters: characterSet("0-9 ,"),
    shortest: 47,
    needs: /[ ,]/,
    pattern: /(?:\d{2,3}[ ,]{1,2}){15,}\d{2,3}/g,
    decode: fromDecimal,
  },
];

/** The encoded parts of a text that decode to text; undefined where one was looked at that does not. */
export function* encodedParts(text: string): Generator<Encoded | undefined> {
  for (const form of FORMS) {
    const { characters, shortest, signs, pattern } = form;
    if (signs !== undefined && pattern !== undefined) {
      for (const run of runsAround(text, signs, characters, shortest)) yield* partsOf(text, form, pattern, run);
      continue;
    }
    let run = nextRun(text, characters, shortest, 0);
    while (run !== undefined) {
      const { start } = run;
      let { end } = run;
      if (pattern === undefined) {
        end = characters === BASE64 ? base64End(text, end) : end - ((end - start) % 2);
        yield decoded(text, form, start, end);
      } else {
        yield* partsOf(text, form, pattern, run);
      }
      run = nextRun(text, characters, shortest, Math.max(end, run.end));
    }
  }
}

function* partsOf(text: string, form: Form, pattern: RegExp, { start, end }: Run): Generator<Encoded | undefined> {
  const run = text.slice(start, end);
  if (form.needs?.test(run) === false) return;
  let at = 0;
  for (;;) {
    // Set each time: what a part decodes to is searched with the same patterns.
    pattern.lastIndex = at;
    const found = pattern.exec(run);
    if (found === null) return;
    at = found.index + found[0].length;
    yield decoded(text, form, start + found.index, start + at);
  }
}

function decoded(text: string, { lead, decode }: Form, start: number, end: number): Encoded | undefined {
  const before = lead?.exec(text.slice(Math.max(0, start - 40), start))?.[0] ?? "";
  const encoded = before + text.slice(start, end);
  if (encoded.length > 2 * ENOUGH) {
    // The start tells what is no text. Where it is cut in the middle of a character, that is behind what is looked at.
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

/** Words of override phrases turned by thirteen letters, or backwards: cheap to look for before a text is turned. */
const TURNED = /vtaber|qvfertneq|vafgehpgvba|flfgrz cebzcg|cebzcg/;
const BACKWARDS = /snoitcurtsni|erongi|dragersid|tpmorp metsys|suoiverp/;
/** Every match of the patterns above holds one of these. */
export const ROTATED_PARTS: readonly string[] = ["vtaber", "qvfertneq", "vafgehpgvba", "cebzcg"];
export const BACKWARDS_PARTS: readonly string[] = ["snoitcurtsni", "erongi", "dragersid", "tpmorp", "suoiverp"];

/** The whole text turned, where it holds turned words. `text` is normalised. */
export function turnedText(text: string): string | undefined {
  if (!TURNED.test(text)) return undefined;
  return text.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97));
}

export function backwardsText(text: string): string | undefined {
  return BACKWARDS.test(text) ? [...text].toReversed().join("") : undefined;
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
