import { FIELD_COUNT, type FieldTexts } from "./fields.ts";
import { rawWords, readWord } from "./words.ts";

/** All terms of all tools one after the other, as numbers; field f of tool i ends at `ends[i * FIELD_COUNT + f]`. */
export interface TermStream {
  readonly termIds: ReadonlyMap<string, number>;
  readonly terms: readonly number[];
  readonly ends: readonly number[];
}

export function readTerms(toolTexts: Iterable<FieldTexts>): TermStream {
  const termIds = new Map<string, number>();
  const terms: number[] = [];
  const ends: number[] = [];
  const idOf = (term: string): number => {
    let id = termIds.get(term);
    if (id === undefined) termIds.set(term, (id = termIds.size));
    return id;
  };
  // Tools share most of their words and many of their texts, so each is taken apart once.
  const knownWords = new Map<string, readonly number[]>();
  const idsOfWord = (raw: string): readonly number[] => {
    let ids = knownWords.get(raw);
    if (ids === undefined) {
      const { parts, whole } = readWord(raw);
      ids = (whole === undefined ? parts : [...parts, whole]).map(idOf);
      knownWords.set(raw, ids);
    }
    return ids;
  };
  const knownTexts = new Map<string, readonly number[]>();
  for (const fields of toolTexts) {
    for (let field = 0; field < FIELD_COUNT; field += 1) {
      for (const text of fields[field] ?? []) {
        let ids = knownTexts.get(text);
        if (ids === undefined) knownTexts.set(text, (ids = rawWords(text).flatMap(idsOfWord)));
        for (let i = 0; i < ids.length; i += 1) terms.push(ids[i] ?? 0);
      }
      ends.push(terms.length);
    }
  }
  return { termIds, terms, ends };
}
