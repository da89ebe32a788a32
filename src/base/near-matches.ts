/** Did you mean …? Known names that are close to an unknown one. */
const MAX_QUERY_LENGTH = 128;

interface Match {
  readonly name: string;
  /** 0: the same except for case and separators. 1: the same tool under another prefix. 2: a typo. 3: contains the query. */
  readonly rank: number;
  readonly distance: number;
}

/** At most `max` candidates, best first; the order depends on the names alone. */
export function nearMatches(name: string, candidates: Iterable<string>, max = 3): string[] {
  const query = fold(name.slice(0, MAX_QUERY_LENGTH));
  if (query === "") return [];
  const matches: Match[] = [];
  for (const candidate of new Set(candidates)) {
    const match = compare(query, candidate);
    if (match !== undefined) matches.push(match);
  }
  matches.sort((a, b) => a.rank - b.rank || a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return matches.slice(0, max).map((match) => match.name);
}

/** The closest candidate, ignoring case; undefined if all are more than half of the word, or 3 edits, away. */
export function findNearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 64) return undefined;
  const wanted = word.toLowerCase();
  const maxDistance = Math.min(3, Math.ceil(word.length / 2));
  let best: string | undefined;
  let bestDistance = maxDistance + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase(), maxDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function compare(query: string, name: string): Match | undefined {
  const folded = fold(name);
  if (folded === query) return { name, rank: 0, distance: name.length };
  if (folded.endsWith(`-${query}`) || query.endsWith(`-${folded}`)) {
    return { name, rank: 1, distance: Math.abs(folded.length - query.length) };
  }
  const allowed = Math.min(6, Math.floor(query.length / 3));
  const bare = tail(query.length, folded);
  const distance = Math.min(
    editDistance(query, folded, allowed),
    bare === "" ? Infinity : editDistance(query, bare, allowed),
  );
  if (distance <= allowed) return { name, rank: 2, distance };
  if (query.length >= 3 && folded.includes(query)) return { name, rank: 3, distance: folded.length - query.length };
  return undefined;
}

/** Without case and separators: `Files__readFile`, `files.read_file` and `files/read-file` become one text. */
function fold(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

/** The shortest run of whole words at the end that is about as long as the query: the tool without its server. */
function tail(length: number, folded: string): string {
  const from = folded.lastIndexOf("-", folded.length - length + 1);
  return from < 0 ? "" : folded.slice(from + 1);
}

/** Counts insertions, deletions, replacements and swaps of neighbors; Infinity as soon as it is above `limit`. */
export function editDistance(a: string, b: string, limit = Infinity): number {
  if (Math.abs(a.length - b.length) > limit) return Infinity;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    let best = i;
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j - 1] ?? 0) + (same ? 0 : 1), (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
      best = Math.min(best, cost);
    }
    if (best > limit) return Infinity;
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? Infinity;
}

/** Whether two different words are one edit apart: faster than `editDistance`, for many words. */
export function isOneEditAway(a: string, b: string): boolean {
  const difference = a.length - b.length;
  if (difference > 1 || difference < -1) return false;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  if (difference > 0) return a.slice(start + 1) === b.slice(start);
  if (difference < 0) return a.slice(start) === b.slice(start + 1);
  if (a.slice(start + 1) === b.slice(start + 1)) return true;
  return a[start] === b[start + 1] && a[start + 1] === b[start] && a.slice(start + 2) === b.slice(start + 2);
}
