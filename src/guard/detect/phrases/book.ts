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

interface Part {
  readonly members: Uint8Array;
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
  readonly seconds: Uint8Array;
  reach: number;
}

export interface PhraseMatch<Label> {
  readonly label: Label;
  /** Index of the first and of the last word. */
  readonly first: number;
  readonly last: number;
}

export interface PhraseBook<Label> {
  readonly vocabulary: Vocabulary;
  /** Matches that start with a word from `from` to before `to`; of the whole text if left out. */
  match(tokens: Tokens, found: (match: PhraseMatch<Label>) => void, from?: number, to?: number): void;
}

/** Word lists by class name; words are separated by spaces. */
export type Lexicon = Readonly<Record<string, string>>;

export function phraseBook<Label>(lexicon: Lexicon, specs: readonly PhraseSpec<Label>[]): PhraseBook<Label> {
  const vocabulary = new Vocabulary();
  const wordsOf = (alternatives: string): number[] => {
    const numbers: number[] = [];
    for (const alternative of alternatives.split("|")) {
      const words = alternative.startsWith("@") ? lexicon[alternative.slice(1)] : alternative;
      if (words === undefined) throw new Error(`The phrase table names an unknown class: ${alternative}`);
      for (const word of words.split(/\s+/)) if (word !== "") numbers.push(vocabulary.add(foldWord(word)));
    }
    return numbers;
  };

  const parsed = specs.map((spec) => ({ label: spec.label, parts: parse(spec.phrase, wordsOf) }));
  const size = vocabulary.size + 1;
  const shelves: (Shelf<Label> | undefined)[] = Array.from({ length: size });
  for (const { label, parts } of parsed) {
    const phrase: Phrase<Label> = {
      label,
      parts: parts.map((part) => ({
        members: membership(part.words, size),
        gap: part.gap,
        crosses: part.crosses,
        optional: part.optional,
      })),
    };
    for (const word of new Set(parts[0]?.words)) {
      const shelf = (shelves[word] ??= { phrases: [], seconds: new Uint8Array(size), reach: 0 });
      shelf.phrases.push(phrase);
      const second = parts[1];
      if (second === undefined || second.optional) continue;
      for (const number of second.words) shelf.seconds[number] = 1;
      shelf.reach = Math.max(shelf.reach, second.gap + 1);
    }
  }
  return {
    vocabulary,
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
  for (let at = first + 1; at <= first + reach; at += 1) if (seconds[tokens.numberOf(at)] === 1) return true;
  return false;
}

interface ParsedPart {
  readonly words: readonly number[];
  readonly gap: number;
  readonly crosses: boolean;
  readonly optional: boolean;
}

function parse(phrase: string, wordsOf: (alternatives: string) => number[]): ParsedPart[] {
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

function membership(words: readonly number[], size: number): Uint8Array {
  const members = new Uint8Array(size);
  for (const word of words) members[word] = 1;
  return members;
}

/** The last word of the match, or -1. `previous` is the word that matched the part before. */
function matchFrom(tokens: Tokens, parts: readonly Part[], index: number, previous: number, sentence: number): number {
  const part = parts[index];
  if (part === undefined) return previous;
  for (let at = previous + 1; at <= previous + 1 + part.gap && at < tokens.count; at += 1) {
    if (!part.crosses && tokens.sentenceOf(at) !== sentence) break;
    if (part.members[tokens.numberOf(at)] !== 1) continue;
    const last = matchFrom(tokens, parts, index + 1, at, tokens.sentenceOf(at));
    if (last >= 0) return last;
  }
  return part.optional ? matchFrom(tokens, parts, index + 1, previous, sentence) : -1;
}
