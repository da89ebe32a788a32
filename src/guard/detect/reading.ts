/** One text, read once: the spelling, words, cues and shape that all detectors share. */
import { isFenced, isQuoted, shapeOf, type TextShape } from "./context.ts";
import { hiddenSpans, type Span } from "./hidden-markup.ts";
import { isForbidden, isNegatedWithin, type Mood, moodOf } from "./mood.ts";
import { normalise, type NormalText } from "./normalise.ts";
import { phraseBook, type PhraseMatch } from "./phrases/book.ts";
import type { CueLabel } from "./phrases/cue.ts";
import { LANGUAGE_LEXICON, LANGUAGE_PHRASES } from "./phrases/languages.ts";
import { LEXICON } from "./phrases/lexicon.ts";
import { OVERRIDE_PHRASES } from "./phrases/override.ts";
import { REQUEST_PHRASES } from "./phrases/request.ts";
import { SETTING_PHRASES } from "./phrases/setting.ts";
import { tokenise, type Tokens } from "./tokens.ts";

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
  /** How much the text is about attacks on models: 0 not at all, from 2 on it names the subject. */
  readonly topic: number;
}

export function read(original: string): Reading {
  const normal = normalise(original);
  const tokens = tokenise(normal.text, BOOK.vocabulary);
  const cues: Cue[] = [];
  const topics = new Set<string>();
  let topic = 0;
  BOOK.match(tokens, (cue) => {
    if (cue.label.kind !== "topic") {
      const mood = cue.label.verb === true ? moodOf(tokens, cue.first) : "plain";
      const forbidden = cue.label.unlessNegated === true && isForbidden(tokens, cue.first);
      const excepted =
        (cue.label.kind === "credential" || cue.label.kind === "send") && isNegatedWithin(tokens, cue.first, cue.last);
      if (mood !== "negation" && !forbidden && !excepted) cues.push({ ...cue, mood });
      return;
    }
    const word = tokens.word(cue.last);
    if (topics.size > 64 || topics.has(word)) return;
    topics.add(word);
    topic += cue.label.weight;
  });
  return { original, normal, tokens, cues, shape: shapeOf(normal.text), hidden: hiddenSpans(normal.text), topic };
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
