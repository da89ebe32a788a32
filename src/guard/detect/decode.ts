/** Encodings that hide words from a reader but not from a model that can decode them. */

export interface Encoded {
  readonly start: number;
  readonly end: number;
  /** What it decodes to; only when that is text. */
  readonly text: string;
}

interface Form {
  readonly pattern: RegExp;
  /** What belongs to the match although it stands before it. */
  readonly lead?: RegExp;
  decode(found: string): string | undefined;
}

const FORMS: readonly Form[] = [
  // Blocks of base64, also in lines as mails have them, and in its URL alphabet.
  { pattern: /(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}(?:\r?\n[A-Za-z0-9+/_-]{20,})*={0,2}/g, decode: fromBase64 },
  { pattern: /(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,}/g, decode: fromHex },
  { pattern: /(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :,-]){15,}[0-9A-Fa-f]{2}/g, decode: fromHex },
  { pattern: /(?:(?:\\x|0x)[0-9A-Fa-f]{2}[ ,]{0,2}){12,}/g, decode: (found) => fromHex(found.replace(/\\x|0x/g, "")) },
  { pattern: /(?:\\u[0-9A-Fa-f]{4}){12,}/g, decode: fromUnicodeEscapes },
  {
    // From the first percent sign on; the word that stands before it is looked at backwards, which is cheaper.
    pattern: /%[0-9A-Fa-f]{2}(?:[\w.~!*'()-]{0,40}%[0-9A-Fa-f]{2}){2,}[\w.~!*'()-]{0,40}/g,
    lead: /[\w.~!*'()-]{0,40}$/,
    decode: fromPercent,
  },
  { pattern: /(?:&#(?:x[0-9A-Fa-f]{1,6}|\d{1,7});[ ]{0,1}){10,}/g, decode: fromEntities },
  { pattern: /(?:[01]{8}[ ]){11,}[01]{8}/g, decode: fromBinary },
  { pattern: /(?:\d{2,3}[ ,]{1,2}){15,}\d{2,3}/g, decode: fromDecimal },
];

/** The encoded parts of a text that decode to text. */
export function* encodedParts(text: string): Generator<Encoded> {
  for (const { pattern, lead, decode } of FORMS) {
    for (const found of text.matchAll(pattern)) {
      const before = lead?.exec(text.slice(Math.max(0, found.index - 40), found.index))?.[0] ?? "";
      const decoded = decode(before + found[0]);
      if (decoded === undefined || !looksLikeText(decoded)) continue;
      yield { start: found.index - before.length, end: found.index + found[0].length, text: decoded };
    }
  }
}

/** Words of override phrases turned by thirteen letters, or backwards: cheap to look for before a text is turned. */
const TURNED = /vtaber|qvfertneq|vafgehpgvba|flfgrz cebzcg|cebzcg/;
const BACKWARDS = /snoitcurtsni|erongi|dragersid|tpmorp metsys|suoiverp/;

/** The whole text turned, where it holds turned words. `text` is normalised. */
export function turnedText(text: string): string | undefined {
  if (!TURNED.test(text)) return undefined;
  return text.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97));
}

export function backwardsText(text: string): string | undefined {
  return BACKWARDS.test(text) ? [...text].toReversed().join("") : undefined;
}

/** A picture or a key shows in its first bytes that it is none; the rest is then never looked at. */
function looksLikeText(decoded: string): boolean {
  const start = decoded.slice(0, 400);
  // oxlint-disable-next-line no-control-regex -- control characters are what tells bytes from text
  const odd = start.match(/[\u0000-\u0008\u000e-\u001f\u007f-\u009f\ufffd]/g)?.length ?? 0;
  return odd * 20 <= start.length && /[\p{L}]{2}[\s\p{P}\p{L}]{0,40}[\p{L}]{2}/u.test(start);
}

function fromBase64(found: string): string | undefined {
  // The shortest payload worth its name, and the first bytes before all of a large picture is decoded.
  if (found.length < 24) return undefined;
  const plain = found.includes("\n") ? found.replace(/\s/g, "") : found;
  if (!looksLikeText(Buffer.from(plain.slice(0, 120), "base64").toString("utf8").slice(0, -1))) return undefined;
  return Buffer.from(plain, "base64").toString("utf8");
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
