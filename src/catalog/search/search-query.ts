/** A query as the terms of an index that it asks for. */
import { isOneEditAway } from "../../base/near-matches.ts";
import { rawWords, readWord, synonymsOf } from "./search-words.ts";

/** A query may be a whole prompt; its beginning matters most. */
const MAX_QUERY_LENGTH = 4000;
const MAX_WORDS = 32;
/** Looking for near terms of an unknown word goes through the whole vocabulary. */
const MAX_UNKNOWN_WORDS = 4;

const SYNONYM_WEIGHT = 0.5;
const NEAR_WEIGHT = 0.6;

/** One thing the query asks for: the best of these terms counts. */
export interface QueryTerm {
  readonly terms: readonly { readonly id: number; readonly weight: number }[];
}

/** The part of the index that a query needs. */
interface IndexTerms {
  readonly termIds: ReadonlyMap<string, number>;
  readonly rarity: Float32Array;
  readonly vocabulary: () => Vocabulary;
}

export function readQuery(query: string, { termIds, rarity, vocabulary }: IndexTerms): QueryTerm[] {
  const words = queryTerms(query, termIds);
  const wanted: QueryTerm[] = [];
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

const MIN_PREFIX = 3;
const MAX_PREFIX_MATCHES = 16;
const MIN_TYPO = 4;
const MAX_TYPO_MATCHES = 4;

/** Finds terms of the index that an unknown word of a query may stand for. */
export class Vocabulary {
  readonly #sorted: readonly string[];

  constructor(terms: Iterable<string>) {
    this.#sorted = [...terms].toSorted();
  }

  /** Terms that begin with the word, or else those that one slip of the finger makes of it. */
  near(word: string): readonly string[] {
    const longer = this.#beginningWith(word);
    return longer.length > 0 || word.length < MIN_TYPO ? longer : this.#oneSlipAway(word);
  }

  #beginningWith(word: string): string[] {
    if (word.length < MIN_PREFIX) return [];
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? "") < word) low = middle + 1;
      else high = middle;
    }
    const found: string[] = [];
    for (let i = low; found.length < MAX_PREFIX_MATCHES; i += 1) {
      const term = this.#sorted[i];
      if (term === undefined || !term.startsWith(word)) break;
      found.push(term);
    }
    return found;
  }

  #oneSlipAway(word: string): string[] {
    const found: string[] = [];
    for (const term of this.#sorted) {
      if (!isOneEditAway(word, term)) continue;
      found.push(term);
      if (found.length === MAX_TYPO_MATCHES) break;
    }
    return found;
  }
}
