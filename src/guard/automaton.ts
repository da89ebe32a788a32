/**
 * One pass over a text that finds all words of all concepts: an Aho-Corasick automaton over classes of characters, so that
 * case, accents, look-alikes, invisible characters and the kind of white space make no difference and offsets stay exact.
 */
import { normalise } from "./normalise.ts";

/** Classes that every automaton has. */
const OTHER = 0;
const SPACE = 1;
const FIRST_FREE = 2;
/** Not steps: a unit that is passed over, and one that was not met yet. */
const SKIP = 0xfffe;
const UNKNOWN = 0xffff;

/** Written for letters in the words of forgers. */
const DIGIT_LETTERS: Readonly<Record<string, string>> = { "0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t" };
/** Between words they are as good as a space. */
const SPACE_LIKE = " \t\n\r_-*`'\"~";
/** Scripts that join words, or endings to them. */
const UNBOUNDED = /[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]/;
const ASCII = /^[\u0020-\u007e]*$/;

/** The unit as words are compared: one unit, "" for one that is removed, undefined for one that folds into several. */
function foldUnit(unit: number): string | undefined {
  if (unit >= 0xd800 && unit <= 0xdfff) return unit < 0xdc00 ? " " : "";
  const character = String.fromCharCode(unit);
  if (SPACE_LIKE.includes(character)) return " ";
  const folded = normalise(character).text;
  if (folded.length > 1) return undefined;
  return SPACE_LIKE.includes(folded) && folded !== "" ? " " : (DIGIT_LETTERS[folded] ?? folded);
}

/** Shared by all automata: what each unit folds into, found out as units are met. */
const folded = new Map<number, string | undefined>();

const PIECE = 16_384;
/** Numbers of words that are kept until the words of other scripts are known; more than any text of words has. */
const MAX_KEPT = 3_000_000;
const units = new Uint16Array(PIECE);
const unitBytes = Buffer.from(units.buffer);

/** True to stop: the rest of the text is of no interest. */
export type VisitWord = (concept: number, start: number, end: number) => boolean;

/** Conditions on the text around a word, and whether it was written as a stem. */
const NEEDS_START = 1;
const NEEDS_END = 2;
const IS_STEM = 4;
/** Above this many classes, most of a table of all steps would be empty. */
const MAX_TABLE_WIDTH = 128;

/** Edges of a tree of states: a hash table with open addressing. */
class Edges {
  readonly #keys: Uint32Array;
  readonly #targets: Uint32Array;
  readonly #shift: number;
  readonly #width: number;

  constructor(most: number, width: number) {
    const bits = Math.ceil(Math.log2(most)) + 1;
    this.#shift = 32 - bits;
    this.#keys = new Uint32Array(1 << bits);
    this.#targets = new Uint32Array(1 << bits);
    this.#width = width;
  }

  /** 0 if there is none: no edge leads to the first state. */
  get(state: number, step: number): number {
    return this.#targets[this.#placeOf(state, step)] ?? 0;
  }

  set(state: number, step: number, to: number): void {
    const at = this.#placeOf(state, step);
    this.#keys[at] = state * this.#width + step + 1;
    this.#targets[at] = to;
  }

  /** Where the edge is, or would be. */
  #placeOf(state: number, step: number): number {
    const keys = this.#keys;
    const key = state * this.#width + step + 1;
    let at = Math.imul(key, 0x9e3779b1) >>> this.#shift;
    while (keys[at] !== 0 && keys[at] !== key) at = (at + 1) & (keys.length - 1);
    return at;
  }
}

/** Per state: its first child, and the next child of its parent. */
interface Tree {
  readonly child: Uint32Array;
  readonly sibling: Uint32Array;
}

interface Word {
  readonly text: string;
  readonly concept: number;
}

