/** Long runs of certain characters, found by looking at one character of many. */

/** One entry for each ASCII character. */
export type CharacterSet = Uint8Array;

export interface Run {
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

/** The first of the longest runs of at least `shortest` characters that starts at `from` or later. */
export function nextRun(text: string, set: CharacterSet, shortest: number, from: number): Run | undefined {
  // A run that long covers one of the places that are this far apart.
  for (let at = from + shortest - 1; at < text.length; at += shortest) {
    if (!isIn(set, text.charCodeAt(at))) continue;
    let start = at;
    while (start > from && isIn(set, text.charCodeAt(start - 1))) start -= 1;
    const end = runEnd(text, set, at);
    if (end - start >= shortest) return { start, end };
    at = end;
  }
  return undefined;
}

export function runEnd(text: string, set: CharacterSet, from: number): number {
  let end = from;
  while (end < text.length && isIn(set, text.charCodeAt(end))) end += 1;
  return end;
}
