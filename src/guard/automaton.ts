/**
 * One pass over a text that finds all words of all concepts: an Aho-Corasick automaton over classes of characters, so that
 * case, accents, look-alikes, invisible characters and the kind of white space make no difference and offsets stay exact.
 */
import { normalise } from "../base/normalise.ts";

/** Classes that every automaton has. */
const OTHER = 0;
const SPACE = 1;
const FIRST_FREE = 2;
/** Its class is the first free one. */
const BACKSLASH = "\\";
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
const asciiBytes = new Uint8Array(units.buffer);

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
  /** Per state: whether one of its words, or of its suffixes, may go on. */
  readonly #isOpen: Uint8Array;
  /** Where the first state leads by each class. */
  readonly #first: Uint32Array;
  /** The classes of the letters of `\n`, `\r` and `\t`. */
  get #escapes(): number[] {
    return ["n", "r", "t"].flatMap((letter) => this.#classOf.get(letter) ?? []);
  }
  /**
   * Where a state leads by each class. In the table states have numbers of their own, those in which a word ends last, so that one
   * comparison tells; two bytes are enough for all of them.
   */
  readonly #table: Uint16Array | undefined;
  #firstEnd = 0;
  /** By ASCII character: its class. */
  #ascii: Uint8Array | undefined;
  #states = new Uint16Array(0);

  constructor(words: readonly Word[]) {
    let most = 1;
    this.#classOf.set(BACKSLASH, FIRST_FREE);
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
    const parents = new Uint32Array(most);
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
          parents[to] = state;
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
    this.#isOpen = new Uint8Array(count);
    this.#first = new Uint32Array(this.#width);
    for (let to = child[0] ?? 0; to !== 0; to = sibling[to] ?? 0) this.#first[steps[to] ?? 0] = to;
    this.#edges = edges;
    const tree: Tree = { child, sibling };
    const order = this.#connect(tree);
    if (this.#width > MAX_TABLE_WIDTH || count + 2 > 0xffff) return;
    this.#table = this.#tableOf(order, tree, parents);
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
        let isOpen = this.#isOpen[back] ?? 0;
        for (let word = this.#word[to] ?? 0; word !== 0; word = this.#nextWord[word] ?? 0)
          if (((this.#needs[word] ?? 0) & NEEDS_END) === 0) isOpen = 1;
        this.#isOpen[to] = isOpen;
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

  /**
   * All words of the table begin where no letter is before them. So a state goes on with those of its suffixes alone that begin
   * there, and the rest of a word that begins none of ours is passed over in one state.
   */
  #tableOf(order: Uint32Array, { child, sibling }: Tree, parents: Uint32Array): Uint16Array {
    const width = this.#width;
    const isLetterStep = new Uint8Array(width);
    for (const [unit, step] of this.#classOf) isLetterStep[step] = WORD_UNIT.test(unit) ? 1 : 0;
    const plain = order.filter((state) => !this.#endsWord(state));
    const ends = order.filter((state) => this.#endsWord(state));
    const [inWord, escaped] = [plain.length, plain.length + 1];
    this.#firstEnd = plain.length + 2;
    this.#states = Uint16Array.from([...plain, 0, 0, ...ends]);
    const numbers = new Uint16Array(order.length);
    for (const [at, state] of plain.entries()) numbers[state] = at;
    for (const [at, state] of ends.entries()) numbers[state] = this.#firstEnd + at;
    const table = new Uint16Array((order.length + 2) * width);
    const depths = new Uint16Array(order.length);
    for (let step = 0; step < width; step += 1) {
      const to = this.#first[step] ?? 0;
      const isLetterOf = isLetterStep[step] === 1;
      table[step] = to === 0 ? (isLetterOf ? inWord : 0) : (numbers[to] ?? 0);
      table[inWord * width + step] = isLetterOf ? inWord : (table[step] ?? 0);
      // The `n` of `\n` in the source of a JSON text is not a letter of the word behind it.
      table[escaped * width + step] = this.#escapes.includes(step) ? 0 : (table[step] ?? 0);
    }
    for (const row of [0, inWord, escaped]) table[row * width + FIRST_FREE] = escaped;
    for (const state of order) {
      if (state === 0) continue;
      const depth = (depths[state] = (depths[parents[state] ?? 0] ?? 0) + 1);
      const row = (numbers[state] ?? 0) * width;
      let back = this.#suffix[state] ?? 0;
      while (back !== 0 && !this.#beginsWord(state, depth - (depths[back] ?? 0), parents, isLetterStep))
        back = this.#suffix[back] ?? 0;
      const from = back !== 0 ? (numbers[back] ?? 0) : isLetterStep[this.#step[state] ?? 0] === 1 ? inWord : 0;
      table.copyWithin(row, from * width, (from + 1) * width);
      for (let to = child[state] ?? 0; to !== 0; to = sibling[to] ?? 0)
        table[row + (this.#step[to] ?? 0)] = numbers[to] ?? 0;
      if (this.#step[state] === SPACE) table[row + SPACE] = numbers[state] ?? 0;
    }
    return table;
  }

  /** Whether the suffix of a state from this step on begins where no letter is before it, or with no letter. */
  #beginsWord(state: number, from: number, parents: Uint32Array, isLetterStep: Uint8Array): boolean {
    let depth = 0;
    for (let at = state; at !== 0; at = parents[at] ?? 0) depth += 1;
    let at = state;
    for (; depth > from + 1; depth -= 1) at = parents[at] ?? 0;
    return isLetterStep[this.#step[at] ?? 0] === 0 || isLetterStep[this.#step[parents[at] ?? 0] ?? 0] === 0;
  }

  scan(text: string, visit: VisitWord, begin = 0, stop = text.length): void {
    const table = this.#table;
    const classes = this.#classes;
    const width = this.#width;
    const firstEnd = this.#firstEnd;
    let state = 0;
    for (let from = begin; from < stop; from += PIECE) {
      const count = unitBytes.write(text.slice(from, Math.min(stop, from + PIECE)), "utf16le") >>> 1;
      for (let at = 0; at < count; at += 1) {
        const unit = units[at] ?? 0;
        let step = classes[unit] ?? 0;
        if (step >= SKIP) {
          if (step === UNKNOWN) step = this.#learn(unit);
          if (step === SKIP) continue;
        }
        if (table === undefined) {
          state = step === OTHER ? 0 : this.#follow(state, step);
          if (this.#endsWord(state) && this.#report(text, state, from + at + 1, visit)) return;
          continue;
        }
        state = table[state * width + step] ?? 0;
        if (state >= firstEnd && this.#report(text, this.#states[state] ?? 0, from + at + 1, visit)) return;
      }
    }
  }

  /** The same for a text of ASCII characters, none of which is skipped. */
  scanAscii(text: string, visit: VisitWord): void {
    const table = this.#table;
    if (table === undefined) return this.scan(text, visit);
    const classes = (this.#ascii ??= Uint8Array.from({ length: 128 }, (_, unit) => this.#learn(unit)));
    const width = this.#width;
    const firstEnd = this.#firstEnd;
    const bytes: Uint8Array = asciiBytes;
    for (let from = 0, state = 0; from < text.length; from += PIECE) {
      const count = unitBytes.write(text.slice(from, from + PIECE), "latin1");
      for (let at = 0; at < count; at += 1) {
        state = table[state * width + (classes[bytes[at] ?? 0] ?? 0)] ?? 0;
        if (state >= firstEnd && this.#report(text, this.#states[state] ?? 0, from + at + 1, visit)) return;
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
    // In the middle of a word, as most are.
    if (!isEnd && this.#isOpen[state] === 0) return false;
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

/** Every word that is not made of Latin letters has one of these. */
const OTHER_SCRIPT = /[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefc\uff66-\uffdc]/;
/** More units than a word can have before and behind such a letter, with what is skipped in it. */
const WORD_REACH = 100;

function isOtherScript(unit: number): boolean {
  if (unit < 0x370) return false;
  if (unit < 0xd800) return unit < 0x2000 || unit >= 0x2e80;
  return (unit >= 0xf900 && unit < 0xfe00) || (unit >= 0xfe70 && unit <= 0xfefc) || (unit >= 0xff66 && unit <= 0xffdc);
}

/** The parts of a text around letters of other scripts. */
function* otherParts(text: string, first: number): Generator<readonly [begin: number, stop: number]> {
  let begin = Math.max(0, first - WORD_REACH);
  let last = first;
  for (let at = first + 1; at < text.length; at += 1) {
    if (!isOtherScript(text.charCodeAt(at))) continue;
    if (at - last > 2 * WORD_REACH) {
      yield [begin, last + WORD_REACH];
      begin = at - WORD_REACH;
    }
    last = at;
  }
  yield [begin, Math.min(text.length, last + WORD_REACH)];
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
        const isLatin = ASCII.test(text);
        if (!isLatin && !OTHER_SCRIPT.test(alternative)) throw new RangeError(`No script is known for ${alternative}.`);
        (isLatin ? latin : others).push({ text, concept });
      }
    }
    this.#latin = new Automaton(latin);
    this.#otherWords = others;
  }

  /** Words in the order of their ends. */
  find(text: string, isPlain: boolean, visit: VisitWord): void {
    if (isPlain) return this.#latin.scanAscii(text, visit);
    const first = text.search(OTHER_SCRIPT);
    if (first === -1) return this.#latin.scan(text, visit);
    const latin: number[] = [];
    this.#latin.scan(text, (...word) => latin.push(...word) > MAX_KEPT);
    let at = 0;
    const catchUp = (end: number): boolean => {
      for (; at < latin.length && (latin[at + 2] ?? 0) <= end; at += 3)
        if (visit(latin[at] ?? 0, latin[at + 1] ?? 0, latin[at + 2] ?? 0)) return true;
      return false;
    };
    let isStopped = false;
    const table = this.#othersTable();
    const take: VisitWord = (concept, start, end) => (isStopped = catchUp(end) || visit(concept, start, end));
    for (const [begin, stop] of otherParts(text, first)) {
      table.scan(text, take, begin, stop);
      if (isStopped) return;
    }
    catchUp(Infinity);
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
