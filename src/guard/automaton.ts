/**
 * One pass over a text that finds all words of all concepts: an Aho-Corasick automaton over classes of characters, so that
 * case, accents, look-alikes, invisible characters and the kind of white space make no difference and offsets stay exact.
 */
import { unitsOf } from "../base/character-runs.ts";
import { normalise } from "../base/normalise.ts";
import { packLists, unpackLists } from "../base/packed-lists.ts";
import { isLetter } from "../base/words-around.ts";

/** Classes that every automaton has. */
const OTHER = 0;
const SPACE = 1;
/** No step of a word: that of a unit which is passed over, or was not met yet. */
const WORDS = 2;
const FIRST_FREE = 3;
const BACKSLASH = 0x5c;
/** Behind a backslash: n, r, t. */
const ESCAPES: readonly number[] = [0x6e, 0x72, 0x74];

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

/** True to stop: the rest of the text is of no interest. */
export type VisitWord = (concept: number, start: number, end: number) => boolean;

/** Conditions on the text around a word. */
const NEEDS_START = 1;
const NEEDS_END = 2;

/** The same words over and over, close together; from so many on they are visited as one, which begins at `start`. */
type Run = { of: Automaton; state: number; count: number; start: number; end: number };
const MAX_RUN = 8;
/** Units between two looks at whether a long word can be passed over. */
const BLOCK = 64;
/** From end to end: further apart, one may be quoted and the next an order. */
const RUN_REACH = 32;

interface Word {
  readonly text: string;
  readonly concept: number;
}

/** A cell of an automaton is the state that a step leads to, whether words end there, and the step, by which it is told from others. */
const STEP = 0xfff;
const ENDS = 0x1000;
const STATE_SHIFT = 13;
/** A word of a state: its concept, its steps, what it needs, whether it is the last one, and whether any of them may go on. */
const LENGTH_SHIFT = 12;
const NEEDS_SHIFT = 24;
const LAST = 1 << 26;
const OPEN = 1 << 27;
const MAX_CONCEPT = 0xfff;
const MAX_LENGTH = 0xfff;
const ROOT = 0;

/**
 * What a scan needs, as lists of numbers. A state is the place in `cells` from which its steps are counted. The cells of many states
 * lie between each other, and the step in a cell tells whose it is: no two states have the same place. A state without a cell for a step
 * goes where its longest proper suffix goes, which is in `fails`. The cell of the step WORDS says where its words are in `words`; it has ENDS,
 * so that one comparison tells it from a step without words, as most are.
 */
interface Lists {
  /** Classes of units in their order, letters last. */
  readonly units: Uint32Array;
  readonly cells: Uint32Array;
  readonly fails: Uint32Array;
  readonly words: Uint32Array;
}

const isWordUnit = (unit: number): boolean => WORD_UNIT.test(String.fromCharCode(unit));

/** Of words that begin with the same units: those between two places of the sorted list. */
type Node = { readonly from: number; readonly to: number; readonly depth: number; parent: number; step: number };

/**
 * @param isBounded All words begin where no letter is before them. So a state goes on with those of its suffixes alone that begin
 * there, and the rest of a word that begins none of ours is passed over in one state.
 */
