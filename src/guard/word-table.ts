/**
 * The table that finds the words of the guard. Making it takes a tenth of a second and 15 MB, and has the same result at every start,
 * so the build does it once and puts the packed result in the place of this module.
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
