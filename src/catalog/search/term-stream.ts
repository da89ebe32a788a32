import { FIELD_COUNT } from "./fields.ts";
import { rawWords, readWord } from "./words.ts";

/** All terms of all tools one after the other, as numbers; field f of tool i ends at `ends[i * FIELD_COUNT + f]`. */
export interface TermStream {
  readonly termIds: ReadonlyMap<string, number>;
  readonly terms: readonly number[];
  readonly ends: readonly number[];
}

export function readTerms(toolTexts: Iterable<readonly string[]>): TermStream {
  const termIds = new Map<string, number>();
  const terms: number[] = [];
  const ends: number[] = [];
  const idOf = (term: string): number => {
    let id = termIds.get(term);
    if (id === undefined) termIds.set(term, (id = termIds.size));
    return id;
  };
  // Tools share most of their words, so each is taken apart once.
  const known = new Map<string, readonly number[]>();
  for (const texts of toolTexts) {
    for (let field = 0; field < FIELD_COUNT; field += 1) {
      for (const raw of rawWords(texts[field] ?? "")) {
        let ids = known.get(raw);
        if (ids === undefined) {
          const { parts, whole } = readWord(raw);
          ids = (whole === undefined ? parts : [...parts, whole]).map(idOf);
          known.set(raw, ids);
        }
        for (const id of ids) terms.push(id);
      }
      ends.push(terms.length);
    }
  }
  return { termIds, terms, ends };
}
