/** Entries of the palette, and how typed words are compared with them. */
export interface Match {
  readonly text: string;
  /** Also looked in, but counts less. */
  readonly more?: string | undefined;
}

/** Words of what was typed that all must be there; the best first, at most so many. */
export function bestMatches<Entry extends Match>(
  entries: readonly Entry[],
  typed: string,
  most: number,
): readonly Entry[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return entries.slice(0, most);
  return entries
    .map((entry) => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ entry }) => entry);
}

/** 0 if a word is missing. */
function scoreOf({ text, more = "" }: Match, words: readonly string[]): number {
  const name = text.toLowerCase();
  const rest = more.toLowerCase();
  let score = 0;
  for (const word of words) {
    const at = name.indexOf(word);
    if (at === 0) score += 4;
    else if (at > 0) score += /[\p{L}\p{N}]/u.test(name[at - 1] ?? "") ? 2 : 3;
    else if (rest.includes(word)) score += 1;
    else return 0;
  }
  return score;
}