function listsOf(given: readonly Word[], isBounded: boolean): Lists {
  const sorted = given
    .map(({ text, concept }) => ({ plain: text.replace(/\*$/, ""), number: numberOf(text, concept) }))
    .toSorted((a, b) => (a.plain < b.plain ? -1 : a.plain > b.plain ? 1 : 0));
  const all = new Set(sorted.flatMap(({ plain }) => Array.from(plain, (unit) => unit.charCodeAt(0))));
  all.delete(0x20);
  const units = Uint32Array.from([...all.add(BACKSLASH)].toSorted((a, b) => +isWordUnit(a) - +isWordUnit(b)));
  const classOf = new Map(Array.from(units, (unit, at) => [unit, FIRST_FREE + at]));
  const stepOf = (unit: number): number => (unit === 0x20 ? SPACE : (classOf.get(unit) ?? OTHER));
  const isLetterStep = (step: number): boolean => step >= FIRST_FREE && isWordUnit(units[step - FIRST_FREE] ?? 0);
  const width = FIRST_FREE + units.length;
  // In the rest of a word that begins none of ours, and behind a backslash: states where words have boundaries.
  const [inWord, escaped] = [width, 2 * width];
  const rows = isBounded ? 3 * width : width;
  const most = rows + 4 * sorted.reduce((sum, { plain }) => sum + plain.length + 1, 0);
  const [cells, fails, isTaken] = [new Uint32Array(most), new Uint32Array(most), new Uint8Array(most)];
  const words: number[] = [0];
  const next = (from: number, step: number): number => {
    let state = from;
    while (((cells[state + step] ?? 0) & STEP) !== step) state = fails[state] ?? ROOT;
    return (cells[state + step] ?? 0) >>> STATE_SHIFT;
  };
  /** From the first state, and as good as from it: behind any other word, and behind a backslash. */
  const setFirst = (step: number, cell: number): void => {
    cells[step] = cell;
    if (!isBounded) return;
    cells[inWord + step] = isLetterStep(step) ? (inWord << STATE_SHIFT) | step : cell;
    // The `n` of `\n` in the source of a JSON text is not a letter of the word behind it.
    cells[escaped + step] = ESCAPES.includes(units[step - FIRST_FREE] ?? 0) ? step : cell;
  };
  for (let step = 0; step < width; step += 1)
    setFirst(step, isBounded && isLetterStep(step) ? (inWord << STATE_SHIFT) | step : step);
  setFirst(WORDS, ENDS | WORDS);
  if (isBounded) setFirst(stepOf(BACKSLASH), (escaped << STATE_SHIFT) | stepOf(BACKSLASH));
  let low = rows;
  let end = rows;
  /** The first state that has room for these steps. */
  const place = (steps: readonly number[]): number => {
    const [first = 0] = steps;
    for (let cell = low; ; cell += 1) {
      if (cells[cell] !== 0) continue;
      const state = cell - first;
      if (state < rows || isTaken[state] === 1 || !steps.every((step) => cells[state + step] === 0)) continue;
      // Behind many that do not fit, few will.
      if (cell - low > 400) low = cell;
      while (cells[low] !== 0) low += 1;
      isTaken[state] = 1;
      for (const step of steps) cells[state + step] = step;
      end = Math.max(end, state + width);
      return state;
    }
  };
  const queue: Node[] = [{ from: 0, to: sorted.length, depth: 0, parent: ROOT, step: OTHER }];
  for (const { from, to, depth, parent, step } of queue) {
    const outside = isBounded && isLetterStep(step) ? inWord : ROOT;
    const fail = depth < 2 ? outside : next(fails[parent] ?? ROOT, step);
    const own: number[] = [];
    let at = from;
    for (; at < to && sorted[at]?.plain.length === depth; at += 1) {
      const { number = 0 } = sorted[at] ?? {};
      if (!own.includes(number)) own.push(number);
    }
    const children: Node[] = [];
    for (let start = at; at < to; start = at) {
      const unit = sorted[start]?.plain.charCodeAt(depth) ?? 0;
      while (at < to && sorted[at]?.plain.charCodeAt(depth) === unit) at += 1;
      children.push({ from: start, to: at, depth: depth + 1, parent: ROOT, step: stepOf(unit) });
    }
    let state = ROOT;
    if (depth > 0) {
      let found = wordsAt(cells, fail);
      if (own.length > 0) {
        for (let word = found; word !== 0;) {
          const number = words[word] ?? LAST;
          own.push(number & ~(LAST | OPEN));
          word = (number & LAST) === 0 ? word + 1 : 0;
        }
        found = words.length;
        const isOpen = own.some((word) => ((word >>> NEEDS_SHIFT) & NEEDS_END) === 0);
        for (const [index, word] of own.entries())
          words.push(word | (isOpen ? OPEN : 0) | (index === own.length - 1 ? LAST : 0));
      }
      const steps = children.map((child) => child.step);
      // Any amount of white space is one space.
      if (step === SPACE) steps.push(SPACE);
      if (found !== 0) steps.push(WORDS);
      state = place(steps);
      fails[state] = fail;
      if (step === SPACE) cells[state + SPACE] = (state << STATE_SHIFT) | SPACE;
      if (found !== 0) cells[state + WORDS] = (found << STATE_SHIFT) | ENDS | WORDS;
      const cell = (state << STATE_SHIFT) | (found === 0 ? 0 : ENDS) | step;
      if (depth === 1) setFirst(step, cell);
      else cells[parent + step] = cell;
    }
    for (const child of children) queue.push({ ...child, parent: state });
  }
  if (end >>> (32 - STATE_SHIFT) !== 0 || width > STEP)
    throw new RangeError("The words have more states than a cell can number.");
  return { units, cells: cells.slice(0, end), fails: fails.slice(0, end), words: Uint32Array.from(words) };
}

