/** Long runs of certain characters, found by looking at one character of many. */

/** One entry for each ASCII character. */
export type CharacterSet = Uint8Array;

interface Run {
  readonly start: number;
  readonly end: number;
}

/** `characters` is the inside of a class of a regular expression. */
export function characterSet(characters: string): CharacterSet {
  const pattern = new RegExp(`[${characters}]`);
  return Uint8Array.from({ length: 128 }, (_, unit) => (pattern.test(String.fromCharCode(unit)) ? 1 : 0));
}

export function isIn(set: CharacterSet, unit: number): boolean {
  return unit < 128 && set[unit] === 1;
}

/** For the units of a text: a list of numbers is walked several times as fast as a text. A long text gets its own. */
const SHARED = 64 * 1024;
const shared = new Uint16Array(SHARED);
const sharedBytes = Buffer.from(shared.buffer);

/** The units of a text, with a 0 behind them. To be used before any other text is read. */
export function unitsOf(text: string): Uint16Array {
  const { length } = text;
  const units = length < SHARED ? shared : new Uint16Array(length + 1);
  (length < SHARED ? sharedBytes : Buffer.from(units.buffer)).write(text, "utf16le");
  units[length] = 0;
  return units;
}

/**
 * Tells which characters a text has, for several patterns of one unit each, by one look at each unit: a bit for each pattern, the lowest
 * for the first.
 */
export function kindsBy(patterns: readonly RegExp[]): (text: string) => number {
  /** By unit, as far as they were met. */
  const kinds = new Uint16Array(0x10000);
  const learn = (unit: number): number => {
    let kind = 1 << 15;
    for (const [bit, pattern] of patterns.entries()) if (pattern.test(String.fromCharCode(unit))) kind |= 1 << bit;
    kinds[unit] = kind;
    return kind;
  };
  return (text) => {
    const units = unitsOf(text);
    let all = 0;
    for (let at = 0; at < text.length; at += 1) all |= kinds[units[at] ?? 0] || learn(units[at] ?? 0);
    return all;
  };
}

/** All of the longest runs of at least `shortest` characters. */
export function runsOf(units: Uint16Array, length: number, set: CharacterSet, shortest: number): Run[] {
  const runs: Run[] = [];
  for (let from = 0, at = shortest - 1; at < length;) {
    let start = at + 1;
    while (start > from && isIn(set, units[start - 1] ?? 0)) start -= 1;
    if (at + 1 - start >= shortest) {
      let end = at + 1;
      while (end < length && isIn(set, units[end] ?? 0)) end += 1;
      runs.push({ start, end });
      from = start = end;
    }
    // No run begins before the character that ends this one.
    at = start + shortest - 1;
  }
  return runs;
}

/** All runs of at least `shortest` characters that hold one of the signs, which are made of such characters. */
export function* runsAround(
  text: string,
  signs: readonly string[],
  set: CharacterSet,
  shortest: number,
): Generator<Run, void> {
  let from = 0;
  // The next place of each; one that is not found is not looked for again.
  const places = signs.map((sign) => text.indexOf(sign));
  for (;;) {
    let at = -1;
    for (const [index, sign] of signs.entries()) {
      let place = places[index] ?? -1;
      if (place !== -1 && place < from) place = places[index] = text.indexOf(sign, from);
      if (place !== -1 && (at === -1 || place < at)) at = place;
    }
    if (at === -1) return;
    const start = runStart(text, set, at, from);
    from = runEnd(text, set, at);
    if (from - start >= shortest) yield { start, end: from };
  }
}

function runStart(text: string, set: CharacterSet, at: number, limit: number): number {
  let start = at;
  while (start > limit && isIn(set, text.charCodeAt(start - 1))) start -= 1;
  return start;
}

/** Runs of words end soon. One that does not is copied out in pieces: a list of bytes is walked many times as fast. */
const SOON = 256;
const PIECE = 8_192;
/** With some room, so that a character of several bytes shows by the length of the piece. */
const bytes = Buffer.alloc(PIECE + 8);

export function runEnd(text: string, set: CharacterSet, from: number): number {
  const soon = Math.min(text.length, from + SOON);
  let end = from;
  while (end < soon && isIn(set, text.charCodeAt(end))) end += 1;
  if (end < soon) return end;
  while (end < text.length) {
    const piece = text.slice(end, end + PIECE);
    // What is no ASCII ends the run, and is in this piece.
    if (bytes.write(piece, "utf8") !== piece.length) break;
    const inside = prefixLength(bytes, set, piece.length);
    end += inside;
    if (inside < piece.length) return end;
  }
  while (end < text.length && isIn(set, text.charCodeAt(end))) end += 1;
  return end;
}

/** Told by writing it out, which is many times as fast as a pattern. */
export function isAscii(text: string): boolean {
  for (let from = 0; from < text.length; from += PIECE) {
    const piece = text.slice(from, from + PIECE);
    if (bytes.write(piece, "utf8") !== piece.length) return false;
  }
  return true;
}

/** How many bytes of the list, which are all ASCII, are in the set. All as parameters: that makes the tightest loop. */
function prefixLength(bytes: Uint8Array, set: CharacterSet, length: number): number {
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    const first = (set[bytes[at] ?? 0] ?? 0) & (set[bytes[at + 1] ?? 0] ?? 0);
    const second = (set[bytes[at + 2] ?? 0] ?? 0) & (set[bytes[at + 3] ?? 0] ?? 0);
    if ((first & second) === 0) break;
  }
  while (at < length && set[bytes[at] ?? 0] === 1) at += 1;
  return at;
}
