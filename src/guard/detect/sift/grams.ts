/**
 * Marked sequences of four characters, and the search for them at every second place of a text. What is looked for has
 * one marked sequence for each of the two ways in which it can stand to those places, so none is missed. Half the places
 * and no words to cut out: this is what makes a long text cheap that holds nothing.
 */

/** Whatever is no letter and no digit; what the table of a text leaves out counts as one. */
const BETWEEN = 0;
/** Letters are 1 to 26, with the digits that are written for them: "1" stands for "i" and "l", which are one here. */
const DIGIT = 27;
/** "@" and "$": letters of a word, and what may stand before and after one. */
const SIGN = 28;
/** A unit that somebody has to look at, wherever it stands. */
export const ODD = 31;

const BITS = 5;
const CLASSES = 32;
const SIZE = 4;

/** A class for each UTF-16 unit. */
export type Classes = Uint8Array;

const LETTERS_FOR: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  l: "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
};

/** A first and a last unit. */
export type Range = readonly [first: number, last: number];

export function classesOf(odd: readonly Range[]): Classes {
  const classes = new Uint8Array(0x10000);
  for (let unit = 0; unit < 0x80; unit += 1) classes[unit] = classOf(String.fromCharCode(unit).toLowerCase());
  for (const [first, last] of odd) classes.fill(ODD, first, last + 1);
  return classes;
}

function classOf(character: string): number {
  const letter = LETTERS_FOR[character] ?? character;
  if (letter >= "a" && letter <= "z") return letter.charCodeAt(0) - 96;
  if (letter === "@" || letter === "$") return SIGN;
  return letter >= "0" && letter <= "9" ? DIGIT : BETWEEN;
}

const ANY: readonly number[] = Array.from({ length: CLASSES }, (_, index) => index);
/** What can stand before and after a word. Some of the odd units can, too. */
const EDGE: readonly number[] = [BETWEEN, SIGN, ODD];

/** What a letter of a word can be written as. */
function spellings(character: string): readonly number[] {
  const own = classOf(character);
  return character === "a" || character === "s" ? [own, SIGN] : [own];
}

/** One class for the letters that share a sign. */
const MERGED = Uint8Array.from({ length: CLASSES }, (_, own) =>
  own === SIGN || own === classOf("s") ? classOf("a") : own,
);

const ASCII = classesOf([]);

type Pattern = readonly (readonly number[])[];

/** What is looked for, and by which piece of it. */
interface Piece {
  readonly id: number;
  /** How far behind the start of the piece it starts; below zero if before. */
  readonly shift: number;
  readonly length: number;
  readonly hash: number;
  /** It may stand inside of a word. */
  readonly inside: boolean;
}

/** Adds what is looked for, and makes the tables for the search of it. */
export class MarkMaker {
  /** By the sequence that is marked. */
  readonly #pieces = new Map<number, Piece[]>();
  readonly #ids = new Map<string, number>();

  /** Every occurrence of the word by itself is found, in upper and lower case and with digits for letters. */
  addWord(word: string): number {
    return this.#add(word, false, [EDGE, ...Array.from(word, spellings), EDGE]);
  }

  /** Every occurrence of the letters is found, also inside of a word. At least five of them. */
  addPart(part: string): number {
    const pattern = Array.from(part, (character) => [classOf(character)]);
    return this.#add(part, true, pattern);
  }

