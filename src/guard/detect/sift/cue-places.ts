/** Where cues of any kind may be: asked only for the surroundings of what is suspicious by its form. */
import { CUE_BOOK } from "../phrases/cue-book.ts";
import { SUPPORT } from "../phrases/cue.ts";
import type { Meter } from "../matches.ts";
import { finish } from "../steps.ts";
import { DIGIT, INNER, kindOf, LETTER } from "../units.ts";
import { type Anchor, anchorsOf } from "./anchors.ts";
import { type Classes, MarkMaker, type Marks, type PairClasses } from "./grams.ts";
import { scan, type Scanner, surroundings, units } from "./scan.ts";
import { siftTables } from "./tables.ts";
import { wordEnd, wordStart } from "./words.ts";

interface Tables {
  readonly marks: Marks;
  readonly anchors: readonly (readonly Anchor[])[];
  /** A word of another script may be part of a phrase. */
  readonly classes: Classes;
}

let made: Tables | undefined;

function makeTables(): Tables {
  const maker = new MarkMaker();
  const anchors: (readonly Anchor[])[] = [];
  for (const [word, own] of anchorsOf(CUE_BOOK, ({ kind }) => SUPPORT[kind] > 0)) anchors[maker.addWord(word)] = own;
  return { marks: maker.make(), anchors, classes: siftTables().foreign };
}

const BLOCK = 4_096;
const LONGEST_WORD = 40;
/** Units behind a range within which its last cue must end; more are taken for one. */
const BEHIND = 560;

/** Reads the text in blocks, each when it is first asked for. `text` is plain or normalised. */
export class CuePlaces implements Scanner {
  readonly marks: Marks;
  readonly classes: Classes;
  readonly pairClasses: PairClasses;
  readonly #text: string;
  readonly #anchors: Tables["anchors"];
  readonly #meter: Meter;
  readonly #blocks = new Map<number, readonly number[] | undefined>();
  #places: number[] = [];

  constructor(text: string, meter: Meter) {
    const { marks, anchors, classes } = (made ??= makeTables());
    this.#text = text;
    this.#meter = meter;
    this.marks = marks;
    this.classes = classes;
    this.pairClasses = siftTables().pairs;
    this.#anchors = anchors;
  }

  /** False if certainly no cue starts between two places. */
  some(start: number, end: number): boolean {
    const limit = wordsBehind(this.#text, end, CUE_BOOK.longest + 1);
    if (limit === undefined) return true;
    const from = Math.max(0, start - LONGEST_WORD);
    // A word at the end of a block is found with the next one.
    for (let block = Math.floor(from / BLOCK); block * BLOCK < limit + LONGEST_WORD; block += 1) {
      const places = this.#placesOf(block);
      if (places === undefined || places.some((place) => place >= from && place < limit)) return true;
    }
    return false;
  }

  found(id: number, at: number, shift: number): void {
    const start = wordStart(units, at, at - LONGEST_WORD);
    const end = wordEnd(units, at, at + LONGEST_WORD);
    if (surroundings.hasWitness(this.#anchors[id] ?? [], start, end, this.#text, shift)) this.#places.push(at + shift);
  }

  foundOdd(): boolean {
    return false;
  }

  /** Undefined: anywhere. */
  #placesOf(block: number): readonly number[] | undefined {
    if (this.#blocks.has(block)) return this.#blocks.get(block);
    this.#places = [];
    const to = Math.min(this.#text.length, (block + 1) * BLOCK);
    // Letters of another script stop it: phrases are made of them, too.
    const places = finish(scan(this.#text, this, block * BLOCK, to)) ? this.#places : undefined;
    this.#blocks.set(block, places);
    this.#meter.add(BLOCK);
    return places;
  }
}

/** The end of at least so many words behind a place; undefined if that is far. */
function wordsBehind(text: string, from: number, count: number): number | undefined {
  let left = count;
  let isWord = false;
  const limit = Math.min(text.length, from + BEHIND);
  for (let at = from; at < limit; at += 1) {
    const kind = kindOf(text.charCodeAt(at));
    if ((kind & (LETTER | DIGIT)) !== 0) {
      isWord = true;
      // Signs that can stand inside of a word never end one here: fewer words, and more text, than there are.
    } else if (isWord && (kind & INNER) === 0) {
      isWord = false;
      left -= 1;
      if (left === 0) return at;
    }
  }
  return limit === text.length ? limit : undefined;
}
