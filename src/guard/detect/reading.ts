/** One text, read once: the spelling, words, cues and shape that all detectors share. */
import { isFenced, isQuoted, shapeOf, type TextShape } from "./context.ts";
import { hiddenSpans, type Span } from "./hidden-markup.ts";
import { lineStarts, placesOf } from "./matches.ts";
import { isForbidden, isNegatedWithin, type Mood, moodOf } from "./mood.ts";
import { normaliseInSteps, type NormalText } from "./normalise.ts";
import { phraseBook, type PhraseMatch } from "./phrases/book.ts";
import type { CueLabel } from "./phrases/cue.ts";
import { LANGUAGE_LEXICON, LANGUAGE_PHRASES } from "./phrases/languages.ts";
import { LEXICON } from "./phrases/lexicon.ts";
import { OVERRIDE_PHRASES } from "./phrases/override.ts";
import { REQUEST_PHRASES } from "./phrases/request.ts";
import { SETTING_PHRASES } from "./phrases/setting.ts";
import type { Steps } from "./steps.ts";
import { tokeniseInSteps } from "./tokenise.ts";
import type { Tokens } from "./tokens.ts";

const BOOK = phraseBook<CueLabel>({ ...LEXICON, ...LANGUAGE_LEXICON }, [
  ...OVERRIDE_PHRASES,
  ...REQUEST_PHRASES,
  ...SETTING_PHRASES,
  ...LANGUAGE_PHRASES,
]);

export interface Cue extends PhraseMatch<CueLabel> {
  /** How the verb is used, for a phrase that starts with one. */
  readonly mood: Mood;
}

export interface Reading {
  readonly original: string;
  readonly normal: NormalText;
  readonly tokens: Tokens;
  /** In the order of their first words. */
  readonly cues: readonly Cue[];
  readonly shape: TextShape;
  /** Parts of the normalised text that a page does not show: comments and invisible elements. */
  readonly hidden: readonly Span[];
  /** Indices of "<" in the normalised text. */
  readonly tags: readonly number[];
  /** Indices of the starts of its lines. */
  readonly lines: readonly number[];
  /** How much the text is about attacks on models: 0 not at all, from 2 on it names the subject. */
  readonly topic: number;
}

/** Words that are compared with the phrases in one step, and what one costs. */
const STRIDE = 8_192;
const WORD_COST = 60;
const CUE_COST = 1_000;

export function* read(original: string): Steps<Reading> {
  const normal = yield* normaliseInSteps(original);
  const tokens = yield* tokeniseInSteps(normal.text, BOOK.vocabulary);
  const cues: Cue[] = [];
  const topics = new Set<string>();
  let topic = 0;
  const note = (cue: PhraseMatch<CueLabel>): void => {
    if (cue.label.kind !== "topic") {
      const mood = cue.label.verb === true ? moodOf(tokens, cue.first) : "plain";
      const forbidden = cue.label.unlessNegated === true && isForbidden(tokens, cue.first);
      const excepted =
        (cue.label.kind === "credential" || cue.label.kind === "send") && isNegatedWithin(tokens, cue.first, cue.last);
      if (mood !== "negation" && !forbidden && !excepted)
        cues.push({ label: cue.label, first: cue.first, last: cue.last, mood });
      return;
    }
    if (topics.size > 64) return;
    const word = tokens.word(cue.last);
    if (topics.has(word)) return;
    topics.add(word);
    topic += cue.label.weight;
  };
  for (let from = 0; from < tokens.count; from += STRIDE) {
    const before = cues.length;
    const to = Math.min(tokens.count, from + STRIDE);
    BOOK.match(tokens, note, from, to);
    yield (to - from) * WORD_COST + (cues.length - before) * CUE_COST;
  }
  const tags = placesOf("<", normal.text);
  const hidden = tags.length === 0 ? [] : yield* hiddenSpans(normal.text, tags);
  return new WholeReading({ original, normal, tokens, cues, topic, tags, hidden });
}

/** What only few texts are asked for is worked out when it is. */
class WholeReading implements Reading {
  readonly original: string;
  readonly normal: NormalText;
  readonly tokens: Tokens;
  readonly cues: readonly Cue[];
  readonly hidden: readonly Span[];
  readonly tags: readonly number[];
  readonly topic: number;
  #shape: TextShape | undefined;
  #lines: readonly number[] | undefined;

  constructor(parts: Omit<Reading, "shape" | "lines">) {
    this.original = parts.original;
    this.normal = parts.normal;
    this.tokens = parts.tokens;
    this.cues = parts.cues;
    this.hidden = parts.hidden;
    this.tags = parts.tags;
    this.topic = parts.topic;
  }

  get shape(): TextShape {
    return (this.#shape ??= shapeOf(this.normal.text));
  }

  get lines(): readonly number[] {
    return (this.#lines ??= lineStarts(this.normal.text));
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

/** Index of the first cue whose first word is `token` or later. */
export function firstCueFrom(cues: readonly Cue[], token: number): number {
  let low = 0;
  let high = cues.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((cues[middle]?.first ?? 0) < token) low = middle + 1;
    else high = middle;
  }
  return low;
}
