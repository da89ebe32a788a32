/** How much a text is about attacks: each word of the subject counts once. */
import type { PhraseBook } from "../phrases/book.ts";
import type { CueLabel } from "../phrases/cue.ts";

export interface TopicWord {
  readonly weight: number;
  /** Words one of which must stand before it in its sentence; undefined if it counts by itself. */
  readonly after: ReadonlySet<number> | undefined;
}

/** By the number of the word. A topic is a word, or a word after another. */
export function topicWords({ phrases }: PhraseBook<CueLabel>): ReadonlyMap<number, TopicWord> {
  const words = new Map<number, TopicWord>();
  for (const { label, parts } of phrases) {
    if (label.kind !== "topic") continue;
    const [first, second] = parts;
    const last = second ?? first;
    if (first === undefined || last === undefined || parts.length > 2 || last.gap > 0 || last.optional)
      throw new Error("A topic is one word, or one word straight after another.");
    for (const number of last.words) {
      const known = words.get(number);
      if (known !== undefined && known.weight !== label.weight)
        throw new Error("A word of a topic has two weights: which one counts would depend on what stands before it.");
      const alone = second === undefined || (known !== undefined && known.after === undefined);
      words.set(number, {
        weight: label.weight,
        after: alone ? undefined : new Set([...(known?.after ?? []), ...first.words]),
      });
    }
  }
  return words;
}
