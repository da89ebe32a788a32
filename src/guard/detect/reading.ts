/** One text, read once: the spelling, words, cues and shape that all detectors share. */
import { isFenced, isQuoted, shapeOf, type TextShape } from "./context.ts";
import { hiddenSpans, type Span } from "./hidden-markup.ts";
import { lineStarts, Meter, placesOf } from "./matches.ts";
import { normaliseInSteps, type NormalText, PlainText } from "./normalise.ts";
import { type Passage, PASSAGE_COST, passageBetween, passagesAround, topicOf, wholePassage } from "./passage.ts";
import { CuePlaces } from "./sift/cue-places.ts";
import { siftFolded, siftPlain } from "./sift/sift.ts";
import { type Sifted, UNSIFTED } from "./sift/sifted.ts";
import { finish, type Steps } from "./steps.ts";

export interface Reading {
  readonly original: string;
  readonly normal: NormalText;
  readonly sifted: Sifted;
  /** All phrases that can become findings are in one of these. */
  readonly passages: readonly Passage[];
  /** A passage that holds all cues that start between two places of the normalised text; undefined if there are none. */
  passageAround(start: number, end: number): Passage | undefined;
  /** What passages cost that were read on demand. */
  readonly meter: Meter;
  readonly shape: TextShape;
  /** Parts of the normalised text that a page does not show: comments and invisible elements. */
  readonly hidden: readonly Span[];
  /** Indices of "<" in the normalised text. */
  readonly tags: readonly number[];
  /** Indices of the starts of its lines. */
  readonly lines: readonly number[];
  /** How much the text is about attacks on models: 0 not at all, from 2 on it names the subject. */
  readonly topic: number;
  /** A word may be spelled letter by letter. */
  readonly spelled: boolean;
}

export type Read = (text: string) => Steps<Reading>;

/** Characters that are read before the tables for sifting are made: so many cost as much as those do. */
const UNSIFTED_ROOM = 256 * 1024;
let unsiftedRoom = UNSIFTED_ROOM;

/** Sifts the text first, and looks only at what is left of it. */
export function* read(original: string): Steps<Reading> {
  if (unsiftedRoom > 0) {
    unsiftedRoom -= original.length;
    if (unsiftedRoom > 0) return yield* readAll(original);
  }
  const plain = yield* siftPlain(original);
  const normal = plain === undefined ? yield* normaliseInSteps(original) : new PlainText(original);
  const sifted = plain ?? (yield* siftFolded(normal.text));
  const { phrases } = sifted;
  const passages =
    phrases === undefined
      ? [yield* wholePassage(normal.text)]
      : phrases.length === 0
        ? []
        : yield* passagesAround(normal.text, phrases);
  const whole = phrases === undefined ? passages[0] : undefined;
  return yield* readingOf({ original, normal, sifted, passages, whole });
}

/** Reads every word. Finds the same as `read`, and is what it is compared with. */
export function* readAll(original: string): Steps<Reading> {
  const normal = yield* normaliseInSteps(original);
  const whole = yield* wholePassage(normal.text);
  return yield* readingOf({ original, normal, sifted: UNSIFTED, passages: [whole], whole });
}

interface Parts {
  readonly original: string;
  readonly normal: NormalText;
  readonly sifted: Sifted;
  readonly passages: readonly Passage[];
  readonly whole: Passage | undefined;
}

function* readingOf(parts: Parts): Steps<Reading> {
  // Folding makes signs of others, but of ASCII only ASCII letters are folded.
  const tags = placesOf("<", parts.sifted.plain ? parts.original : parts.normal.text);
  const hidden = tags.length === 0 ? [] : yield* hiddenSpans(parts.normal.text, tags);
  return new TextReading(parts, tags, hidden);
}

/** Units of text that are read together where a passage is asked for, and how long a request is served with that. */
const BLOCK = 4_096;
const LONGEST_REQUEST = 2_048;

/** What only few texts are asked for is worked out when it is. */
class TextReading implements Reading {
  readonly original: string;
  readonly normal: NormalText;
  readonly sifted: Sifted;
  readonly passages: readonly Passage[];
  readonly tags: readonly number[];
  readonly hidden: readonly Span[];
  readonly meter = new Meter();
  #whole: Passage | undefined;
  /** What may still be read in blocks before reading all at once is cheaper. */
  #room: number;
  readonly #blocks = new Map<number, Passage>();
  #cuePlaces: CuePlaces | undefined;
  #shape: TextShape | undefined;
  #lines: readonly number[] | undefined;
  #topic: number | undefined;

  constructor(parts: Parts, tags: readonly number[], hidden: readonly Span[]) {
    this.original = parts.original;
    this.normal = parts.normal;
    this.sifted = parts.sifted;
    this.passages = parts.passages;
    this.tags = tags;
    this.hidden = hidden;
    this.#whole = parts.whole;
    this.#room = 3 * parts.original.length;
  }

  get shape(): TextShape {
    return (this.#shape ??= shapeOf(this.normal.text));
  }

  get lines(): readonly number[] {
    return (this.#lines ??= lineStarts(this.normal.text));
  }

  get topic(): number {
    return (this.#topic ??= this.sifted.topic ?? (this.#whole === undefined ? 0 : topicOf(this.#whole.tokens)));
  }

  get spelled(): boolean {
    return this.sifted.spelled && this.#whole?.tokens.spelled !== false;
  }

  passageAround(start: number, end: number): Passage | undefined {
    if (this.#whole !== undefined) return this.#whole;
    this.#cuePlaces ??= new CuePlaces(this.sifted.plain ? this.original : this.normal.text, this.meter);
    if (!this.#cuePlaces.some(start, end)) return undefined;
    if (end - start > LONGEST_REQUEST) return this.#between(start, end);
    const block = Math.floor(start / BLOCK);
    let passage = this.#blocks.get(block);
    if (passage === undefined) {
      passage = this.#between(block * BLOCK, (block + 1) * BLOCK + LONGEST_REQUEST);
      this.#blocks.set(block, passage);
    }
    return passage;
  }

  #between(start: number, end: number): Passage {
    const { text } = this.normal;
    // Words around a block can be so long that many blocks would read the same ones.
    if (this.#room < 0) return (this.#whole = finish(wholePassage(text)));
    const passage = passageBetween(text, start, Math.min(end, text.length));
    const { tokens } = passage;
    const read = tokens.endOf(tokens.count - 1) - tokens.startOf(0);
    this.#room -= read;
    this.meter.add(read * PASSAGE_COST);
    return passage;
  }
}

/** The span of the original for a span of the normalised text. */
export function originalSpan(reading: Reading, start: number, end: number): Span {
  const first = reading.normal.originalAt(start);
  const last = reading.normal.originalAt(Math.max(start, end - 1));
  const width = (reading.original.codePointAt(last) ?? 0) > 0xffff ? 2 : 1;
  return { start: first, end: Math.min(reading.original.length, Math.max(last + width, first + 1)) };
}

/** Shown as code or as a quotation, rather than said. */
export function isShown(reading: Reading, start: number, end: number): boolean {
  if (isFenced(reading.shape, start)) return true;
  return !reading.shape.json && isQuoted(reading.normal.text, start, end);
}
