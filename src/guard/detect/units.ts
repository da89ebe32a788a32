/** What is known of each UTF-16 unit as part of a word. */

export const LETTER = 1;
export const DIGIT = 2;
export const OTHER = 4;
/** Can stand inside a word although it is no letter. */
export const INNER = 8;
/** Digits and signs that are written for letters. */
export const LOOKS_LIKE_LETTER = 16;
export const LATIN = 32;
/** Can end a sentence. */
export const STOP = 64;
export const UNDERSCORE = 128;

/**
 * Filled as units are met: all of Unicode at once would cost every start of the program. The loop over all characters
 * reads it itself, and calls `kindOf` where it meets a zero.
 */
export const KINDS = new Uint8Array(0x10000);

export function kindOf(unit: number): number {
  const known = KINDS[unit] ?? 0;
  return known === 0 ? learn(unit) : known;
}

function learn(unit: number): number {
  const character = String.fromCharCode(unit);
  let kind = OTHER;
  // Half of a surrogate pair counts as a letter: the scripts up there are letters more often than not.
  if (/[\p{L}_]/u.test(character) || (unit >= 0xd800 && unit <= 0xdfff)) kind = LETTER;
  else if (/\p{N}/u.test(character)) kind = DIGIT;
  if (/['@$]/.test(character)) kind |= INNER;
  if (/[013457@$]/.test(character)) kind |= LOOKS_LIKE_LETTER;
  if (/[a-z]/.test(character)) kind |= LATIN;
  if (/[\n|;。！？.!?"]/.test(character)) kind |= STOP;
  if (character === "_") kind |= UNDERSCORE;
  KINDS[unit] = kind;
  return kind;
}

export function isSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return /\s/.test(String.fromCharCode(unit));
}
