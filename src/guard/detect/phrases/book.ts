/**
 * Phrases as sequences of words with small gaps. Matching starts only at a known word and looks at most a few words
 * ahead, so the whole is linear in the text whatever it holds.
 *
 * A phrase: `@class` or `word` or `a|b|@c`; `~3` allows up to three words in between and `~~3` also
 * the end of a sentence; a trailing `?` makes a part
 * optional. Otherwise all parts stand in one sentence.
 */
import { foldWord } from "../normalise.ts";
import type { Tokens, Vocabulary } from "../tokens.ts";

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

export interface PhraseMatch<Label> {
  readonly label: Label;
  /** Index of the first and of the last word. */
  readonly first: number;
  readonly last: number;
}

export interface PhraseBook<Label> {
  readonly vocabulary: Vocabulary;
  match(tokens: Tokens, found: (match: PhraseMatch<Label>) => void): void;
}

/** Word lists by class name; words are separated by spaces. */
export type Lexicon = Readonly<Record<string, string>>;

export function phraseBook<Label>(lexicon: Lexicon, specs: readonly PhraseSpec<Label>[]): PhraseBook<Label> {
  const vocabulary = new Map<string, number>();
  const numberOf = (word: string): number => {
    const plain = foldWord(word);
    const known = vocabulary.get(plain);
    if (known !== undefined) return known;
    vocabulary.set(plain, vocabulary.size + 1);
    return vocabulary.size;
  };
  const wordsOf = (alternatives: string): number[] => {
    const numbers: number[] = [];
    for (const alternative of alternatives.split("|")) {
      const words = alternative.startsWith("@") ? lexicon[alternative.slice(1)] : alternative;
      if (words === undefined) throw new Error(`The phrase table names an unknown class: ${alternative}`);
      for (const word of words.split(/\s+/)) if (word !== "") numbers.push(numberOf(word));
    }
    return numbers;
  };

  const parsed = specs.map((spec) => ({ label: spec.label, parts: parse(spec.phrase, wordsOf) }));
  const size = vocabulary.size + 1;
  const byFirst: Phrase<Label>[][] = Array.from({ length: size }, () => []);
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
    for (const word of new Set(parts[0]?.words)) byFirst[word]?.push(phrase);
  }
  return {
    vocabulary,
    match(tokens, found) {
      for (let first = 0; first < tokens.count; first += 1) {
        const word = tokens.words[first];
        if (word === undefined || word === 0) continue;
        for (const phrase of byFirst[word] ?? []) {
          const last = matchFrom(tokens, phrase.parts, 1, first, tokens.sentenceOf(first));
          if (last >= 0) found({ label: phrase.label, first, last });
        }
      }
    },
  };
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
    if (part.members[tokens.words[at] ?? 0] !== 1) continue;
    const last = matchFrom(tokens, parts, index + 1, at, tokens.sentenceOf(at));
    if (last >= 0) return last;
  }
  return part.optional ? matchFrom(tokens, parts, index + 1, previous, sentence) : -1;
}