  make(): Marks {
    return new Marks(this.#pieces);
  }

  #add(letters: string, inside: boolean, narrow: Pattern): number {
    const key = `${inside ? "*" : ""}${letters}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#ids.size;
    this.#ids.set(key, id);
    const units = Uint16Array.from(letters, (letter) => letter.charCodeAt(0));
    const hash = hashOfClasses(units, ASCII, MERGED, 0, units.length);
    // With one of anything around it, the shortest word has a whole sequence for both.
    const short = narrow.length <= SIZE;
    const pattern = short ? [ANY, ...narrow, ANY] : narrow;
    const start = (inside ? 0 : 1) + (short ? 1 : 0);
    // One for an even start of the pattern, one for an odd one.
    for (const parity of [0, 1]) {
      const best = rarest(pattern, parity);
      const piece = { id, shift: start - best, length: letters.length, hash, inside };
      for (const gram of expand(pattern.slice(best, best + SIZE))) {
        const others = this.#pieces.get(gram);
        if (others === undefined) this.#pieces.set(gram, [piece]);
        else others.push(piece);
      }
    }
    return id;
  }
}

const SLOTS = 1 << 15;
/** Fields of an entry. The last one is 1 for the last entry of a sequence. */
const SHIFT = 0;
const LENGTH = 1;
const HASH = 2;
const ID = 3;
const INSIDE = 4;
const LAST = 5;
const FIELDS = 6;

export class Marks {
  /** What was found at a place, as numbers that the maker gave, and where each of them starts. None: an odd unit. */
  count = 0;
  readonly ids = new Int32Array(16);
  readonly starts = new Int32Array(16);
  readonly #bits = new Uint32Array(CLASSES ** SIZE / 32);
  readonly #keys = new Int32Array(SLOTS).fill(-1);
  readonly #firsts = new Int32Array(SLOTS);
  readonly #entries: Int32Array;

  constructor(pieces: ReadonlyMap<number, readonly Piece[]>) {
    // Every sequence with an odd unit: the last class of each word of bits, or all of them.
    for (let rest = 0; rest < this.#bits.length; rest += 1) this.#bits[rest] = hasOdd(rest) ? -1 : 1 << ODD;
    if (pieces.size > SLOTS / 2) throw new Error("There are more marked sequences than the table holds.");
    const entries: number[] = [];
    for (const [gram, own] of pieces) {
      if (own.length > this.ids.length) throw new Error("A sequence of characters is part of too many words.");
      this.#bits[gram >>> 5] = (this.#bits[gram >>> 5] ?? 0) | (1 << (gram & 31));
      let slot = slotOf(gram);
      while (this.#keys[slot] !== -1) slot = (slot + 1) % SLOTS;
      this.#keys[slot] = gram;
      this.#firsts[slot] = entries.length;
      for (const [index, { id, shift, length, hash, inside }] of own.entries())
        entries.push(shift, length, hash, id, inside ? 1 : 0, index === own.length - 1 ? 1 : 0);
    }
    this.#entries = Int32Array.from(entries);
  }

  /**
   * The first place from `from` to before `to`, in steps of two, with a sequence of what is looked for or with an odd
   * unit; -1 if there is none. Reads units around them as far as the longest word goes.
   */
  next(units: Uint16Array, classes: Classes, from: number, to: number): number {
    let at = from;
    for (;;) {
      at = nextMarked(units, classes, this.#bits, at, to);
      if (at === -1 || this.#isFoundAt(units, classes, at)) return at;
      at += 2;
    }
  }

  /** The same for units that are all ASCII, given as pairs of bytes as well. */
  nextOfPairs(
    units: Uint16Array,
    classes: Classes,
    pairs: Uint16Array,
    both: PairClasses,
    from: number,
    to: number,
  ): number {
    let at = from >>> 1;
    const end = (to + 1) >>> 1;
    for (;;) {
      at = nextMarkedPair(pairs, both, this.#bits, at, end);
      if (at === -1) return -1;
      if (this.#isFoundAt(units, classes, at * 2)) return at * 2;
      at += 1;
    }
  }

  #isFoundAt(units: Uint16Array, classes: Classes, at: number): boolean {
    this.count = 0;
    const gram = gramAt(units, classes, at);
    let slot = slotOf(gram);
    while (this.#keys[slot] !== gram) {
      // Marked, and no piece of anything: it has an odd unit.
      if (this.#keys[slot] === -1) return true;
      slot = (slot + 1) % SLOTS;
    }
    const entries = this.#entries;
    let entry = (this.#firsts[slot] ?? 0) - FIELDS;
    do {
      entry += FIELDS;
      const start = at + (entries[entry + SHIFT] ?? 0);
      const end = start + (entries[entry + LENGTH] ?? 0);
      if (
        entries[entry + INSIDE] === 0 &&
        !(isEdge(classes, units[start - 1] ?? 0) && isEdge(classes, units[end] ?? 0))
      )
        continue;
      if (hashOfClasses(units, classes, MERGED, start, end) !== entries[entry + HASH]) continue;
      this.ids[this.count] = entries[entry + ID] ?? 0;
      this.starts[this.count] = start;
      this.count += 1;
    } while (entries[entry + LAST] === 0);
    return this.count > 0 || hasOdd(gram);
  }
}

function slotOf(gram: number): number {
  return Math.imul(gram, 0x9e3779b1) >>> 17;
}

function hasOdd(gram: number): boolean {
  return (gram & ODD) === ODD || ((gram >>> 5) & ODD) === ODD || ((gram >>> 10) & ODD) === ODD || gram >>> 15 === ODD;
}

function hashOfClasses(units: Uint16Array, classes: Classes, merged: Uint8Array, from: number, to: number): number {
  let hash = 0;
  for (let at = from; at < to; at += 1) hash = (Math.imul(hash, 31) + (merged[classes[units[at] ?? 0] ?? 0] ?? 0)) | 0;
  return hash;
}

/** A word can start or end beside it. */
function isEdge(classes: Classes, unit: number): boolean {
  const own = classes[unit] ?? 0;
  return own === BETWEEN || own === SIGN || own === ODD;
}

/** The sequence at a place. */
function gramAt(units: Uint16Array, classes: Classes, at: number): number {
  let gram = 0;
  for (let index = at; index < at + SIZE; index += 1) gram = (gram << BITS) | (classes[units[index] ?? 0] ?? 0);
  return gram;
}

/** All sequences of a pattern. */
function expand(pattern: Pattern): number[] {
  let grams = [0];
  for (const classes of pattern) grams = grams.flatMap((gram) => classes.map((own) => (gram << BITS) | own));
  return grams;
}

/** From common to rare; "i" is also "l". */
const LETTERS = "etaoinsrhldcumfpgwybvkxjqz";
/** Sequences that prose and programs are full of, with "_" for what is no letter. Which ones are here decides on speed only. */
const COMMON = new Set(
  (
    "_the the_ _con _com tion ion_ ing_ _in_ _wor work cons ampl ple_ exam and_ _use http _and ode_ name ser_ user _for ame_ code port " +
    "for_ _to_ ems_ item ent_ lor_ onse ort_ atio onst ted_ url_ ice_ nst_ _rep ctio _of_ lit_ comm age_ _par _ret from _tag _fro one_ " +
    "ail_ mail rror erro ring hash ions _pro tags ext_ rom_ ptio ate_ _by_ ons_ able _thi est_ _sta ble_ this his_ ror_ stru hat_ _err " +
    "_was conf requ _per type ende rly_ _new _tha uest new_ ques der_ les_ eque _req that _if_ sed_ turn ile_ ding our_ _str _do_ _inc " +
    "_get tabl retu all_ tati null _you ure_ ber_ temp nder urn_ sion _tab tate use_ _typ _min _key _reg list _exp get_ ther text epre " +
    "warn sect _dis _is_ _tem opti cont ect_ unt_ _on_ _exe _res read inst ecte ight ute_ _ad_ _rea _ins fig_ info mini ces_ _opt stri " +
    "_not _lis low_ key_ _inf cept _qui cing sequ repr ject _ope arn_ als_ por_ oken toke _sho _pre _cha ers_ ress ment ence ally _app " +
    "ated ting ally_ valu alue lue_ func unct ncti expo xpor file _fil _val self clas lass _cla _int _obj ring_ prop rope _set _max _cre " +
    "only nly_ _bet dolo mpor _pri _sec _cal call _tex _lin line ine_ _end"
  ).split(" "),
);

/** The start of the sequence that is met least, among every second one. */
function rarest(pattern: Pattern, parity: number): number {
  let best = parity;
  let least = Number.POSITIVE_INFINITY;
  for (let at = parity; at + SIZE <= pattern.length; at += 2) {
    const own = commonness(pattern, at);
    if (own < least) [best, least] = [at, own];
  }
  return best;
}

function commonness(pattern: Pattern, from: number): number {
  let text = "";
  let sum = 0;
  for (let at = from; at < from + SIZE; at += 1) {
    const classes = pattern[at] ?? ANY;
    const own = classes[0] ?? BETWEEN;
    const letter = classes.length <= EDGE.length && own > 0 && own <= 26 ? String.fromCharCode(96 + own) : "_";
    text += letter;
    sum += letter === "_" ? 24 : 26 - LETTERS.indexOf(letter);
  }
  return COMMON.has(text) ? sum + 100 : sum;
}

/** Classes of two characters at once, for texts of single bytes. */
export type PairClasses = Uint16Array;

/** By two bytes as this machine reads them as one number. */
export function pairClasses(classes: Classes): PairClasses {
  const pairs = new Uint16Array(0x10000);
  const both = new Uint16Array(1);
  const bytes = new Uint8Array(both.buffer);
  for (let first = 0; first < 0x80; first += 1) {
    for (let second = 0; second < 0x80; second += 1) {
      bytes[0] = first;
      bytes[1] = second;
      pairs[both[0] ?? 0] = ((classes[first] ?? 0) << BITS) | (classes[second] ?? 0);
    }
  }
  return pairs;
}

/**
 * The same search over pairs of bytes: half the steps, and four of them at a time. Reads up to four pairs behind `to`.
 */
function nextMarkedPair(pairs: Uint16Array, classes: PairClasses, bits: Uint32Array, from: number, to: number): number {
  let pair = classes[pairs[from] ?? 0] ?? 0;
  for (let at = from; at < to; at += 4) {
    const one = classes[pairs[at + 1] ?? 0] ?? 0;
    const two = classes[pairs[at + 2] ?? 0] ?? 0;
    const three = classes[pairs[at + 3] ?? 0] ?? 0;
    const four = classes[pairs[at + 4] ?? 0] ?? 0;
    const first = (pair << (2 * BITS)) | one;
    const second = (one << (2 * BITS)) | two;
    const third = (two << (2 * BITS)) | three;
    const fourth = (three << (2 * BITS)) | four;
    const marked =
      (((bits[first >>> 5] ?? 0) >>> (first & 31)) |
        ((bits[second >>> 5] ?? 0) >>> (second & 31)) |
        ((bits[third >>> 5] ?? 0) >>> (third & 31)) |
        ((bits[fourth >>> 5] ?? 0) >>> (fourth & 31))) &
      1;
    if (marked !== 0) {
      if (isMarked(bits, first)) return at;
      if (at + 1 < to && isMarked(bits, second)) return at + 1;
      if (at + 2 < to && isMarked(bits, third)) return at + 2;
      if (at + 3 < to && isMarked(bits, fourth)) return at + 3;
    }
    pair = four;
  }
  return -1;
}

function isMarked(bits: Uint32Array, gram: number): boolean {
  return (((bits[gram >>> 5] ?? 0) >>> (gram & 31)) & 1) !== 0;
}

/** A function of its own with all it needs as parameters: the engine makes the tightest loop of that. */
function nextMarked(units: Uint16Array, classes: Classes, bits: Uint32Array, from: number, to: number): number {
  let pair = ((classes[units[from] ?? 0] ?? 0) << BITS) | (classes[units[from + 1] ?? 0] ?? 0);
  for (let at = from; at < to; at += 2) {
    const next = ((classes[units[at + 2] ?? 0] ?? 0) << BITS) | (classes[units[at + 3] ?? 0] ?? 0);
    const gram = (pair << (2 * BITS)) | next;
    if (((bits[gram >>> 5] ?? 0) & (1 << (gram & 31))) !== 0) return at;
    pair = next;
  }
  return -1;
}
