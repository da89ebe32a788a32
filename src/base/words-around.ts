/** Letters, and words with a typing error beside a place in a text. */
import { isOneEditAway } from "./near-matches.ts";

interface Span {
  readonly start: number;
  readonly end: number;
}

/** By unit, as far as they were met: 1 for a letter, 2 for none. */
const letters = new Uint8Array(0x10000);

/** A digit is none: "1." before a word is a number. */
export function isLetter(unit: number): boolean {
  const known = letters[unit] ?? 0;
  return (known === 0 ? (letters[unit] = /\p{L}/u.test(String.fromCharCode(unit)) ? 1 : 2) : known) === 1;
}

/** Passed over as short ones are. */
const LONG_FILLERS = ["todas", "todos", "toutes", "tutte"];
/** Behind the letters that these words are made of. */
const NOT_OURS = 0x500;
const isJoint = (unit: number): boolean => unit === 0x20 || unit === 0x2d || unit === 0x5f;

/** The next word before a place, over up to three short ones, if it is one of the words with a typing error. */
export function typoBefore(text: string, before: number, words: readonly string[]): Span | undefined {
  for (let at = before, fillers = 0; fillers < 4; fillers += 1) {
    let end = at;
    while (end > at - 4 && isJoint(text.charCodeAt(end - 1))) end -= 1;
    let start = end;
    while (start > end - 16 && isLetter(text.charCodeAt(start - 1))) start -= 1;
    // The letter of an escape such as `\n` belongs to no word.
    if (end === at || start === end || text[start - 1] === "\\") return undefined;
    if (isTypo(text, start, end, words)) return { start, end };
    if (end - start > 4 && !LONG_FILLERS.includes(text.slice(start, end))) return undefined;
    at = start;
  }
  return undefined;
}

/** The same of the next word behind a place, which may be in front of the ending of a stem. */
export function typoBehind(text: string, behind: number, words: readonly string[]): Span | undefined {
  let gap = behind;
  while (gap < behind + 4 && isLetter(text.charCodeAt(gap))) gap += 1;
  let start = gap;
  while (start < gap + 4 && isJoint(text.charCodeAt(start))) start += 1;
  let end = start;
  while (end < start + 16 && isLetter(text.charCodeAt(end))) end += 1;
  return start > gap && isTypo(text, start, end, words) ? { start, end } : undefined;
}

function isTypo(text: string, start: number, end: number, words: readonly string[]): boolean {
  const length = end - start;
  const isOurs = text.charCodeAt(start) < NOT_OURS && text.charCodeAt(end - 1) < NOT_OURS;
  if (length < 5 || length > 15 || !isOurs) return false;
  let plain: string | undefined;
  for (const known of words) {
    // One error leaves the first two letters as they are, or the last two.
    if (
      Math.abs(known.length - length) > 1 ||
      !(hasPair(text, start, known, 0) || hasPair(text, end - 2, known, known.length - 2))
    )
      continue;
    plain ??= unaccented(text.slice(start, end));
    // "ignores" and "ignored" tell of it, and one command is not all commands.
    const isForm = known === plain || known === `${plain}s` || (plain.startsWith(known) && /[sd]$/.test(plain));
    if (!isForm && isOneEditAway(known, plain)) return true;
  }
  return false;
}

/** In small letters, as far as there are two sorts. */
const hasPair = (text: string, at: number, known: string, from: number): boolean =>
  (text.charCodeAt(at) | 0x20) === known.charCodeAt(from) &&
  (text.charCodeAt(at + 1) | 0x20) === known.charCodeAt(from + 1);

function unaccented(word: string): string {
  return (/[^a-z]/i.test(word) ? word.normalize("NFD").replace(/\p{M}/gu, "") : word).toLowerCase();
}
