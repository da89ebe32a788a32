/**
 * Phrases as sequences of words with small gaps. Matching starts only at a known word and looks at most a few words
 * ahead, so the whole is linear in the text whatever it holds.
 *
 * A phrase: `@class` or `word` or `a|b|@c`; `~3` allows up to three words in between and `~~3` also
 * the end of a sentence; a trailing `?` makes a part
 * optional. Otherwise all parts stand in one sentence.
 */
import { foldWord } from "../normalise.ts";
import type { Tokens } from "../tokens.ts";
import { Vocabulary } from "../vocabulary.ts";

export interface PhraseSpec<Label> {
  readonly label: Label;
  readonly phrase: string;
}

/** One bit for each word of the vocabulary: there are a thousand such sets, and a thousand words. */
type WordSet = Uint8Array;

interface Part {
  readonly members: WordSet;
  readonly gap: number;
  readonly crosses: boolean;
  readonly optional: boolean;
}

interface Phrase<Label> {
  readonly label: Label;
  readonly parts: readonly Part[];
}

/** The phrases that start with one word. */
interface Shelf<Label> {
  readonly phrases: Phrase<Label>[];
  /** Words of the second parts, and how far off they can stand: most starts end with one look at these. */
  readonly seconds: WordSet;
  reach: number;
}

export interface PhraseMatch<Label> {
  readonly label: Label;
  /** Index of the first and of the last word. */
  readonly first: number;
  readonly last: number;
}

/** A phrase as its parts; words are numbers of the vocabulary. */
export interface ParsedPhrase<Label> {
  readonly label: Label;
  readonly parts: readonly ParsedPart[];
}

export interface ParsedPart {
  readonly words: readonly number[];
  /** Words that may stand between the part before and this one. */
  readonly gap: number;
  readonly crosses: boolean;
  readonly optional: boolean;
}

export interface PhraseBook<Label> {
  readonly vocabulary: Vocabulary;
  readonly phrases: readonly ParsedPhrase<Label>[];
  /** No match has more words. */
  readonly longest: number;
  /** Matches that start with a word from `from` to before `to`; of the whole text if left out. */
  match(tokens: Tokens, found: (match: PhraseMatch<Label>) => void, from?: number, to?: number): void;
}

/** Word lists by class name; words are separated by spaces. */
export type Lexicon = Readonly<Record<string, string>>;

export function phraseBook<Label>(lexicon: Lexicon, specs: readonly PhraseSpec<Label>[]): PhraseBook<Label> {
  const vocabulary = new Vocabulary();
  const known = new Map<string, readonly number[]>();
  const wordsOf = (alternatives: string): readonly number[] => {
    const before = known.get(alternatives);
    if (before !== undefined) return before;
    const numbers: number[] = [];
    for (const alternative of alternatives.split("|")) {
      const words = alternative.startsWith("@") ? lexicon[alternative.slice(1)] : alternative;
      if (words === undefined) throw new Error(`The phrase table names an unknown class: ${alternative}`);
      for (const word of words.split(/\s+/)) if (word !== "") numbers.push(vocabulary.add(foldWord(word)));
    }
    known.set(alternatives, numbers);
    return numbers;
  };

  const parsed = specs.map((spec) => ({ label: spec.label, parts: parse(spec.phrase, wordsOf) }));
  const size = vocabulary.size + 1;
  const shelves: (Shelf<Label> | undefined)[] = Array.from({ length: size });
  for (const { label, parts } of parsed) {
    const phrase: Phrase<Label> = {
      label,
      parts: parts.map((part) => ({
        members: addWords(emptySet(size), part.words),
        gap: part.gap,
        crosses: part.crosses,
        optional: part.optional,
      })),
    };
    for (const word of new Set(parts[0]?.words)) {
      const shelf = (shelves[word] ??= { phrases: [], seconds: emptySet(size), reach: 0 });
      shelf.phrases.push(phrase);
      const second = parts[1];
      if (second === undefined || second.optional) continue;
      addWords(shelf.seconds, second.words);
      shelf.reach = Math.max(shelf.reach, second.gap + 1);
    }
  }
  return {
    vocabulary,
    phrases: parsed,
    longest: Math.max(0, ...parsed.map(({ parts }) => parts.reduce((words, { gap }) => words + gap + 1, 0))),
    match(tokens, found, from = 0, to = tokens.count) {
      for (let first = from; first < to; first += 1) {
        const word = tokens.numberOf(first);
        if (word === 0) continue;
        const shelf = shelves[word];
        if (shelf === undefined) continue;
        const promising = hasSecond(tokens, shelf, first);
        for (const phrase of shelf.phrases) {
          if (!promising && phrase.parts[1]?.optional === false) continue;
          const last = matchFrom(tokens, phrase.parts, 1, first, tokens.sentenceOf(first));
          if (last >= 0) found({ label: phrase.label, first, last });
        }
      }
    },
  };
}

function hasSecond(tokens: Tokens, { seconds, reach }: Shelf<unknown>, first: number): boolean {
  for (let at = first + 1; at <= first + reach; at += 1) if (holds(seconds, tokens.numberOf(at))) return true;
  return false;
}

function parse(phrase: string, wordsOf: (alternatives: string) => readonly number[]): ParsedPart[] {
  const parts: ParsedPart[] = [];
  let gap = 0;
  let crosses = false;
  for (const piece of phrase.split(" ")) {
    if (piece.startsWith("~")) {
      crosses = piece.startsWith("~~");
      gap = Number(piece.slice(crosses ? 2 : 1));
      continue;
    }
    const optional = piece.endsWith("?");
    parts.push({ words: wordsOf(optional ? piece.slice(0, -1) : piece), gap, crosses, optional });
    gap = 0;
    crosses = false;
  }
  return parts;
}

function emptySet(size: number): WordSet {
  return new Uint8Array((size + 7) >> 3);
}

function addWords(set: WordSet, words: readonly number[]): WordSet {
  for (const word of words) set[word >> 3] = (set[word >> 3] ?? 0) | (1 << (word & 7));
  return set;
}

function holds(set: WordSet, word: number): boolean {
  return ((set[word >> 3] ?? 0) & (1 << (word & 7))) !== 0;
}

/** The last word of the match, or -1. `previous` is the word that matched the part before. */
function matchFrom(tokens: Tokens, parts: readonly Part[], index: number, previous: number, sentence: number): number {
  const part = parts[index];
  if (part === undefined) return previous;
  for (let at = previous + 1; at <= previous + 1 + part.gap && at < tokens.count; at += 1) {
    if (!part.crosses && tokens.sentenceOf(at) !== sentence) break;
    if (!holds(part.members, tokens.numberOf(at))) continue;
    const last = matchFrom(tokens, parts, index + 1, at, tokens.sentenceOf(at));
    if (last >= 0) return last;
  }
  return part.optional ? matchFrom(tokens, parts, index + 1, previous, sentence) : -1;
}
