/** Masks secrets in text that is shown, logged or recorded: known values in all their forms, and what looks like a token. */
import { isPlainText, isCredentialName } from "./credential-names.ts";
import { MASK, maskEach, maskTokens } from "./mask.ts";

/** Values under this length are not masked: they would blot out ordinary text and protect nothing. */
const MIN_LENGTH = 4;
/** In what tools return a mask changes data, so only what cannot be an everyday word is masked there. */
const MIN_CONTENT_LENGTH = 8;
/** Nothing that people or programs write nests deeper; what does is masked whole rather than walked. */
const MAX_DEPTH = 256;
const MAX_CACHED_LENGTH = 100;
const MAX_CACHED_TEXTS = 500;

export class Redactor {
  readonly #base: Redactor | undefined;
  readonly #known = new KnownValues(MIN_LENGTH);
  readonly #credentials = new KnownValues(MIN_CONTENT_LENGTH);
  /** Short texts as they were masked, until another value is added: the names of tools are in every record. */
  readonly #cache = new Map<string, string>();

  /**
   * @param base Masks first, and never learns the values of this one: a client that names its secrets must not be able to
   *   blot out words in what others read.
   */
  constructor(base?: Redactor) {
    this.#base = base;
  }

  /** Whether it has values itself. */
  get hasValues(): boolean {
    return !this.#known.isEmpty;
  }

  /** A value to mask in messages: it may be a secret. */
  add(value: string): void {
    for (const part of secretParts(value)) this.#known.add(part.value, part.open);
    this.#cache.clear();
  }

  /** A value that is certainly a secret: masked in messages and in what tools return. */
  addCredential(value: string): void {
    this.add(value);
    for (const part of secretParts(value)) this.#credentials.add(part.value, part.open);
  }

