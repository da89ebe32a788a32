/** The first look at a text: one fast pass that finds the few places at which a detector could find anything. */
import { BACKWARDS_PARTS, ROTATED_PARTS } from "../decode.ts";
import { wordsUpTo } from "../passage.ts";
import { CJK_SCRIPT, GLUED } from "../phrases/unspaced.ts";
import type { Steps } from "../steps.ts";
import { type Classes, type Marks, ODD, type PairClasses } from "./grams.ts";
import { scan, type Scanner, surroundings, units } from "./scan.ts";
import { MOST_TOPIC, type Sifted } from "./sifted.ts";
import { lineStartsBefore, type SignWord } from "./structure.ts";
import { siftTables, type SiftTables } from "./tables.ts";
import { wordEnd, wordStart } from "./words.ts";

const LONGEST_WORD = 40;
/** With more places than one in so many units the whole text is read. */
const UNITS_PER_PLACE = 400;

/** A text as it stands. Undefined if normalising changes more than its case: then the normalised text is to be sifted. */
export function* siftPlain(text: string): Steps<Sifted | undefined> {
  const sifting = new Sifting(text, true);
  return (yield* scan(text, sifting)) ? sifting : undefined;
}

/** A normalised text. */
export function* siftFolded(text: string): Steps<Sifted> {
  const sifting = new Sifting(text, false);
  yield* scan(text, sifting);
  return sifting;
}

class Sifting implements Sifted, Scanner {
  readonly plain: boolean;
  readonly marks: Marks;
  classes: Classes;
  readonly pairClasses: PairClasses;
  readonly labels: number[] = [];
  turns = false;
  calls = false;
  spelled = false;
  rotated = false;
  backwards = false;
  unspaced = false;
  topic = 0;
  readonly #text: string;
  readonly #tables: SiftTables = siftTables();
  readonly #topicWords = new Set<string>();
  readonly #lines: number[] = [];
  #phrases: number[] | undefined = [];

  constructor(text: string, plain: boolean) {
    this.#text = text;
    this.plain = plain;
    this.marks = this.#tables.marks;
    this.classes = plain ? this.#tables.plain : this.#tables.folded;
    this.pairClasses = this.#tables.pairs;
  }

  get lines(): readonly number[] {
    return [...new Set(this.#lines)].toSorted((a, b) => a - b);
  }

  get phrases(): readonly number[] | undefined {
    return this.#phrases?.toSorted((a, b) => a - b);
  }

  found(id: number, at: number, shift: number): void {
    const facts = this.#tables.facts[id];
    if (facts === undefined) return;
    const { word, part, anchors, topic, signs } = facts;
    const place = at + shift;
    if (part) {
      this.#notePart(word, place);
      return;
    }
    for (const sign of signs) this.#noteSign(sign, place, place + word.length);
    if (anchors.length === 0 && topic === undefined) return;
    const start = wordStart(units, at, at - LONGEST_WORD);
    const end = wordEnd(units, at, at + LONGEST_WORD);
    if (this.#phrases !== undefined && surroundings.hasWitness(anchors, start, end, this.#text, shift))
      this.#addPhrase(place);
    if (topic !== undefined && this.topic < MOST_TOPIC && surroundings.mayFollow(topic.after, start))
      this.#noteTopic(start + shift, end + shift);
  }

  /** Each kind of them is looked for until it is found. */
  foundOdd(unit: number): boolean {
    if (this.plain) return false;
    const { foreign, quiet } = this.#tables;
    if (foreign[unit] === ODD) {
      this.#phrases = undefined;
      this.unspaced ||= CJK_SCRIPT.test(this.#text);
      this.classes = quiet;
    } else {
      this.unspaced = true;
      if (this.classes !== quiet) this.classes = foreign;
    }
    return true;
  }

  #notePart(part: string, at: number): void {
    const text = this.#text;
    if (text.slice(at, at + part.length).toLowerCase() !== part) return;
    if (ROTATED_PARTS.includes(part)) this.rotated = true;
    else if (BACKWARDS_PARTS.includes(part)) this.backwards = true;
    else if (GLUED.test(text.slice(at, at + LONGEST_GLUED).toLowerCase())) this.#addPhrase(at);
  }

  #noteSign({ sign, check }: SignWord, start: number, end: number): void {
    switch (sign) {
      case "label":
        if (check(this.#text, start, end)) this.labels.push(start);
        break;
      case "line":
        if (check(this.#text, start, end)) this.#lines.push(...lineStartsBefore(this.#text, start));
        break;
      case "call":
        this.calls ||= check(this.#text, start, end);
        break;
      case "turn":
        this.turns ||= check(this.#text, start, end);
        break;
      case "spelled":
        this.spelled ||= check(this.#text, start, end);
        break;
    }
  }

  #addPhrase(at: number): void {
    const phrases = this.#phrases;
    if (phrases === undefined) return;
    phrases.push(at);
    if (phrases.length > 16 + this.#text.length / UNITS_PER_PLACE) this.#phrases = undefined;
  }

  #noteTopic(start: number, end: number): void {
    const text = this.#text;
    if (this.#topicWords.has(withoutLines(text.slice(start, end).toLowerCase()))) return;
    // Here the word itself counts, not what may be one: it is read as the tokeniser reads it.
    const tokens = wordsUpTo(text, start, end);
    const last = tokens.count - 1;
    const topic = this.#tables.topics.get(tokens.numberOf(last));
    if (topic === undefined) return;
    if (topic.after !== undefined) {
      if (tokens.sentenceOf(last - 1) !== tokens.sentenceOf(last) || !topic.after.has(tokens.numberOf(last - 1)))
        return;
    }
    this.#topicWords.add(tokens.word(last));
    this.topic += topic.weight;
  }
}

const LONGEST_GLUED = 120;

function withoutLines(word: string): string {
  return word.replace(/^_+(?=.)|(?<=.)_+$/g, "");
}
