/** The words of a normalised text in one flat array: a result of ten megabytes has two million of them. */
const FIELDS = 4;
const START = 0;
const END = 1;
const WORD = 2;
const SENTENCE = 3;

export class Tokens {
  readonly text: string;
  count = 0;
  #fields: Int32Array;
  /** Indices of long words. */
  readonly glued: number[] = [];
  /** A word may be spelled letter by letter: several very short ones stand in a row, or letters between underscores. */
  spelled = false;

  /** @param length Of the part of the text whose words these are. */
  constructor(text: string, length: number = text.length) {
    this.text = text;
    this.#fields = new Int32Array(FIELDS * (16 + Math.ceil(length / 5)));
  }

  add(start: number, end: number, word: number, sentence: number): void {
    const at = this.count * FIELDS;
    if (at === this.#fields.length) this.#grow();
    const fields = this.#fields;
    fields[at + START] = start;
    fields[at + END] = end;
    fields[at + WORD] = word;
    fields[at + SENTENCE] = sentence;
    this.count += 1;
  }

  word(index: number): string {
    return index < 0 || index >= this.count ? "" : this.text.slice(this.startOf(index), this.endOf(index));
  }

  /** Number in the vocabulary; 0 for a word that no pattern knows. */
  numberOf(index: number): number {
    return index >= this.count ? 0 : (this.#fields[index * FIELDS + WORD] ?? 0);
  }

  startOf(index: number): number {
    return index >= this.count ? 0 : (this.#fields[index * FIELDS + START] ?? 0);
  }

  endOf(index: number): number {
    return index >= this.count ? 0 : (this.#fields[index * FIELDS + END] ?? 0);
  }

  sentenceOf(index: number): number {
    return index < 0 || index >= this.count ? -1 : (this.#fields[index * FIELDS + SENTENCE] ?? -1);
  }

  /** What stands between a word and the one before it, at most 24 characters of it. */
  gapBefore(index: number): string {
    const start = this.startOf(index);
    const from = index === 0 ? 0 : this.endOf(index - 1);
    return this.text.slice(Math.max(from, start - 24), start);
  }

  /** Index of the first word that ends after `offset`. */
  at(offset: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.endOf(middle) <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #grow(): void {
    const larger = new Int32Array(this.#fields.length * 2);
    larger.set(this.#fields);
    this.#fields = larger;
  }
}
