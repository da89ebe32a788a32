/**
 * One pass over a text that finds all words of all concepts: an Aho-Corasick automaton over classes of characters, so that
 * case, accents, look-alikes, invisible characters and the kind of white space make no difference and offsets stay exact.
 */
import { normalise } from "../base/normalise.ts";
import { packLists, unpackLists } from "../base/packed-lists.ts";

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

/** For the units of a text: a list of numbers is walked several times as fast as a text. A long text gets its own. */
const sharedUnits = new Uint16Array(64 * 1024);

/** True to stop: the rest of the text is of no interest. */
export type VisitWord = (concept: number, start: number, end: number) => boolean;

/** Conditions on the text around a word. */
const NEEDS_START = 1;
const NEEDS_END = 2;

/** The same words over and over, close together; from so many on they are visited as one, which begins at `start`. */
type Run = { of: Automaton; state: number; count: number; start: number; end: number };
const MAX_RUN = 8;
/** From end to end: further apart, one may be quoted and the next an order. */
const RUN_REACH = 32;

interface Word {
  readonly text: string;
  readonly concept: number;
}

/** All in lists of numbers: as objects, its states and words would take several times as much. */
class Automaton {
  readonly #classes = new Uint16Array(0x10000).fill(UNKNOWN);
  readonly #classOf = new Map<string, number>();
  readonly #width: number;
  /** Where states lead by their own edges: pairs of an edge and its state, by a hash of the edge. Not kept beside a table. */
  #edges: Uint32Array;
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
  /**
   * Where a state leads by each class. In the table states have numbers of their own, those in which a word ends last, so that one
   * comparison tells; two bytes are enough for all of them.
   */
  readonly #table: Uint16Array | undefined;
  #firstEnd = 0;
  #states: Uint16Array = new Uint16Array(0);

