/** Tells that a long text holds none of many values, at the cost of one look at every fourth byte of it. */

/** With seven bytes, four of them fill one of the places that are four apart, wherever the value stands. */
export const SHORTEST_FILTERED = 7;

const SLOTS = 1 << 18;
/** Units of text that are looked at together. A unit has up to three bytes. */
const PIECE = 16_384;
/** As many units as a value needs to be found in the next piece, if it has too few bytes in this one. */
const OVERLAP = 8;
const bytes = Buffer.alloc(3 * (PIECE + OVERLAP) + 4);
const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);

export class FormFilter {
  /** A bit for each four bytes, by their hash. */
  readonly #bits = new Uint32Array(SLOTS / 32);
  /** Values by four bytes of theirs, and where those stand in them. */
  readonly #values = new Map<number, { readonly value: Buffer; readonly offset: number }[]>();

  /** A value of at least seven bytes. */
  add(form: string): void {
    const value = Buffer.from(form, "utf8");
    for (let offset = 0; offset < 4; offset += 1) {
      // Read as the list of words reads it, whatever the order of bytes is on this machine.
      const word = new Uint32Array(new Uint8Array(value.subarray(offset, offset + 4)).buffer)[0] ?? 0;
      const slot = slotOf(word);
      this.#bits[slot >>> 5] = (this.#bits[slot >>> 5] ?? 0) | (1 << (slot & 31));
      const others = this.#values.get(word) ?? [];
      this.#values.set(word, [...others, { value, offset }]);
    }
  }

  /** False if certainly none of the values stands in the text. */
  mayHold(text: string): boolean {
    for (let from = 0; from < text.length; from += PIECE) {
      const length = bytes.write(text.slice(from, from + PIECE + OVERLAP), "utf8");
      const end = length >>> 2;
      for (let at = nextMarked(words, this.#bits, 0, end); at !== -1; at = nextMarked(words, this.#bits, at + 1, end)) {
        if (this.#isAt(at, length)) return true;
      }
    }
    return false;
  }

  /** One of the values stands there, as far as the piece shows it. */
  #isAt(at: number, length: number): boolean {
    const candidates = this.#values.get(words[at] ?? 0) ?? [];
    return candidates.some(({ value, offset }) => {
      const start = Math.max(0, 4 * at - offset);
      const skipped = start - (4 * at - offset);
      const end = Math.min(length, 4 * at - offset + value.length);
      return bytes.compare(value, skipped, skipped + end - start, start, end) === 0;
    });
  }
}

function slotOf(word: number): number {
  return Math.imul(word, 0x9e3779b1) >>> 14;
}

/** All it needs as parameters: the engine makes the tightest loop of that. */
function nextMarked(words: Uint32Array, bits: Uint32Array, from: number, to: number): number {
  for (let at = from; at < to; at += 1) {
    const slot = slotOf(words[at] ?? 0);
    if (((bits[slot >>> 5] ?? 0) & (1 << (slot & 31))) !== 0) return at;
  }
  return -1;
}
