/** Words that some pattern knows, numbered from 1. Found by a hash of their place in a text, without cutting them out. */
const SLOTS = 8_192;

export function hashOf(text: string, start: number, end: number): number {
  let hash = 0;
  for (let at = start; at < end; at += 1) hash = nextHash(hash, text.charCodeAt(at));
  return hash;
}

/** The hash of a word is built up unit by unit, by whoever walks over it. */
export function nextHash(hash: number, unit: number): number {
  return (Math.imul(hash, 31) + unit) | 0;
}

export class Vocabulary {
  readonly #words: string[] = [""];
  readonly #hashes: number[] = [0];
  readonly #slots = new Uint16Array(SLOTS);

  get size(): number {
    return this.#words.length - 1;
  }

  /** The number of the word, a new one if it has none. */
  add(word: string): number {
    const hash = hashOf(word, 0, word.length);
    const known = this.find(word, 0, word.length, hash);
    if (known !== 0) return known;
    // Half empty, so that a search for an unknown word ends soon.
    if (this.size >= SLOTS / 2) throw new Error("The phrase tables have more words than the vocabulary holds.");
    let slot = slotOf(hash);
    while (this.#slots[slot] !== 0) slot = (slot + 1) % SLOTS;
    this.#slots[slot] = this.#words.length;
    this.#hashes.push(hash);
    return this.#words.push(word) - 1;
  }

  /** 0 for an unknown word. */
  find(text: string, start: number, end: number, hash: number): number {
    for (let slot = slotOf(hash); ; slot = (slot + 1) % SLOTS) {
      const number = this.#slots[slot] ?? 0;
      if (number === 0) return 0;
      if (this.#hashes[number] !== hash) continue;
      const word = this.#words[number] ?? "";
      if (word.length === end - start && text.startsWith(word, start)) return number;
    }
  }

  /** The first word that has this hash, or 0: enough to tell that no word can be meant. */
  withHash(hash: number): number {
    for (let slot = slotOf(hash); ; slot = (slot + 1) % SLOTS) {
      const number = this.#slots[slot] ?? 0;
      if (number === 0 || this.#hashes[number] === hash) return number;
    }
  }

  hash(number: number): number {
    return this.#hashes[number] ?? 0;
  }

  word(number: number): string {
    return this.#words[number] ?? "";
  }

  number(word: string): number {
    return this.find(word, 0, word.length, hashOf(word, 0, word.length));
  }
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 13)) & (SLOTS - 1);
}
