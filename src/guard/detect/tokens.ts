/** The words of a normalised text as flat arrays: a result of ten megabytes has two million of them. */

/** Words that some pattern knows, numbered from 1. */
export type Vocabulary = ReadonlyMap<string, number>;

const LONGEST_WORD = 28;
/** Words written as one, or with invisible separators, are looked at as a whole up to this length. */
const LONGEST_GLUED = 90;
const SHORTEST_GLUED = 16;

export class Tokens {
  readonly text: string;
  count = 0;
  starts: Int32Array = new Int32Array(1024);
  ends: Int32Array = new Int32Array(1024);
  /** Number in the vocabulary; 0 for a word that no pattern knows. */
  words: Uint16Array = new Uint16Array(1024);
  sentences: Int32Array = new Int32Array(1024);
  /** Indices of long words of letters only. */
  readonly glued: number[] = [];

  constructor(text: string) {
    this.text = text;
  }

  add(start: number, end: number, word: number, sentence: number): void {
    if (this.count === this.starts.length) this.#grow();
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.words[this.count] = word;
    this.sentences[this.count] = sentence;
    this.count += 1;
  }

  word(index: number): string {
    return index < 0 || index >= this.count ? "" : this.text.slice(this.starts[index], this.ends[index]);
  }

  startOf(index: number): number {
    return this.starts[index] ?? 0;
  }

  endOf(index: number): number {
    return this.ends[index] ?? 0;
  }

  sentenceOf(index: number): number {
    return index < 0 || index >= this.count ? -1 : (this.sentences[index] ?? -1);
  }

  /** What stands between a word and the one before it, at most 24 characters of it. */
  gapBefore(index: number): string {
    const start = this.startOf(index);
    const from = index === 0 ? 0 : this.endOf(index - 1);
    return this.text.slice(Math.max(from, start - 24), start);
  }

  /** Index of the first word that ends after `offset`. */
  at(offset: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.endOf(middle) <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #grow(): void {
    const size = this.starts.length * 2;
    this.starts = copied(this.starts, new Int32Array(size));
    this.ends = copied(this.ends, new Int32Array(size));
    this.words = copied(this.words, new Uint16Array(size));
    this.sentences = copied(this.sentences, new Int32Array(size));
  }
}

function copied<Kind extends Int32Array | Uint16Array>(from: Kind, to: Kind): Kind {
  to.set(from);
  return to;
}

export function tokenise(text: string, vocabulary: Vocabulary): Tokens {
  const tokens = new Tokens(text);
  const kinds = KINDS;
  let sentence = 0;
  let at = 0;
  while (at < text.length) {
    const gapEnd = skipGap(text, at, kinds);
    if (endsSentence(text, at, gapEnd)) sentence += 1;
    if (gapEnd >= text.length) break;
    let start = gapEnd;
    at = wordEnd(text, start, kinds);
    let end = at;
    while (start < end - 1 && text[start] === "_") start += 1;
    while (end > start + 1 && text[end - 1] === "_") end -= 1;
    const dotted = isDotted(text, start)
      ? vocabulary.get(text.slice(start - 1, Math.min(end, start + LONGEST_WORD)))
      : undefined;
    tokens.add(start, end, dotted ?? lookUp(text, start, end, vocabulary), sentence);
    const length = end - start;
    if (length >= SHORTEST_GLUED && length <= LONGEST_GLUED) tokens.glued.push(tokens.count - 1);
  }
  return tokens;
}

/** What is known of each UTF-16 unit; filled as units are met. */
const KINDS = new Uint8Array(0x10000);

const OTHER = 1;
const LETTER = 2;
const DIGIT = 3;

function kindOf(unit: number, kinds: Uint8Array): number {
  const known = kinds[unit] ?? 0;
  if (known !== 0) return known;
  // Half of a surrogate pair counts as a letter: the scripts up there are letters more often than not.
  let kind = OTHER;
  const character = String.fromCharCode(unit);
  if (/[\p{L}_]/u.test(character) || (unit >= 0xd800 && unit <= 0xdfff)) kind = LETTER;
  else if (/\p{N}/u.test(character)) kind = DIGIT;
  kinds[unit] = kind;
  return kind;
}

function skipGap(text: string, from: number, kinds: Uint8Array): number {
  let at = from;
  while (at < text.length && kindOf(text.charCodeAt(at), kinds) === OTHER) at += 1;
  return at;
}

function wordEnd(text: string, from: number, kinds: Uint8Array): number {
  let at = from;
  while (at < text.length) {
    const kind = kindOf(text.charCodeAt(at), kinds);
    if (kind === OTHER) {
      // Inside a word: the apostrophe of "don't", and the signs that stand for letters in "p@$$word".
      const sign = text[at];
      if (sign !== "'" && sign !== "@" && sign !== "$") return at;
      if (at === from || at + 1 >= text.length) return at;
      const next = text[at + 1];
      if (kindOf(text.charCodeAt(at + 1), kinds) !== LETTER && next !== "$") return at;
    }
    at += 1;
  }
  return at;
}

/** A stop followed by space or a quote, an empty line, or the end of a JSON string. */
function endsSentence(text: string, from: number, to: number): boolean {
  let lines = 0;
  for (let at = from; at < to; at += 1) {
    const sign = text[at];
    if (sign === "\n" && (lines += 1) === 2) return true;
    // Cells of tables, items of lists and numbered lines stand for themselves.
    if (sign === "|" && isTableRow(text, at)) return true;
    if (sign === "\n" && /[\d*#|-]/.test(text[at + 1] ?? "")) return true;
    if (sign === ";" || sign === "。" || sign === "！" || sign === "？") return true;
    if (sign === "." || sign === "!" || sign === "?") {
      const next = text[at + 1];
      if (next === undefined || /[\s"')\]*_<\\`]/.test(next)) return true;
    }
    if (sign === '"') {
      const next = text[at + 1];
      if (next === "," || next === "}" || next === "]" || next === ":") return true;
    }
    // A gap can be megabytes of dashes; what matters is near its start or its end.
    if (at - from === 64 && to - at > 128) at = to - 64;
  }
  return false;
}

/** The line starts with a bar. Only its near part is read. */
function isTableRow(text: string, at: number): boolean {
  const line = text.slice(Math.max(0, at - 300), at + 1);
  return line.slice(line.lastIndexOf("\n") + 1).startsWith("|");
}

/** The name of a dot file: `.env`, `~/.ssh`, but not the end of `process.env`. */
function isDotted(text: string, start: number): boolean {
  return text[start - 1] === "." && !/[\p{L}\p{N}_)\]]/u.test(text[start - 2] ?? " ");
}

const LEET: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

function lookUp(text: string, start: number, end: number, vocabulary: Vocabulary): number {
  if (end - start > LONGEST_WORD) return 0;
  const word = text.slice(start, end);
  const known = vocabulary.get(word);
  if (known !== undefined) return known;
  if (!/[a-z]/.test(word) || !/[013457@$]/.test(word)) return 0;
  const plain = word.replace(/[013457@$]/g, (sign) => LEET[sign] ?? sign);
  return (
    vocabulary.get(plain) ??
    vocabulary.get(word.replaceAll("1", "l").replace(/[03457@$]/g, (sign) => LEET[sign] ?? sign)) ??
    0
  );
}