/** 0 for none. */
function wordsAt(cells: Uint32Array, state: number): number {
  const cell = cells[state + WORDS] ?? 0;
  return (cell & STEP) === WORDS ? cell >>> STATE_SHIFT : 0;
}

function numberOf(text: string, concept: number): number {
  const isStem = text.endsWith("*");
  const plain = isStem ? text.slice(0, -1) : text;
  const isBounded = !UNBOUNDED.test(plain);
  const needs =
    (isBounded && WORD_UNIT.test(plain[0] ?? "") ? NEEDS_START : 0) |
    (isBounded && !isStem && WORD_UNIT.test(plain.at(-1) ?? "") ? NEEDS_END : 0);
  return concept | (plain.length << LENGTH_SHIFT) | (needs << NEEDS_SHIFT);
}

class Automaton {
  readonly #classes = new Uint16Array(0x10000).fill(WORDS);
  readonly #isSkipped = new Uint8Array(0x10000);
  readonly lists: Lists;
  readonly #classOf: ReadonlyMap<number, number>;
  readonly #firstLetter: number;

  constructor(lists: Lists) {
    this.lists = lists;
    this.#classOf = new Map([
      [0x20, SPACE],
      ...Array.from(lists.units, (unit, at) => [unit, FIRST_FREE + at] as const),
    ]);
    this.#firstLetter = FIRST_FREE + lists.units.findIndex(isWordUnit);
  }

  /** Words in the order of their ends. Others are those of other scripts. */
  scan(text: string, others: Automaton | undefined, visit: VisitWord): void {
    const { cells, fails } = this.lists;
    const classes = this.#classes;
    const second = others ?? this;
    const { cells: otherCells, fails: otherFails } = second.lists;
    const otherClasses = second.#classes;
    const { length } = text;
    const units = unitsOf(text);
    const run: Run = { of: this, state: 0, count: 0, start: 0, end: 0 };
    const inWord = FIRST_FREE + this.lists.units.length;
    const firstLetter = this.#firstLetter;
    let [state, other] = [ROOT, ROOT];
    for (let at = 0; at < length;) {
      for (const stop = Math.min(at + BLOCK, length); at < stop; at += 1) {
        const unit = units[at] ?? 0;
        let step = classes[unit] ?? 0;
        let cell = cells[state + step] ?? 0;
        if (others === undefined && (cell & (STEP | ENDS)) === step) {
          state = cell >>> STATE_SHIFT;
          continue;
        }
        if (step === WORDS) {
          if (this.#isSkipped[unit] === 0) step = this.#learn(unit);
          if (step === WORDS) continue;
          cell = cells[state + step] ?? 0;
        }
        while ((cell & STEP) !== step) {
          state = fails[state] ?? ROOT;
          cell = cells[state + step] ?? 0;
        }
        state = cell >>> STATE_SHIFT;
        if ((cell & ENDS) !== 0 && this.#report(units, state, at + 1, run, visit)) return;
        if (others === undefined) continue;
        let own = otherClasses[unit] ?? 0;
        if (own === WORDS) own = others.#learn(unit);
        let to = otherCells[other + own] ?? 0;
        while ((to & STEP) !== own) {
          other = otherFails[other] ?? ROOT;
          to = otherCells[other + own] ?? 0;
        }
        other = to >>> STATE_SHIFT;
        if ((to & ENDS) !== 0 && others.#report(units, other, at + 1, run, visit)) return;
      }
      // A look now and then: most words are shorter than what it costs to be wrong about them.
      if (others === undefined && state === inWord) while ((classes[units[at] ?? 0] ?? 0) >= firstLetter) at += 1;
    }
    run.of.#endRun(run, units, visit);
  }

  #learn(unit: number): number {
    const plain = foldUnit(unit);
    const step = plain === "" ? WORDS : (this.#classOf.get(plain?.charCodeAt(0) ?? -1) ?? OTHER);
    this.#classes[unit] = step;
    this.#isSkipped[unit] = step === WORDS ? 1 : 0;
    return step;
  }

  #report(units: Uint16Array, state: number, end: number, run: Run, visit: VisitWord): boolean {
    // The 0 behind a text is not a letter.
    const isEnd = !isLetter(units[end] ?? 0);
    // In the middle of a word, as most are.
    const words = wordsAt(this.lists.cells, state);
    if (!isEnd && ((this.lists.words[words] ?? 0) & OPEN) === 0) return false;
    if (run.of === this && run.state === state && end - run.end < RUN_REACH) {
      run.count += 1;
      if (run.count === MAX_RUN) run.start = run.end;
      run.end = end;
      if (run.count >= MAX_RUN) return false;
    } else {
      if (run.of.#endRun(run, units, visit)) return true;
      run.of = this;
      run.state = state;
      run.count = 1;
      run.end = end;
    }
    return this.#visit(units, isEnd, state, end, 0, visit);
  }

  /** The words of a run that were passed over are one long word, and the last of them one of its own. */
  #endRun({ count, state, start, end }: Run, units: Uint16Array, visit: VisitWord): boolean {
    if (count < MAX_RUN) return false;
    const isEnd = !isLetter(units[end] ?? 0);
    const isFull = this.#visit(units, isEnd, state, end, end - start, visit);
    return isFull || this.#visit(units, isEnd, state, end, 0, visit);
  }

  #visit(units: Uint16Array, isEnd: boolean, state: number, end: number, longer: number, visit: VisitWord): boolean {
    const { cells, words } = this.lists;
    let [start, length] = [-1, 0];
    for (let at = wordsAt(cells, state); at !== 0; at += 1) {
      const word = words[at] ?? LAST;
      const needs = word >>> NEEDS_SHIFT;
      if ((needs & NEEDS_END) === 0 || isEnd) {
        // Most words of a state are equally long.
        if (length !== ((word >>> LENGTH_SHIFT) & MAX_LENGTH)) {
          length = (word >>> LENGTH_SHIFT) & MAX_LENGTH;
          start = this.#startOf(units, end, length);
        }
        const isApart = (needs & NEEDS_START) === 0 || start === 0 || !isLetter(units[start - 1] ?? 0);
        if ((isApart || isPart(units, start - 1)) && visit(word & MAX_CONCEPT, Math.min(start, end - longer), end))
          return true;
      }
      if ((word & LAST) !== 0) return false;
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
      if (step === WORDS) {
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

const WORD_UNIT = /[\p{L}\p{N}]/u;

/** The `n` of `\n` in the source of a JSON text is not a letter of the word behind it, nor is an Arabic prefix: and, so, with, for, as. */
function isPart(units: Uint16Array, at: number): boolean {
  const letter = units[at] ?? 0;
  if (letter < 0x80) return units[at - 1] === BACKSLASH && ESCAPES.includes(letter);
  const first = ARABIC_PREFIXES.includes(units[at - 1] ?? 0) ? at - 1 : at;
  return ARABIC_PREFIXES.includes(letter) && !isLetter(units[first - 1] ?? 0);
}
const ARABIC_PREFIXES: readonly number[] = [0x648, 0x641, 0x628, 0x644, 0x643];

/** Every word that is not made of Latin letters has one of these. */
export const OTHER_SCRIPT = /[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefc\uff66-\uffdc]/;

/** Words of Latin letters and all others: most texts need the first only. */
export class WordTable {
  readonly #latin: Automaton;
  #others: Automaton | undefined;
  readonly #otherLists: () => Lists;

  /** @param others Asked for when a text first has other letters: many hubs never meet one. */
  constructor(latin: Lists, others: () => Lists) {
    this.#latin = new Automaton(latin);
    this.#otherLists = others;
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
    return new WordTable(listsOf(latin, true), () => listsOf(others, false));
  }

  /** @param packed By `pack`. It is kept. */
  static unpack(packed: Uint32Array): WordTable {
    const [latin, others] = unpackLists(packed).map(unpacked);
    if (latin === undefined || others === undefined) throw new RangeError("The table of words is not whole.");
    return new WordTable(latin, () => others);
  }

  pack(): Uint32Array {
    const lists = [this.#latin.lists, this.#otherLists()];
    return packLists(lists.map(({ units, cells, fails, words }) => packLists([units, cells, fails, words])));
  }

  /** Words in the order of their ends, until the visitor has enough. */
  find(text: string, hasOthers: boolean, visit: VisitWord): void {
    this.#latin.scan(text, hasOthers ? (this.#others ??= new Automaton(this.#otherLists())) : undefined, visit);
  }
}

function unpacked(list: Uint32Array): Lists {
  const none = new Uint32Array(0);
  const [units = none, cells = none, fails = none, words = none] = unpackLists(list);
  return { units, cells, fails, words };
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