/** All in lists of numbers: as objects, its states and words would take several times as much. */
class Automaton {
  readonly #classes = new Uint16Array(0x10000).fill(UNKNOWN);
  readonly #classOf = new Map<string, number>();
  readonly #width: number;
  /** Not kept beside a table. */
  #edges: Edges | undefined;
  /** Per state: the step that leads to it, and its longest proper suffix. */
  readonly #step: Uint16Array;
  readonly #suffix: Uint32Array;
  /** Per state: its first word, counted from 1, and the longest proper suffix that has words. */
  readonly #word: Uint16Array;
  readonly #shorter: Uint32Array;
  /** Per word: the next one of its state, its concept, its steps, and what it needs. */
  readonly #nextWord: Uint16Array;
  readonly #concept: Uint16Array;
  readonly #length: Uint16Array;
  readonly #needs: Uint8Array;
  /** Where the first state leads by each class. */
  readonly #first: Uint32Array;
  /** Where a state leads by each class: the first index of the next state's row, inverted where a word ends there. */
  readonly #table: Int32Array | undefined;

  constructor(words: readonly Word[]) {
    let most = 1;
    for (const { text } of words) {
      most += text.length;
      for (const unit of text)
        if (unit !== " " && !this.#classOf.has(unit)) this.#classOf.set(unit, FIRST_FREE + this.#classOf.size);
    }
    this.#width = FIRST_FREE + this.#classOf.size;
    const edges = new Edges(most, this.#width);
    const child = new Uint32Array(most);
    const sibling = new Uint32Array(most);
    const steps = new Uint16Array(most);
    const first = new Uint16Array(most);
    this.#nextWord = new Uint16Array(words.length + 1);
    this.#concept = new Uint16Array(words.length + 1);
    this.#length = new Uint16Array(words.length + 1);
    this.#needs = new Uint8Array(words.length + 1);
    let count = 1;
    let wordCount = 0;
    for (const { text, concept } of words) {
      const isStem = text.endsWith("*");
      const plain = isStem ? text.slice(0, -1) : text;
      let state = 0;
      let length = 0;
      for (const unit of plain) {
        const step = unit === " " ? SPACE : (this.#classOf.get(unit) ?? OTHER);
        let to = edges.get(state, step);
        if (to === 0) {
          to = count;
          count += 1;
          steps[to] = step;
          sibling[to] = child[state] ?? 0;
          child[state] = to;
          edges.set(state, step, to);
        }
        state = to;
        length += 1;
      }
      const isBounded = !UNBOUNDED.test(plain);
      const needs =
        (isStem ? IS_STEM : 0) |
        (isBounded && WORD_UNIT.test(plain[0] ?? "") ? NEEDS_START : 0) |
        (isBounded && !isStem && WORD_UNIT.test(plain.at(-1) ?? "") ? NEEDS_END : 0);
      let last = 0;
      let word = first[state] ?? 0;
      while (word !== 0 && (this.#concept[word] !== concept || this.#needs[word] !== needs)) {
        last = word;
        word = this.#nextWord[word] ?? 0;
      }
      if (word !== 0) continue;
      wordCount += 1;
      this.#concept[wordCount] = concept;
      this.#length[wordCount] = length;
      this.#needs[wordCount] = needs;
      if (last === 0) first[state] = wordCount;
      else this.#nextWord[last] = wordCount;
    }
    this.#step = steps.slice(0, count);
    this.#word = first.slice(0, count);
    this.#suffix = new Uint32Array(count);
    this.#shorter = new Uint32Array(count);
    this.#first = new Uint32Array(this.#width);
    for (let to = child[0] ?? 0; to !== 0; to = sibling[to] ?? 0) this.#first[steps[to] ?? 0] = to;
    this.#edges = edges;
    const tree: Tree = { child, sibling };
    const order = this.#connect(tree);
    if (this.#width > MAX_TABLE_WIDTH) return;
    this.#table = this.#tableOf(order, tree);
    this.#edges = undefined;
  }

  /** Breadth first: a state without an edge goes where its longest proper suffix goes. Returns the states in this order. */
  #connect({ child, sibling }: Tree): Uint32Array {
    const order = new Uint32Array(this.#step.length);
    let count = 1;
    for (let at = 0; at < count; at += 1) {
      const state = order[at] ?? 0;
      for (let to = child[state] ?? 0; to !== 0; to = sibling[to] ?? 0) {
        const back = state === 0 ? 0 : this.#edge(this.#suffix[state] ?? 0, this.#step[to] ?? 0);
        this.#suffix[to] = back;
        this.#shorter[to] = this.#word[back] === 0 ? (this.#shorter[back] ?? 0) : back;
        order[count] = to;
        count += 1;
      }
    }
    return order;
  }

  /** Where a state leads, by its own edges or by those of its suffixes. */
  #edge(from: number, step: number): number {
    for (let state = from; state !== 0; state = this.#suffix[state] ?? 0) {
      const to = this.#edges?.get(state, step) ?? 0;
      if (to !== 0) return to;
    }
    return this.#first[step] ?? 0;
  }

  /** The same, with any amount of white space as one space. */
  #follow(state: number, step: number): number {
    return step === SPACE && state !== 0 && this.#step[state] === SPACE ? state : this.#edge(state, step);
  }

  #endsWord(state: number): boolean {
    return this.#word[state] !== 0 || this.#shorter[state] !== 0;
  }

  #tableOf(order: Uint32Array, { child, sibling }: Tree): Int32Array {
    const width = this.#width;
    const table = new Int32Array(order.length * width);
    const rowOf = (state: number): number => (this.#endsWord(state) ? ~(state * width) : state * width);
    for (const state of order) {
      const back = (this.#suffix[state] ?? 0) * width;
      if (state !== 0) table.copyWithin(state * width, back, back + width);
      for (let to = child[state] ?? 0; to !== 0; to = sibling[to] ?? 0)
        table[state * width + (this.#step[to] ?? 0)] = rowOf(to);
    }
    for (let state = 1; state < order.length; state += 1)
      if (this.#step[state] === SPACE) table[state * width + SPACE] = rowOf(state);
    return table;
  }

  scan(text: string, visit: VisitWord): void {
    const table = this.#table;
    const classes = this.#classes;
    // Of the state with a table, and the state itself without one.
    let row = 0;
    for (let from = 0; from < text.length; from += PIECE) {
      const count = unitBytes.write(text.slice(from, from + PIECE), "utf16le") >>> 1;
      for (let at = 0; at < count; at += 1) {
        const unit = units[at] ?? 0;
        let step = classes[unit] ?? 0;
        if (step >= SKIP) {
          if (step === UNKNOWN) step = this.#learn(unit);
          if (step === SKIP) continue;
        }
        if (table === undefined) {
          row = step === OTHER ? 0 : this.#follow(row, step);
          if (this.#endsWord(row) && this.#report(text, row, from + at + 1, visit)) return;
          continue;
        }
        row = table[row + step] ?? 0;
        if (row < 0) {
          row = ~row;
          if (this.#report(text, row / this.#width, from + at + 1, visit)) return;
        }
      }
    }
  }

  #learn(unit: number): number {
    if (!folded.has(unit)) folded.set(unit, foldUnit(unit));
    const plain = folded.get(unit);
    const step =
      plain === undefined ? OTHER : plain === "" ? SKIP : plain === " " ? SPACE : (this.#classOf.get(plain) ?? OTHER);
    this.#classes[unit] = step;
    return step;
  }

  #report(text: string, state: number, end: number, visit: VisitWord): boolean {
    const isEnd = end >= text.length || !isLetter(text.charCodeAt(end));
    for (let of = state; of !== 0; of = this.#shorter[of] ?? 0)
      for (let word = this.#word[of] ?? 0; word !== 0; word = this.#nextWord[word] ?? 0) {
        const needs = this.#needs[word] ?? 0;
        if ((needs & NEEDS_END) !== 0 && !isEnd) continue;
        const start = this.#startOf(text, end, this.#length[word] ?? 0);
        if ((needs & NEEDS_START) !== 0 && start > 0 && isLetter(text.charCodeAt(start - 1)))
          if (!isEscape(text, start - 1)) continue;
        if (visit(this.#concept[word] ?? 0, start, end)) return true;
      }
    return false;
  }

  /** Walks back over as many steps as the word has; what is skipped and repeated spaces do not count. */
  #startOf(text: string, end: number, length: number): number {
    let left = length;
    let at = end;
    while (at > 0) {
      const step = this.#classes[text.charCodeAt(at - 1)] ?? OTHER;
      if (step === SKIP) {
        at -= 1;
        continue;
      }
      if (left === 0) break;
      at -= 1;
      left -= 1;
      if (step === SPACE) while (at > 0 && this.#classes[text.charCodeAt(at - 1)] === SPACE) at -= 1;
    }
    return at;
  }
}

/** A digit is none: "1." before a word is a number. */
export function isLetter(unit: number): boolean {
  if (unit < 0x80) return (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);
  return unit >= 0xaa && LETTER.test(String.fromCharCode(unit));
}

const LETTER = /\p{L}/u;
const WORD_UNIT = /[\p{L}\p{N}]/u;

/** The `n` of `\n` in the source of a JSON text is not a letter of the word behind it. */
function isEscape(text: string, at: number): boolean {
  return text[at - 1] === "\\" && /[nrt]/.test(text[at] ?? "");
}

/** Words of Latin letters and all others: one table for both would be a hundred times as wide. */
export class WordTable {
  readonly #latin: Automaton;
  /** Made when a text first has other letters: many hubs never meet one. */
  #others: Automaton | undefined;
  #otherWords: readonly Word[];

  /** @param words alternatives separated by `|`, by concept */
  constructor(words: Iterable<readonly [concept: number, alternatives: string]>) {
    const latin: Word[] = [];
    const others: Word[] = [];
    for (const [concept, alternatives] of words) {
      for (const alternative of alternatives.split("|")) {
        const text = foldWord(alternative);
        (ASCII.test(text) ? latin : others).push({ text, concept });
      }
    }
    this.#latin = new Automaton(latin);
    this.#otherWords = others;
  }

  /** Words in the order of their ends. */
  find(text: string, isPlain: boolean, visit: VisitWord): void {
    if (isPlain) {
      this.#latin.scan(text, visit);
      return;
    }
    const latin: number[] = [];
    this.#latin.scan(text, (...word) => latin.push(...word) > MAX_KEPT);
    let at = 0;
    const catchUp = (end: number): boolean => {
      for (; at < latin.length && (latin[at + 2] ?? 0) <= end; at += 3)
        if (visit(latin[at] ?? 0, latin[at + 1] ?? 0, latin[at + 2] ?? 0)) return true;
      return false;
    };
    let isStopped = false;
    this.#othersTable().scan(text, (concept, start, end) => (isStopped = catchUp(end) || visit(concept, start, end)));
    if (!isStopped) catchUp(Infinity);
  }

  #othersTable(): Automaton {
    this.#others ??= new Automaton(this.#otherWords);
    this.#otherWords = [];
    return this.#others;
  }
}

/** As most words are written: nothing to fold. */
const FOLDED = /^[a-z]+(?: [a-z]+)*\*?$/;

/** A word as the automaton sees it. */
function foldWord(word: string): string {
  if (FOLDED.test(word)) return word;
  const isStem = word.endsWith("*");
  let plain = "";
  for (const unit of normalise(word).text.replace(/\*$/, ""))
    plain += SPACE_LIKE.includes(unit) ? " " : (DIGIT_LETTERS[unit] ?? unit);
  return plain.replace(/ +/g, " ").trim() + (isStem ? "*" : "");
}
