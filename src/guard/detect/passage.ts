/** A part of a text with its words and cues. Few texts are worth reading whole. */
import { isForbidden, isNegatedWithin, type Mood, moodOf, MOOD_WORDS } from "./mood.ts";
import type { PhraseMatch } from "./phrases/book.ts";
import type { CueLabel } from "./phrases/cue.ts";
import { CUE_BOOK } from "./phrases/cue-book.ts";
import { gluedMatches } from "./phrases/unspaced.ts";
import { isNotable } from "./scores.ts";
import { lastAtOrBefore } from "./sorted.ts";
import type { Steps } from "./steps.ts";
import { TABLE_REACH, Tokeniser, tokeniseInSteps } from "./tokenise.ts";
import { Tokens } from "./tokens.ts";
import { DIGIT, INNER, kindOf, LETTER, OTHER } from "./units.ts";

/** Words to each side within which cues support each other. */
export const REACH = 45;

export interface Cue extends PhraseMatch<CueLabel> {
  /** How the verb is used, for a phrase that starts with one. */
  readonly mood: Mood;
}

export interface Passage {
  readonly tokens: Tokens;
  /** In the order of their first words. Those near an edge lack what stands beyond it. */
  readonly cues: readonly Cue[];
  /**
   * It was read for the sake of something between these places of the text: then all that a cue there depends on lies
   * within it, and in no other passage of the kind.
   */
  owns(start: number, end: number): boolean;
}

/** Words before a cue that its own mood depends on, and behind its first word. */
const CUE_BEFORE = MOOD_WORDS;
const CUE_AFTER = CUE_BOOK.longest;
/** The same for a word that may stand anywhere in a cue, together with the cues that support that one. */
const PLACE_BEFORE = CUE_BOOK.longest + REACH + CUE_BEFORE;
const PLACE_AFTER = CUE_BOOK.longest + REACH + CUE_AFTER;

/** Words that are compared with the phrases in one step, and what one costs. */
const STRIDE = 8_192;
const WORD_COST = 60;
const CUE_COST = 1_000;
/** What a character of a passage costs: its word, and comparing that. */
export const PASSAGE_COST = 24;

export function* wholePassage(text: string): Steps<Passage> {
  const tokens = yield* tokeniseInSteps(text, CUE_BOOK.vocabulary);
  const cues: Cue[] = [];
  for (let from = 0; from < tokens.count; from += STRIDE) {
    const before = cues.length;
    const to = Math.min(tokens.count, from + STRIDE);
    addCues(tokens, cues, from, to);
    yield (to - from) * WORD_COST + (cues.length - before) * CUE_COST;
  }
  return { tokens, cues, owns: () => true };
}

/** The cues that start between two places, whatever their mood depends on included. */
export function passageBetween(text: string, start: number, end: number): Passage {
  const from = wordsBefore(text, start, CUE_BEFORE + 1);
  const tokeniser = new Tokeniser(text, CUE_BOOK.vocabulary, from, end - from + 256);
  const { tokens } = tokeniser;
  // The first word that ends behind the end counts, too.
  while (tokeniser.at <= end && tokeniser.at < text.length) tokeniser.addNext();
  for (let left = CUE_AFTER + 2; left > 0 && tokeniser.at < text.length; left -= 1) tokeniser.addNext();
  return partOf(tokens, undefined);
}

/** A place that is so near behind a passage makes it longer: cheaper than to start again before that place. */
const NEAR = 512;

/** Passages around those of the places, rising, that stand in a notable cue: around it, so that it can be weighed. */
export function* passagesAround(text: string, around: readonly number[]): Steps<Passage[]> {
  const passages: Passage[] = [];
  const places: number[] = [];
  // Words can be long, and many of them near each place: then looking closer would cost more than reading.
  let room = 2 * text.length;
  for (const place of around) {
    const near = room > 0 ? nearWords(text, place) : undefined;
    if (near === undefined || isInNotable(near, place)) places.push(place);
    const length = near === undefined ? 0 : near.endOf(near.count - 1) - near.startOf(0);
    room -= length;
    yield length * PASSAGE_COST;
  }
  let next = 0;
  while (next < places.length) {
    const first = next;
    const from = wordsBefore(text, places[next] ?? 0, PLACE_BEFORE);
    const tokeniser = new Tokeniser(text, CUE_BOOK.vocabulary, from, 2_048);
    let left = PLACE_AFTER;
    while (tokeniser.at < text.length) {
      const place = places[next] ?? Number.POSITIVE_INFINITY;
      if (place < tokeniser.at) {
        next += 1;
        left = PLACE_AFTER;
        continue;
      }
      // Words before a place can be more than those that may follow one; it must be reached in any case.
      if (left <= 0 && next > first && place - tokeniser.at > NEAR) break;
      tokeniser.addNext();
      left -= 1;
    }
    while ((places[next] ?? Number.POSITIVE_INFINITY) < tokeniser.at) next += 1;
    next = Math.max(next, first + 1);
    yield (tokeniser.at - from) * PASSAGE_COST;
    passages.push(partOf(tokeniser.tokens, places.slice(first, next)));
  }
  return passages;
}