  /** @param given Words, or what `lists` returned for them. */
  constructor(given: readonly Word[] | { readonly lists: readonly Uint16Array[] }, hasTable: boolean) {
    if ("lists" in given) {
      const none = new Uint16Array(0);
      const list = (at: number): Uint16Array => given.lists[at] ?? none;
      [this.#width, this.#firstEnd] = [list(0)[0] ?? 0, list(0)[1] ?? 0];
      for (const unit of list(1)) this.#classOf.set(String.fromCharCode(unit), FIRST_FREE + this.#classOf.size);
      [this.#table, this.#states, this.#word, this.#nextWord] = [list(2), list(3), list(4), list(5)];
      [this.#concept, this.#length, this.#shorter] = [list(6), list(7), Uint32Array.from(list(8))];
      [this.#needs, this.#isOpen] = [Uint8Array.from(list(9)), Uint8Array.from(list(10))];
      // What only an automaton without a table needs.
      this.#step = none;
      this.#edges = this.#suffix = this.#first = new Uint32Array(0);
      return;
    }
    const words = given;
    let most = 1;
    this.#classOf.set(BACKSLASH, FIRST_FREE);
    for (const { text } of words) {
      most += text.length;
      for (const unit of text)
        if (unit !== " " && !this.#classOf.has(unit)) this.#classOf.set(unit, FIRST_FREE + this.#classOf.size);
    }
    this.#width = FIRST_FREE + this.#classOf.size;
    const edges = (this.#edges = new Uint32Array(2 ** (2 + Math.ceil(Math.log2(most)))));
    const steps = new Uint16Array(most);
    this.#first = new Uint32Array(this.#width);
    const parents = new Uint32Array(most);
    const depths = new Uint16Array(most);
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
        const slot = this.#slotOf(state, step);
        let to = edges[slot + 1] ?? 0;
        length += 1;
        if (to === 0) {
          to = count;
          count += 1;
          [steps[to], parents[to], depths[to]] = [step, state, length];
          [edges[slot], edges[slot + 1]] = [state * this.#width + step + 1, to];
          if (state === 0) this.#first[step] = to;
        }
        state = to;
      }
      const isBounded = !UNBOUNDED.test(plain);
      const needs =
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
    // Breadth first.
    const keys = Float64Array.from({ length: count }, (_, state) => (depths[state] ?? 0) * count + state);
    const order = keys.toSorted().map((key) => key % count);
    this.#connect(order, parents);
    if (!hasTable) return;
    this.#table = this.#tableOf(order, parents, depths);
    this.#edges = new Uint32Array(0);
  }

  /** All that a scan with a table needs. */
  lists(): ArrayLike<number>[] {
    const units = Array.from(this.#classOf.keys(), (unit) => unit.charCodeAt(0));
    const words = [this.#word, this.#nextWord, this.#concept, this.#length, this.#shorter, this.#needs, this.#isOpen];
    return [[this.#width, this.#firstEnd], units, this.#table ?? [], this.#states, ...words];
  }

  /** A state without an edge goes where its longest proper suffix goes. */
  #connect(order: Float64Array, parents: Uint32Array): void {
    for (const to of order.subarray(1)) {
      const parent = parents[to] ?? 0;
      const back = parent === 0 ? 0 : this.#edge(this.#suffix[parent] ?? 0, this.#step[to] ?? 0);
      this.#suffix[to] = back;
      this.#shorter[to] = this.#word[back] === 0 ? (this.#shorter[back] ?? 0) : back;
      let isOpen = this.#isOpen[back] ?? 0;
      for (let word = this.#word[to] ?? 0; word !== 0; word = this.#nextWord[word] ?? 0)
        if (((this.#needs[word] ?? 0) & NEEDS_END) === 0) isOpen = 1;
      this.#isOpen[to] = isOpen;
    }
  }

  /** Where a state leads, by its own edges or by those of its suffixes. */
  #edge(from: number, step: number): number {
    for (let state = from; state !== 0; state = this.#suffix[state] ?? 0) {
      const to = this.#edges[this.#slotOf(state, step) + 1] ?? 0;
      if (to !== 0) return to;
    }
    return this.#first[step] ?? 0;
  }

  /** The place of an edge, or the free one for it. */
  #slotOf(state: number, step: number): number {
    const edges = this.#edges;
    const edge = state * this.#width + step + 1;
    const mask = edges.length - 2;
    let slot = (Math.imul(edge, 0x9e3779b1) >>> 7) & mask;
    while (edges[slot] !== 0 && edges[slot] !== edge) slot = (slot + 2) & mask;
    return slot;
  }

  #endsWord(state: number): boolean {
    return this.#word[state] !== 0 || this.#shorter[state] !== 0;
  }

  /**
   * All words of the table begin where no letter is before them. So a state goes on with those of its suffixes alone that begin
   * there, and the rest of a word that begins none of ours is passed over in one state.
   */
  #tableOf(order: Float64Array, parents: Uint32Array, depths: Uint16Array): Uint16Array {
    if (order.length + 2 > 0xffff) throw new RangeError("The words have more states than two bytes can number.");
    const escapes = ["n", "r", "t"].map((letter) => this.#classOf.get(letter));
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
    for (let step = 0; step < width; step += 1) {
      const to = this.#first[step] ?? 0;
      const isLetterOf = isLetterStep[step] === 1;
      table[step] = to === 0 ? (isLetterOf ? inWord : 0) : (numbers[to] ?? 0);
      table[inWord * width + step] = isLetterOf ? inWord : (table[step] ?? 0);
      // The `n` of `\n` in the source of a JSON text is not a letter of the word behind it.
      table[escaped * width + step] = escapes.includes(step) ? 0 : (table[step] ?? 0);
    }
    for (const row of [0, inWord, escaped]) table[row * width + FIRST_FREE] = escaped;
    let linked = 1;
    for (const state of order.subarray(1)) {
      const depth = depths[state] ?? 0;
      // What its suffixes lead to is complete then.
      for (let to = order[linked] ?? 0; linked < order.length && depths[to] === depth; to = order[linked] ?? 0) {
        table[(numbers[parents[to] ?? 0] ?? 0) * width + (this.#step[to] ?? 0)] = numbers[to] ?? 0;
        linked += 1;
      }
      const row = (numbers[state] ?? 0) * width;
      let back = this.#suffix[state] ?? 0;
      while (back !== 0 && !this.#beginsWord(state, depths[back] ?? 0, parents, isLetterStep))
        back = this.#suffix[back] ?? 0;
      const from = back !== 0 ? (numbers[back] ?? 0) : isLetterStep[this.#step[state] ?? 0] === 1 ? inWord : 0;
      table.copyWithin(row, from * width, (from + 1) * width);
      if (this.#step[state] === SPACE) table[row + SPACE] = numbers[state] ?? 0;
    }
    return table;
  }

  /** Whether the suffix of a state that is so long begins where no letter is before it, or with no letter. */
  #beginsWord(state: number, length: number, parents: Uint32Array, isLetterStep: Uint8Array): boolean {
    let at = state;
    for (let left = length; left > 1; left -= 1) at = parents[at] ?? 0;
    return isLetterStep[this.#step[at] ?? 0] === 0 || isLetterStep[this.#step[parents[at] ?? 0] ?? 0] === 0;
  }

  /** Words in the order of their ends. Others are those of an automaton without a table. */
  scan(text: string, others: Automaton | undefined, visit: VisitWord): void {
    const table = this.#table ?? new Uint16Array(0);
    const classes = this.#classes;
    const width = this.#width;
    const firstEnd = this.#firstEnd;
    const { length } = text;
    const units = length <= sharedUnits.length ? sharedUnits : new Uint16Array(length);
    Buffer.from(units.buffer).write(text, "utf16le");
    const run: Run = { of: this, state: 0, count: 0, start: 0, end: 0 };
    let state = 0;
    let other = 0;
    for (let at = 0; at < length; at += 1) {
      const unit = units[at] ?? 0;
      let step = classes[unit] ?? 0;
      if (step >= SKIP) {
        if (step === UNKNOWN) step = this.#learn(unit);
        if (step === SKIP) continue;
      }
      state = table[state * width + step] ?? 0;
      if (state >= firstEnd && this.#report(units, length, this.#states[state] ?? 0, at + 1, run, visit)) return;
      if (others === undefined) continue;
      const own = others.#classes[unit] ?? 0;
      // Most units begin nothing.
      other = other === 0 && own < SKIP ? (others.#first[own] ?? 0) : others.#next(other, unit);
      if (other !== 0 && others.#endsWord(other) && others.#report(units, length, other, at + 1, run, visit)) return;
    }
    run.of.#endRun(run, units, length, visit);
  }

  /** Any amount of white space is one space. */
  #next(state: number, unit: number): number {
    let step = this.#classes[unit] ?? 0;
    if (step === UNKNOWN) step = this.#learn(unit);
    if (step === SPACE && state !== 0 && this.#step[state] === SPACE) return state;
    return step === OTHER ? 0 : this.#edge(state, step);
  }

  #learn(unit: number): number {
    if (!folded.has(unit)) folded.set(unit, foldUnit(unit));
    const plain = folded.get(unit);
    const step =
      plain === undefined ? OTHER : plain === "" ? SKIP : plain === " " ? SPACE : (this.#classOf.get(plain) ?? OTHER);
    this.#classes[unit] = step;
    return step;
  }

  #report(units: Uint16Array, length: number, state: number, end: number, run: Run, visit: VisitWord): boolean {
    const isEnd = end >= length || !isLetter(units[end] ?? 0);
    // In the middle of a word, as most are.
    if (!isEnd && this.#isOpen[state] === 0) return false;
    if (run.of === this && run.state === state && end - run.end < RUN_REACH) {
      run.count += 1;
      if (run.count === MAX_RUN) run.start = run.end;
      run.end = end;
      if (run.count >= MAX_RUN) return false;
    } else {
      if (run.of.#endRun(run, units, length, visit)) return true;
      run.of = this;
      run.state = state;
      run.count = 1;
      run.end = end;
    }
    return this.#visit(units, isEnd, state, end, 0, visit);
  }

  /** The words of a run that were passed over are one long word, and the last of them one of its own. */
  #endRun({ count, state, start, end }: Run, units: Uint16Array, length: number, visit: VisitWord): boolean {
    if (count < MAX_RUN) return false;
    const isEnd = end >= length || !isLetter(units[end] ?? 0);
    const isFull = this.#visit(units, isEnd, state, end, end - start, visit);
    return isFull || this.#visit(units, isEnd, state, end, 0, visit);
  }

  #visit(units: Uint16Array, isEnd: boolean, state: number, end: number, longer: number, visit: VisitWord): boolean {
    for (let of = state; of !== 0; of = this.#shorter[of] ?? 0)
      for (let word = this.#word[of] ?? 0; word !== 0; word = this.#nextWord[word] ?? 0) {
        const needs = this.#needs[word] ?? 0;
        if ((needs & NEEDS_END) !== 0 && !isEnd) continue;
        const start = this.#startOf(units, end, this.#length[word] ?? 0);
        if ((needs & NEEDS_START) !== 0 && start > 0 && isLetter(units[start - 1] ?? 0))
          if (!isEscape(units, start - 1)) continue;
        if (visit(this.#concept[word] ?? 0, Math.min(start, end - longer), end)) return true;
      }
    return false;
  }

  /** Walks back over as many steps as the word has; what is skipped and repeated spaces do not count. */
  #startOf(units: Uint16Array, end: number, length: number): number {
    const classes = this.#classes;
    let left = length;
    let at = end;
    while (at > 0) {
      const step = classes[units[at - 1] ?? 0] ?? OTHER;
      // Those that were read and are still unknown here were passed over too.
      if (step >= SKIP) {
        at -= 1;
        continue;
      }
      if (left === 0) break;
      at -= 1;
      left -= 1;
      if (step === SPACE) while (at > 0 && classes[units[at - 1] ?? 0] === SPACE) at -= 1;
    }
    return at;
  }
}

/** By unit, as far as they were met: 1 for a letter, 2 for none. */
const letters = new Uint8Array(0x10000);

/** A digit is none: "1." before a word is a number. */
export function isLetter(unit: number): boolean {
  const known = letters[unit] ?? 0;
  return (known === 0 ? (letters[unit] = /\p{L}/u.test(String.fromCharCode(unit)) ? 1 : 2) : known) === 1;
}

const WORD_UNIT = /[\p{L}\p{N}]/u;

/** The `n` of `\n` in the source of a JSON text is not a letter of the word behind it. */
function isEscape(units: Uint16Array, at: number): boolean {
  const letter = units[at];
  return units[at - 1] === 0x5c && (letter === 0x6e || letter === 0x72 || letter === 0x74);
}

/** Every word that is not made of Latin letters has one of these. */
const OTHER_SCRIPT = /[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefc\uff66-\uffdc]/;

/** Words of Latin letters and all others: one table for both would be a hundred times as wide. */
export class WordTable {
  readonly #latin: Automaton;
  /** Made when a text first has other letters: many hubs never meet one. */
  #others: Automaton | undefined;
  #otherWords: readonly Word[] | Uint16Array;

  private constructor(latin: Automaton, otherWords: readonly Word[] | Uint16Array) {
    this.#latin = latin;
    this.#otherWords = otherWords;
  }

  /** @param words alternatives separated by `|`, by concept */
  static of(words: Iterable<readonly [concept: number, alternatives: string]>): WordTable {
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
    return new WordTable(new Automaton(latin, true), others);
  }

  /** @param packed By `pack`. It is kept. */
  static unpack(packed: Uint16Array): WordTable {
    const [others = new Uint16Array(0), ...lists] = unpackLists(packed);
    return new WordTable(new Automaton({ lists }, true), others);
  }

  pack(): Uint16Array {
    const others = JSON.stringify(wordsOf(this.#otherWords));
    return packLists([Array.from({ length: others.length }, (_, at) => others.charCodeAt(at)), ...this.#latin.lists()]);
  }

  /** Words in the order of their ends, until the visitor has enough. */
  find(text: string, isAscii: boolean, visit: VisitWord): void {
    this.#latin.scan(text, isAscii || !OTHER_SCRIPT.test(text) ? undefined : this.#othersTable(), visit);
  }

  #othersTable(): Automaton {
    this.#others ??= new Automaton(wordsOf(this.#otherWords), false);
    this.#otherWords = [];
    return this.#others;
  }
}

/** @param words A list, or its JSON in units of UTF-16. */
function wordsOf(words: readonly Word[] | Uint16Array): readonly Word[] {
  if (!(words instanceof Uint16Array)) return words;
  // As `pack` has written it.
  return JSON.parse(Buffer.from(words.buffer, words.byteOffset, words.byteLength).toString("utf16le")) as Word[];
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
