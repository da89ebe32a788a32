/** One plain spelling of a text, with the way back to the original. */
import { lastAtOrBefore } from "./sorted.ts";

export interface NormalText {
  readonly text: string;
  /** The index in the original of an index in `text`; `text.length` maps to the end of the original. */
  originalAt(index: number): number;
  /** At how many places characters fold into none, several, or half of a pair: what makes folding a text slow. */
  readonly steps: number;
}

// oxlint-disable-next-line no-control-regex -- tab and newlines are the controls that need no folding
const NOT_PLAIN = /[^\t\n\r\x20-\x7e]/;
const REMOVED = /[\p{M}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const SPACE = /^[\s\p{Z}]$/u;
const ESCAPE = 0x1b;

/** The unit that a unit folds into, for those that fold into one; filled as they are met. */
const FOLDED = new Uint16Array(0x10000);
/** A unit that needs a closer look: half of a pair, an escape, or a character that folds into none or several. */
const SPECIAL = 0xffff;
const STRIDE = 4_096;

/** A text of printable ASCII, tabs and line breaks. Made small when it is asked for: few are. */
class PlainText implements NormalText {
  readonly steps = 0;
  readonly #original: string;
  #text: string | undefined;

  constructor(original: string) {
    this.#original = original;
  }

  get text(): string {
    return (this.#text ??= this.#original.toLowerCase());
  }

  originalAt(index: number): number {
    return index;
  }
}

/**
 * Compatibility forms, accents, case, look-alike letters, invisible characters and colour codes are folded away.
 * Works code point by code point, so it is linear and the offsets stay exact.
 */
export function normalise(text: string): NormalText {
  if (!NOT_PLAIN.test(text)) return new PlainText(text);
  const folding = new Folding(text);
  while (!folding.isDone) folding.advance();
  return folding.result();
}

/** Letters of other alphabets that fold into several units, or into pairs of them, and what is between colour codes. */
const FOLDS_APART = /[\u001b\ud835\ufb00-\ufb06\u2474-\u24ff]|\ud83c[\udd30-\udd89]/;

/** One unit that folds into up to eighteen. */
const WHOLE_WORDS = /[\u3300-\u33ff\ufdf0-\ufdff]/g;

/** The text as its words are read, where that is not unit by unit: a cheaper folding for texts that are read for words. */
export function respelt(text: string): NormalText | undefined {
  const plain = FOLDS_APART.test(text) ? normalise(text.replace(WHOLE_WORDS, " ")) : undefined;
  if (!/[\u1100-\u11ff]/.test(text)) return plain;
  const whole = composed(plain?.text ?? text);
  return plain === undefined
    ? whole
    : {
        text: whole.text,
        originalAt: (index) => plain.originalAt(whole.originalAt(index)),
        steps: plain.steps,
      };
}

/** Letters of Korean, written one by one, put together into syllables. */
function composed(text: string): NormalText {
  const offsets = new Offsets();
  const units = new Uint16Array(text.length);
  Buffer.from(units.buffer).write(text, "utf16le");
  let count = 0;
  for (let at = 0; at < units.length; count += 1) {
    const start = at;
    const unit = units[at] ?? 0;
    // As Unicode numbers them: a consonant, a vowel, and one of 27 consonants or none.
    const vowel = (units[at + 1] ?? 0) - 0x1161;
    const isSyllable = isBetween(unit, 0x1100, 0x1112) && isBetween(vowel, 0, 20);
    const last = isSyllable && isBetween(units[at + 2] ?? 0, 0x11a8, 0x11c2) ? (units[at + 2] ?? 0) - 0x11a7 : 0;
    at += isSyllable ? (last > 0 ? 3 : 2) : 1;
    if (isSyllable) offsets.note(count, start);
    units[count] = isSyllable ? 0xac00 + ((unit - 0x1100) * 21 + vowel) * 28 + last : unit;
    if (isSyllable) offsets.note(count + 1, at);
  }
  const plain = Buffer.from(units.buffer, 0, count * 2).toString("utf16le");
  return { text: plain, originalAt: (index) => Math.min(text.length, offsets.at(index)), steps: 0 };
}

/** Units are copied out and folded in blocks: a list of numbers is walked several times as fast as a text. */
const BLOCK = 8_192;
const units = new Uint16Array(STRIDE);
const unitBytes = Buffer.from(units.buffer);

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

  constructor(text: string) {
    this.#text = text;
    this.#block = new Uint16Array(Math.min(BLOCK, text.length + 64));
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Folds a stride. */
  advance(): void {
    const text = this.#text;
    const start = this.#at;
    const to = Math.min(text.length, start + STRIDE);
    unitBytes.write(text.slice(start, to), "utf16le");
    while (this.#at < to) {
      this.#foldTo(start, to);
      if (this.#filled === this.#block.length) this.#flush();
      else if (this.#at < to) this.#foldOne(units[this.#at - start] ?? 0);
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
      steps: offsets.count,
    };
  }

  /** Units that are known to fold one to one, up to the first that is not. */
  #foldTo(start: number, to: number): void {
    const from = this.#at - start;
    const end = Math.min(to - start, from + this.#block.length - this.#filled);
    const at = foldUnits(units, FOLDED, this.#block, from, end, this.#filled - from);
    for (let index = this.#filled; index < this.#filled + at - from; index += 1) this.#wide |= this.#block[index] ?? 0;
    this.#filled += at - from;
    this.#at = start + at;
  }

  #foldOne(unit: number): void {
    // What is learned now folds with the next ones, unless it is special.
    if ((FOLDED[unit] || learn(unit)) === SPECIAL) this.#at = this.#special(this.#at);
  }

  /** Folds what does not fold one to one; returns where it goes on. */
  #special(at: number): number {
    const codePoint = this.#text.codePointAt(at) ?? 0;
    let next = at + (codePoint > 0xffff ? 2 : 1);
    let plain = "";
    if (codePoint === ESCAPE || codePoint === 0x9b) next = afterEscape(this.#text, at);
    else plain = foldedText(codePoint);
    if (plain.length > 1) this.#offsets.hold(this.#flushed + this.#filled, at);
    else if (plain !== "") this.#offsets.note(this.#flushed + this.#filled, at);
    for (let index = 0; index < plain.length; index += 1) {
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

/** Returns where it stopped: at the end, or at a unit that is special or not known yet. `shift` is that of the block. */
function foldUnits(
  units: Uint16Array,
  folded: Uint16Array,
  block: Uint16Array,
  from: number,
  to: number,
  shift: number,
): number {
  let at = from;
  while (at < to) {
    const own = folded[units[at] ?? 0] ?? 0;
    if (own === 0 || own === SPECIAL) break;
    block[at + shift] = own;
    at += 1;
  }
  return at;
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

/** Code points that fold into none or several units, remembered up to a bound. */
const REMEMBERED = new Map<number, string>();
const MAX_REMEMBERED = 4_096;

function foldedText(codePoint: number): string {
  const known = REMEMBERED.get(codePoint);
  if (known !== undefined) return known;
  const plain = fold(codePoint);
  if (REMEMBERED.size < MAX_REMEMBERED) REMEMBERED.set(codePoint, plain);
  return plain;
}

function fold(codePoint: number): string {
  if (codePoint < 0x20 || codePoint === 0x7f || codePoint === 0x85)
    return codePoint === 0 || codePoint === 0x08 ? "" : " ";
  if (codePoint === 0x2028 || codePoint === 0x2029) return "\n";
  // Arabic phrases of 18 and 8 letters, of which a text would become so many times as long.
  if (codePoint === 0xfdfa || codePoint === 0xfdfb) return " ";
  const symbol = symbolLetter(codePoint);
  if (symbol !== undefined) return symbol;
  const character = String.fromCodePoint(codePoint);
  const direct = CONFUSABLES.get(character);
  if (direct !== undefined) return direct;
  if (SPACE.test(character)) return " ";
  // Taken apart, a syllable of Korean would be three letters.
  if (codePoint >= 0xac00 && codePoint <= 0xd7a3) return character;
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
  #indices: Int32Array = new Int32Array(64);
  /** Its complement where all up to the next index come from the same place: one character may fold into several. */
  #origins: Int32Array = new Int32Array(64);
  count = 1;

  note(index: number, origin: number): void {
    const last = this.count - 1;
    const lastIndex = this.#indices[last] ?? 0;
    const lastOrigin = this.#origins[last] ?? 0;
    if (lastOrigin >= 0 && index - lastIndex === origin - lastOrigin) return;
    this.#put(index, origin);
  }

  /** All from here on come from `origin`, up to the next note. */
  hold(index: number, origin: number): void {
    this.#put(index, ~origin);
  }

  at(index: number): number {
    const part = lastAtOrBefore(this.#indices, index, this.count);
    const origin = this.#origins[part] ?? 0;
    return origin < 0 ? ~origin : origin + index - (this.#indices[part] ?? 0);
  }

  #put(index: number, origin: number): void {
    if (this.#indices[this.count - 1] !== index) this.count += 1;
    if (this.count > this.#indices.length) {
      this.#indices = grown(this.#indices);
      this.#origins = grown(this.#origins);
    }
    this.#indices[this.count - 1] = index;
    this.#origins[this.count - 1] = origin;
  }
}

function grown(list: Int32Array): Int32Array {
  const larger = new Int32Array(2 * list.length);
  larger.set(list);
  return larger;
}

/** Cyrillic, Greek, phonetic, Cherokee and Armenian letters: the scripts that forgers use, not the whole Unicode table. */
const LOOKALIKES: Readonly<Record<string, string>> = {
  a: "аαɑᴀⲁꭺ",
  b: "ьвβϐʙ",
  c: "сᴄϲⅽⲥꮯ",
  d: "ԁᴅđꭰ",
  e: "еєҽεᴇɛǝəꭼ",
  f: "ꜰẝƒ",
  g: "ɢɡցᶃ",
  h: "һнʜհħ",
  i: "іɩιɪıꭵⵏ",
  j: "јᴊϳ",
  k: "кқκϰᴋ",
  l: "ӏʟłⅼ",
  m: "мᴍⅿ",
  n: "пηɴոռ",
  o: "оөοσᴏօøⲟ",
  p: "рρϱᴘⲣ",
  q: "ԛգ",
  r: "гʀɾꮁ",
  s: "ѕꜱʂꮪß",
  t: "тτᴛŧ",
  u: "цυʋᴜս",
  v: "ѵνᴠⅴⱱ",
  w: "ԝѡωᴡա",
  x: "хҳχⅹ×",
  y: "уүγʏყ",
  z: "ζᴢƶ",
  "'": "’‘ʼ′‛＇",
  '"': "“”„‟«»″「」『』〝〞",
  "-": "‐‑‒–—―−",
  "|": "｜ǀ∣❘│￨",
  "<": "‹＜﹤〈⟨❮˂",
  ">": "›＞﹥〉⟩❯˃",
  "/": "⁄∕",
  ":": "：꞉ː∶",
};

const CONFUSABLES: ReadonlyMap<string, string> = new Map(
  Object.entries(LOOKALIKES).flatMap(([plain, likes]) => [...likes].map((like) => [like, plain] as const)),
);

/** Letters that are drawn as emoji-like symbols and have no decomposition: first code point of a run from A to Z. */
const SYMBOL_ALPHABETS = [0x1f130, 0x1f150, 0x1f170, 0x1f1e6] as const;

function symbolLetter(codePoint: number): string | undefined {
  for (const first of SYMBOL_ALPHABETS) {
    if (codePoint >= first && codePoint < first + 26) return String.fromCharCode(0x61 + codePoint - first);
  }
  return undefined;
}
