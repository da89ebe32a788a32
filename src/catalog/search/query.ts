/** A query as the terms of an index that it asks for. */
import { synonymsOf } from "./synonyms.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { rawWords, readWord } from "./words.ts";

/** A query may be a whole prompt; what stands first says most. */
const MAX_QUERY_LENGTH = 4000;
const MAX_WORDS = 32;
/** Looking for near terms of an unknown word goes through the whole vocabulary. */
const MAX_UNKNOWN_WORDS = 4;

const SYNONYM_WEIGHT = 0.5;
const NEAR_WEIGHT = 0.6;

/** One thing the query asks for: the best of these terms counts. */
export interface Wanted {
  readonly terms: readonly { readonly id: number; readonly weight: number }[];
}

/** What a query needs to know of the index. */
export interface Terms {
  readonly termIds: ReadonlyMap<string, number>;
  readonly rarity: Float32Array;
  readonly vocabulary: () => Vocabulary;
}

export function readQuery(query: string, { termIds, rarity, vocabulary }: Terms): Wanted[] {
  const words = queryTerms(query, termIds);
  const wanted: Wanted[] = [];
  let unknown = 0;
  /** A synonym that is rarer than the word asked for must not count for more than it. */
  const worthBeside = (word: string, synonym: string): number => {
    const [own, other] = [rarity[termIds.get(word) ?? -1], rarity[termIds.get(synonym) ?? -1]];
    return own === undefined || other === undefined ? 1 : Math.min(1, own / other);
  };
  for (const [i, word] of words.entries()) {
    const weights = new Map<number, number>();
    const add = (term: string, weight: number): void => {
      const id = termIds.get(term);
      if (id !== undefined && (weights.get(id) ?? 0) < weight) weights.set(id, weight);
    };
    add(word, 1);
    if (weights.size === 0 && unknown < MAX_UNKNOWN_WORDS) {
      unknown += 1;
      for (const term of vocabulary().near(word)) add(term, NEAR_WEIGHT);
    }
    for (const term of synonymsOf(word)) add(term, SYNONYM_WEIGHT * worthBeside(word, term));
    // "file system" also stands for "filesystem".
    add(`${words[i - 1] ?? ""}${word}`, 1);
    add(`${word}${words[i + 1] ?? ""}`, 1);
    if (weights.size > 0) wanted.push({ terms: Array.from(weights, ([id, weight]) => ({ id, weight })) });
  }
  return wanted;
}

function queryTerms(query: string, termIds: ReadonlyMap<string, number>): string[] {
  const terms = new Set<string>();
  for (const raw of rawWords(query.slice(0, MAX_QUERY_LENGTH))) {
    const { parts, whole } = readWord(raw);
    for (const term of whole !== undefined && termIds.has(whole) ? [whole] : parts) terms.add(term);
    if (terms.size >= MAX_WORDS) break;
  }
  return [...terms];
}
