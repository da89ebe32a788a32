/**
 * Globs on names: `*` is any run of characters, `?` is one, all else is literal and case counts.
 * Matching never backtracks: pieces between stars are found leftmost, each once. A piece without `?` costs time
 * linear in the text; one with `?` at most its own length times the text.
 */
export type Glob = (text: string) => boolean;

/** A string by UTF-16 units, or an array by whole characters, which `?` needs. */
type Characters = ArrayLike<string>;

export function compileGlob(pattern: string): Glob {
  const wild = /[*?]/.exec(pattern);
  if (wild === null) return (text) => text === pattern;
  if (/^\*+$/.test(pattern)) return () => true;
  const prefix = pattern.slice(0, wild.index);
  if (/^\*+$/.test(pattern.slice(wild.index))) return (text) => text.startsWith(prefix);

  const byCharacter = pattern.includes("?");
  const pieces = pattern.split("*").map((piece) => new Piece(byCharacter ? Array.from(piece) : piece));
  return (text) => text.startsWith(prefix) && matches(pieces, byCharacter ? Array.from(text) : text);
}

function matches(pieces: readonly Piece[], text: Characters): boolean {
  const first = pieces[0];
  const last = pieces.at(-1);
  if (first === undefined || last === undefined) return false;
  if (pieces.length === 1) return text.length === first.length && first.fits(text, 0);

  const end = text.length - last.length;
  if (end < first.length || !first.fits(text, 0) || !last.fits(text, end)) return false;
  let position = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = piece.find(text, position, end);
    if (found < 0) return false;
    position = found + piece.length;
  }
  return true;
}

/** The text between two stars. */
class Piece {
  readonly length: number;
  readonly #characters: Characters;
  /** For a literal piece: at each place, how much of its beginning is still matched after a mismatch there. */
  readonly #borders: Int32Array | null;

  constructor(characters: Characters) {
    this.#characters = characters;
    this.length = characters.length;
    this.#borders = Array.prototype.includes.call(characters, "?") ? null : borders(characters);
  }

  fits(text: Characters, start: number): boolean {
    for (let i = 0; i < this.length; i += 1) {
      const wanted = this.#characters[i];
      if (wanted !== "?" && wanted !== text[start + i]) return false;
    }
    return true;
  }

  /** Where the piece first occurs in `text` between `from` and `end`, or -1. */
  find(text: Characters, from: number, end: number): number {
    return this.#borders === null ? this.#scan(text, from, end) : this.#search(text, from, end, this.#borders);
  }

  #scan(text: Characters, from: number, end: number): number {
    for (let start = from; start + this.length <= end; start += 1) {
      if (this.fits(text, start)) return start;
    }
    return -1;
  }

  #search(text: Characters, from: number, end: number, table: Int32Array): number {
    if (this.length === 0) return from;
    let matched = 0;
    for (let i = from; i < end; i += 1) {
      while (matched > 0 && this.#characters[matched] !== text[i]) matched = table[matched - 1] ?? 0;
      if (this.#characters[matched] === text[i]) matched += 1;
      if (matched === this.length) return i - matched + 1;
    }
    return -1;
  }
}

/** The failure table of Knuth, Morris and Pratt. */
function borders(characters: Characters): Int32Array {
  const table = new Int32Array(characters.length);
  let matched = 0;
  for (let i = 1; i < characters.length; i += 1) {
    while (matched > 0 && characters[matched] !== characters[i]) matched = table[matched - 1] ?? 0;
    if (characters[matched] === characters[i]) matched += 1;
    table[i] = matched;
  }
  return table;
}
