/** Terms of the index that a word of a query may stand for when it is not itself one of them. */

const MIN_PREFIX = 3;
const MAX_PREFIX_MATCHES = 16;
const MIN_TYPO = 4;
const MAX_TYPO_MATCHES = 4;

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
      if (!isOneSlipAway(word, term)) continue;
      found.push(term);
      if (found.length === MAX_TYPO_MATCHES) break;
    }
    return found;
  }
}

/** One letter too many, too few or wrong, or two neighbours swapped. */
function isOneSlipAway(a: string, b: string): boolean {
  const difference = a.length - b.length;
  if (difference > 1 || difference < -1) return false;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  if (difference > 0) return a.slice(start + 1) === b.slice(start);
  if (difference < 0) return a.slice(start) === b.slice(start + 1);
  if (a.slice(start + 1) === b.slice(start + 1)) return true;
  return a[start] === b[start + 1] && a[start + 1] === b[start] && a.slice(start + 2) === b.slice(start + 2);
}