/** As many words to both sides of a place as a cue can have. */
function nearWords(text: string, place: number): Tokens {
  const from = wordsBefore(text, place, CUE_BOOK.longest);
  const tokeniser = new Tokeniser(text, CUE_BOOK.vocabulary, from, 512);
  while (tokeniser.at <= place && tokeniser.at < text.length) tokeniser.addNext();
  for (let left = CUE_BOOK.longest; left > 0 && tokeniser.at < text.length; left -= 1) tokeniser.addNext();
  return tokeniser.tokens;
}

/** The place stands in a cue that can become a finding, whatever its mood and company, or in glued words. */
function isInNotable(tokens: Tokens, place: number): boolean {
  if (gluedMatches(tokens).some(({ start, end }) => start <= place && place < end)) return true;
  let found = false;
  CUE_BOOK.match(tokens, ({ label, first, last }) => {
    found ||= tokens.startOf(first) <= place && place < tokens.endOf(last) && isNotable(label);
  });
  return found;
}

/** `places` are those that it was read for; undefined if it was read for all that it holds. */
function partOf(tokens: Tokens, places: readonly number[] | undefined): Passage {
  const cues: Cue[] = [];
  addCues(tokens, cues, 0, tokens.count);
  return {
    tokens,
    cues,
    owns: (start, end) => places === undefined || (places[lastAtOrBefore(places, end - 1)] ?? -1) >= start,
  };
}

/** All cues but topics, with the mood of each; what is forbidden or excepted is no cue. */
function addCues(tokens: Tokens, cues: Cue[], from: number, to: number): void {
  CUE_BOOK.match(
    tokens,
    ({ label, first, last }) => {
      if (label.kind === "topic") return;
      const mood = label.verb === true ? moodOf(tokens, first) : "plain";
      const forbidden = label.unlessNegated === true && isForbidden(tokens, first);
      const excepted = (label.kind === "credential" || label.kind === "send") && isNegatedWithin(tokens, first, last);
      if (mood !== "negation" && !forbidden && !excepted) cues.push({ label, first, last, mood });
    },
    from,
    to,
  );
}

/** How much the words are about attacks on models: 0 not at all, from 2 on they name the subject. */
export function topicOf(tokens: Tokens): number {
  const topics = new Set<string>();
  let topic = 0;
  CUE_BOOK.match(tokens, ({ label, last }) => {
    if (label.kind !== "topic" || topics.has(tokens.word(last))) return;
    topics.add(tokens.word(last));
    topic += label.weight;
  });
  return topic;
}

/**
 * The word between two places and two before it, of a text that need not be normalised if it is plain. None where the
 * word goes on beyond those places.
 */
export function wordsUpTo(text: string, start: number, end: number): Tokens {
  let from = start;
  let to = end;
  while (text.charCodeAt(from - 1) === LOW_LINE) from -= 1;
  while (text.charCodeAt(to) === LOW_LINE) to += 1;
  if (isWordAt(text, from - 1) || isWordAt(text, to)) return new Tokens(text, 0);
  from = wordsBefore(text, from, 2);
  // The start of its line tells whether it stands in a table.
  const base = Math.max(0, from - TABLE_REACH);
  const tokeniser = new Tokeniser(text.slice(base, to).toLowerCase(), CUE_BOOK.vocabulary, from - base, 16);
  while (tokeniser.at < to - base) tokeniser.addNext();
  return tokeniser.tokens;
}

const LOW_LINE = 0x5f;

function isWordAt(text: string, at: number): boolean {
  return at >= 0 && at < text.length && (kindOf(text.charCodeAt(at)) & (LETTER | DIGIT)) !== 0;
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

/**
 * A place with at least so many words between it and `at`, at which the tokeniser can start: just behind a word, with a
 * character there that never is part of one.
 */
function wordsBefore(text: string, at: number, count: number): number {
  let left = count;
  for (let place = at - 1; place > 0; place -= 1) {
    const kind = kindOf(text.charCodeAt(place));
    if ((kind & OTHER) === 0 || (kind & INNER) !== 0) continue;
    if ((kindOf(text.charCodeAt(place - 1)) & (LETTER | DIGIT)) === 0) continue;
    left -= 1;
    if (left < 0) return place;
  }
  return 0;
}
