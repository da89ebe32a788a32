/**
 * The table that finds the words of the guard. Making it takes a fifth of a second and has the same result at every start, so the
 * build does it once and puts the result in the place of this module.
 */
import { WordTable } from "./automaton.ts";
import { CONCEPTS } from "./words.ts";

/** Their numbers are their places in the list. */
export const CONCEPT_NAMES: readonly string[] = [...CONCEPTS.keys()];

export function wordTable(): WordTable {
  return WordTable.of(
    CONCEPT_NAMES.flatMap((name, concept) => (CONCEPTS.get(name) ?? []).map((list) => [concept, list] as const)),
  );
}