  /** For messages, logs, events and records. */
  readonly mask = (given: string): string => {
    const text = this.#base === undefined ? given : this.#base.mask(given);
    const isShort = text.length <= MAX_CACHED_LENGTH;
    const known = isShort ? this.#cache.get(text) : undefined;
    if (known !== undefined) return known;
    const masked = maskTokens(this.#known.maskCut(this.#known.mask(text)));
    if (!isShort) return masked;
    if (this.#cache.size >= MAX_CACHED_TEXTS) this.#cache.clear();
    this.#cache.set(text, masked);
    return masked;
  };

  /** `mask` for every string of a value, such as the details of an error. The value itself if there is nothing to mask. */
  readonly maskAll = <Value>(value: Value): Value =>
    maskValue(value, {
      mask: this.mask,
      minLength: MIN_LENGTH,
      cache: this.#base === undefined ? this.#cache : undefined,
    });

  /**
   * For what tools return: known credentials only, so that a text that merely mentions tokens stays as it is. The value
   * itself if there is nothing to mask.
   */
  readonly maskContent = <Value>(given: Value): Value => {
    const value = this.#base === undefined ? given : this.#base.maskContent(given);
    if (this.#credentials.isEmpty) return value;
    return maskValue(value, { mask: (text) => this.#credentials.mask(text), minLength: MIN_CONTENT_LENGTH });
  };
}

interface TextMask {
  readonly mask: (text: string) => string;
  /** Shorter texts stay as they are. */
  readonly minLength: number;
  /** Texts that were masked before. */
  readonly cache?: ReadonlyMap<string, string>;
}

/** The value with its strings and keys masked; copies only what changes. */
function maskValue<Value>(value: Value, text: TextMask): Value {
  const masked = typeof value === "string" ? text.mask(value) : maskInside(value, text, 0);
  // Each branch returns the kind of value that it was given.
  return masked as Value;
}

/** Runs over every event and record, so it looks short texts up itself and calls `mask` only for new ones. */
function maskInside(value: unknown, text: TextMask, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return MASK;
  const { mask, minLength, cache } = text;
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined;
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (typeof item === "number" || typeof item === "boolean") continue;
      const masked = typeof item === "string" ? mask(item) : maskInside(item, text, depth + 1);
      if (masked !== item) (copy ??= [...value])[index] = masked;
    }
    return copy ?? value;
  }
  // A non-null object that is not an array: any key of it may be read.
  const holder = value as Readonly<Record<string, unknown>>;
  let changed: [key: string, value: unknown][] | undefined;
  const keys = Object.keys(holder);
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] ?? "";
    const each = holder[key];
    const maskedKey = key.length >= minLength ? (cache?.get(key) ?? mask(key)) : key;
    let masked = each;
    if (typeof each === "object") masked = maskInside(each, text, depth + 1);
    else if (typeof each === "string" && each.length >= minLength) {
      masked = (each.length > MAX_CACHED_LENGTH ? undefined : cache?.get(each)) ?? mask(each);
    }
    if (changed === undefined && (maskedKey !== key || masked !== each))
      changed = keys.slice(0, index).map((before) => [before, holder[before]]);
    changed?.push([maskedKey, masked]);
  }
  return changed === undefined ? value : Object.fromEntries(changed);
}

interface SecretPart {
  readonly value: string;
  /** This many characters at its beginning are not secret: they are masked only with the rest. */
  readonly open: number;
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^:/?#@]*)(?::([^/?#]*))?@)?([^/?#]*[/?#]?)/i;

/** The secret parts of a value: the value itself first, then those parts of an address that grant access. */
export function secretParts(value: string): SecretPart[] {
  const [start, scheme = "", user, password, host = ""] = ADDRESS.exec(value) ?? [];
  if (start === undefined) return [{ value, open: 0 }];
  const parts: SecretPart[] = [];
  if (user !== undefined && password !== undefined && password !== "") {
    for (const [name, word] of [
      [user, password],
      [decoded(user), decoded(password)],
    ] as const) {
      parts.push({ value: `${name}:${word}`, open: name.length + 1 });
      // `postgres://postgres:postgres@…`: masked alone, it would blot out ordinary words.
      if (word !== scheme && word !== name) parts.push({ value: word, open: 0 });
    }
  }
  for (const each of queryValues(value)) parts.push({ value: each, open: 0 });
  const open = openLength({ scheme, user, password, host });
  return [{ value, open }, ...parts.filter((part) => isPlainText(part.value))];
}

interface Address {
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly host: string;
}

/** A name without a password may be a token; behind the host everything may be one. */
function openLength({ scheme, user, password, host }: Address): number {
  const begin = scheme.length + "://".length;
  if (user === undefined) return begin + host.length;
  return password === undefined ? begin : begin + user.length + 1;
}

/** As written and as meant. */
function queryValues(address: string): string[] {
  const [, query = ""] = /\?([^#]*)/.exec(address) ?? [];
  return query.split("&").flatMap((pair) => {
    const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
    return isCredentialName(decoded(name)) ? [value, decoded(value.replaceAll("+", " "))] : [];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A pattern of a longer form would be larger than the engine takes. */
const MAX_PATTERN_LENGTH = 1024;
/** This much of a form's beginning is recognised where a text was cut off. */
const PREFIX_LENGTH = 8;
/** Shorter texts are searched as fast as they are filtered. */
const MIN_FILTERED_LENGTH = 512;
/** The marks of a text that was cut off, or nothing at all. */
const CUT = /["'`)\]]{0,2}(…|\.\.\.|$)/y;
/** Where a text merely ends with one of these, that is a word sooner than half a secret. */
const WORD = /^[A-Za-z]{1,11}$/;

interface FormPrefix {
  readonly form: string;
  /** A shorter beginning is not secret. */
  readonly least: number;
}

/** Values to mask, in all their forms, as one pattern that is rebuilt only after a new value. */
export class KnownValues {
  readonly #shortest: number;
  readonly #values = new Set<string>();
  readonly #forms = new Set<string>();
  readonly #longForms = new Set<string>();
  /** Forms by their beginning. */
  readonly #beginnings = new Map<string, FormPrefix[]>();
  /** For texts that are long enough to be worth it. */
  readonly #filter: SecretFilter | undefined;
  #pattern: RegExp | undefined;
  #beginningPattern: RegExp | undefined;

  /** @param shortest Shorter values are not masked. */
  constructor(shortest: number) {
    this.#shortest = shortest;
    this.#filter = shortest < MIN_FILTERED_BYTES ? undefined : new SecretFilter();
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** @param open This many characters at the beginning of the value are not secret. */
  add(value: string, open = 0): void {
    if (value.length < this.#shortest || this.#values.has(value)) return;
    this.#values.add(value);
    const openForms = open === 0 ? [] : encodedForms(value.slice(0, open));
    for (const form of new Set(encodedForms(value))) {
      if (form.length >= this.#shortest) {
        (form.length < MAX_PATTERN_LENGTH ? this.#forms : this.#longForms).add(form);
        this.#filter?.add(form);
      }
      if (form.length <= PREFIX_LENGTH) continue;
      const begun = { form, least: leastOf(form, openForms) };
      const beginning = form.slice(0, PREFIX_LENGTH);
      const others = this.#beginnings.get(beginning);
      if (others === undefined) this.#beginnings.set(beginning, [begun]);
      else others.push(begun);
    }
    this.#pattern = undefined;
    this.#beginningPattern = undefined;
  }

  mask(text: string): string {
    if (this.#values.size === 0 || text.length < this.#shortest) return text;
    if (text.length > MIN_FILTERED_LENGTH && this.#filter?.mayHold(text) === false) return text;
    let masked = text;
    for (const form of this.#longForms) if (text.length >= form.length) masked = masked.replaceAll(form, MASK);
    if (this.#forms.size === 0) return masked;
    this.#pattern ??= alternation(this.#forms);
    return masked.replace(this.#pattern, MASK);
  }

  /** Masks the beginning of a value at a place where the text was cut off: who shortens a text may not know its secrets. */
  maskCut(text: string): string {
    if (this.#beginnings.size === 0 || text.length < PREFIX_LENGTH) return text;
    this.#beginningPattern ??= alternation(this.#beginnings.keys());
    return maskEach(text, this.#beginningPattern, ({ index, 0: beginning }) => {
      for (const { form, least } of this.#beginnings.get(beginning) ?? []) {
        const length = commonLength(form, text, index);
        if (length >= least && isCut(text, index, index + length)) return [index, index + length];
      }
      return undefined;
    });
  }
}

/** Is the text cut off at `end`, in the middle of what begins at `start`? */
function isCut(text: string, start: number, end: number): boolean {
  CUT.lastIndex = end;
  const cut = CUT.exec(text);
  if (cut === null) return false;
  const isWhole = start === 0 || !/[A-Za-z0-9]/.test(text.charAt(start - 1));
  return cut[1] !== "" || !isWhole || !WORD.test(text.slice(start, end));
}

/** One more than what the form has of the open beginning. */
function leastOf(form: string, openForms: readonly string[]): number {
  const open = openForms.filter((each) => form.startsWith(each)).map((each) => each.length);
  return Math.max(PREFIX_LENGTH, ...open.map((length) => length + 1));
}

/** How much of the form is in the text at this position. */
function commonLength(form: string, text: string, at: number): number {
  let length = PREFIX_LENGTH;
  while (length < form.length && form.charCodeAt(length) === text.charCodeAt(at + length)) length++;
  return length;
}

/** Longest first, so that a secret that contains another one is masked whole. */
function alternation(forms: Iterable<string>): RegExp {
  const longestFirst = [...forms].toSorted((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
}

/** Shorter pieces would blot out ordinary text. */
const MIN_PIECE_LENGTH = 8;
const MIN_LINE_LENGTH = 16;

/** The forms in which a secret may appear: as it is, and as in URLs, JSON, base64 and logs of them. */
function encodedForms(value: string): string[] {
  const forms = [value, ...percentForms(value), ...jsonForms(value), ...base64Forms(value)];
  const hex = Buffer.from(value, "utf8").toString("hex");
  if (hex.length >= 2 * MIN_PIECE_LENGTH) forms.push(hex, hex.toUpperCase());
  // A key of several lines is printed line by line.
  if (value.includes("\n"))
    forms.push(...value.split(/\r?\n/).filter((line) => line.length >= MIN_LINE_LENGTH && !line.startsWith("-----")));
  return forms;
}

/** encodeURIComponent throws on a lone surrogate; such a value is masked in its other forms. */
function percentForms(value: string): string[] {
  if (!value.isWellFormed()) return [];
  const component = encodeURIComponent(value);
  const lower = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  const form = new URLSearchParams([["", value]]).toString().slice(1);
  const address = encodeURI(value);
  return [component, lower(component), component.replaceAll("%20", "+"), form, lower(form), address, lower(address)];
}

function jsonForms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [json, ascii, json.replaceAll("/", "\\/"), JSON.stringify(json).slice(1, -1)];
}

/**
 * Alone, and inside of something longer, such as `user:secret` in a Basic header: what precedes shifts the letters in
 * one of three ways, and only those at the edges depend on the neighbours.
 */
function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value, "utf8");
  const whole = bytes.toString("base64");
  const forms = [whole, whole.replace(/=+$/, "")];
  for (const shift of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    const piece = shifted.slice(shift === 0 ? 0 : shift + 1, Math.floor(((shift + bytes.length) * 8) / 6));
    if (piece.length >= MIN_PIECE_LENGTH) forms.push(piece);
  }
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

/** With seven bytes, four of them fill one of the places that are four apart, wherever the value is. Longer values fill places further apart. */
const MIN_FILTERED_BYTES = 7;
/** In words of four bytes. */
const MAX_STEP = 4;

const SLOTS = 1 << 18;
/** Units of text that are looked at together. A unit has up to three bytes. */
const PIECE = 16_384;
/** As many units as a value needs to be found in the next piece, if it has too few bytes in this one. */
const OVERLAP = 4 * MAX_STEP + 4;
const pieceBytes = Buffer.alloc(3 * (PIECE + OVERLAP) + 4);
const pieceWords = new Uint32Array(pieceBytes.buffer, pieceBytes.byteOffset, pieceBytes.length >>> 2);

/** Rules out that a long text contains any of many values, by reading four bytes here and there: the longer all values are, the fewer. */
export class SecretFilter {
  /** Words from one that is read to the next. */
  #step = MAX_STEP;
  /** A bit for each four bytes, by their hash. */
  readonly #bits = new Uint32Array(SLOTS / 32);
  /** Values by four of their bytes, and the position of those in them. */
  readonly #values = new Map<number, { readonly value: Buffer; readonly offset: number }[]>();

  /** A value of at least seven bytes. */
  add(form: string): void {
    const value = Buffer.from(form, "utf8");
    const step = Math.min(MAX_STEP, (value.length - 3) >>> 2);
    this.#step = Math.min(this.#step, step);
    for (let offset = 0; offset < 4 * step; offset += 1) {
      // Read as the list of words reads it, whatever the order of bytes is on this machine.
      const word = new Uint32Array(new Uint8Array(value.subarray(offset, offset + 4)).buffer)[0] ?? 0;
      const slot = slotOf(word);
      this.#bits[slot >>> 5] = (this.#bits[slot >>> 5] ?? 0) | (1 << (slot & 31));
      const others = this.#values.get(word) ?? [];
      this.#values.set(word, [...others, { value, offset }]);
    }
  }

  /** False if certainly none of the values is in the text. */
  mayHold(text: string): boolean {
    for (let from = 0; from < text.length; from += PIECE) {
      const to = from + PIECE + OVERLAP;
      // Half of a character would be written as something else, and the value that it is part of not be known again.
      const isCut = to < text.length && (text.charCodeAt(to - 1) & 0xfc00) === 0xd800;
      const length = pieceBytes.write(text.slice(from, isCut ? to - 1 : to), "utf8");
      const end = length >>> 2;
      for (
        let at = nextMarked(pieceWords, this.#bits, 0, end, this.#step);
        at !== -1;
        at = nextMarked(pieceWords, this.#bits, at + this.#step, end, this.#step)
      ) {
        if (this.#isAt(at, length)) return true;
      }
    }
    return false;
  }

  /** Whether one of the values is there, as far as the piece shows it. */
  #isAt(at: number, length: number): boolean {
    const candidates = this.#values.get(pieceWords[at] ?? 0) ?? [];
    return candidates.some(({ value, offset }) => {
      const start = Math.max(0, 4 * at - offset);
      const skipped = start - (4 * at - offset);
      const end = Math.min(length, 4 * at - offset + value.length);
      return pieceBytes.compare(value, skipped, skipped + end - start, start, end) === 0;
    });
  }
}

function slotOf(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> 14;
}

/** All it needs as parameters: the engine makes the tightest loop of that. */
function nextMarked(words: Uint32Array, bits: Uint32Array, from: number, to: number, step: number): number {
  for (let at = from; at < to; at += step) {
    const slot = slotOf(words[at] ?? 0);
    if (((bits[slot >>> 5] ?? 0) & (1 << (slot & 31))) !== 0) return at;
  }
  return -1;
}
