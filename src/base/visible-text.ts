/**
 * Makes untrusted text safe to show. Characters that no font shows as themselves can drive a terminal, reorder a line or
 * carry words that only a model reads.
 */

/**
 * Controls, formats, lone surrogates, private use, and what a renderer leaves out: fillers, variation selectors, tags. The
 * few marks of the format class that are visible, such as the Arabic number sign, are not among them.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800](?<![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])/gu;

/** Most texts have none of these: told several times as fast. */
const UNUSUAL =
  /[^\t\n\r\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u0400-\u0557\u2010-\u2027\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]/;

/** `a\u200bb` becomes `a\u{200B}b`. Tab and newlines are layout and stay; a joiner between the parts of an emoji does not. */
export function showHidden(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  let shown = "";
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    plainUnits[unit] ||= showCharacter(text.charAt(at)) === text.charAt(at) ? 1 : 2;
    if (plainUnits[unit] === 1) continue;
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    shown += text.slice(from, at) + showCharacter(character);
    from = at + character.length;
    at = from - 1;
  }
  return shown + text.slice(from);
}

/** By unit, as far as they were met: 1 for one that is shown as it is. */
const plainUnits = new Uint8Array(0x10000);
/** How others are shown; a pattern with the properties of characters takes much longer. */
const shownCharacters = new Map<string, string>();
const MAX_SHOWN = 4_096;

function showCharacter(character: string): string {
  let shown = shownCharacters.get(character);
  if (shown === undefined) {
    const isHidden = character.search(HIDDEN) !== -1 && !"\n\t\r".includes(character);
    shown = isHidden ? codePointText(character) : character;
    if (shownCharacters.size < MAX_SHOWN) shownCharacters.set(character, shown);
  }
  return shown;
}

/**
 * As a terminal or a pipe gets it: hidden characters as `\u{…}`, lines and tabs as they are. Joiners and emoji styles stay
 * where writing needs them, so that Persian, Hindi and emoji remain readable.
 */
export function terminalText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(HIDDEN, (character, offset: number, whole: string) =>
      character === "\n" || character === "\t" || isNeeded(character, offset, whole)
        ? character
        : codePointText(character),
    );
}

/** The same on one line: untrusted text cannot start a new line. */
export function terminalLine(text: string): string {
  return terminalText(text)
    .replaceAll(/(?<!\s)\s*\n\s*/g, " ")
    .replaceAll("\t", " ");
}

/** JSON whose hidden characters are escaped, so that parsing returns the same value. */
export function terminalJson(value: unknown, indent?: number): string {
  // Undefined for what JSON has no form for.
  const text: string | undefined = JSON.stringify(value, null, indent);
  return escapeJson(text ?? "null");
}

/** JSON text in which hidden characters are escaped. */
export function escapeJson(text: string): string {
  // A lock file is megabytes of it, in lines.
  if (!UNUSUAL.test(text) && !text.includes("\r")) return text;
  return text.replace(HIDDEN, (character) => {
    // Between the parts of the text; inside a string JSON has escaped them.
    if (character === "\n" || character === "\t") return character;
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  });
}

/** Joiners and the styles of emoji. */
const SOMETIMES_NEEDED: ReadonlySet<string> = new Set(["\u200c", "\u200d", "\ufe0e", "\ufe0f"]);
const EMOJI_BEFORE = /\p{Extended_Pictographic}[\u{1f3fb}-\u{1f3ff}]?\ufe0f?$/u;
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u;
const STYLED_BEFORE = /\p{Extended_Pictographic}$/u;
const KEYCAP_BEFORE = /[0-9#*]$/;
/** Scripts in which a joiner is spelling. */
const JOINED =
  "(?=[\\p{L}\\p{M}])[\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gurmukhi}" +
  "\\p{Script=Gujarati}\\p{Script=Oriya}\\p{Script=Tamil}\\p{Script=Telugu}\\p{Script=Kannada}\\p{Script=Malayalam}" +
  "\\p{Script=Sinhala}\\p{Script=Khmer}\\p{Script=Myanmar}]";
const JOINED_BEFORE = new RegExp(`${JOINED}$`, "u");
const JOINED_AFTER = new RegExp(`^${JOINED}`, "u");
/** Code units of the longest thing that is looked for on one side. */
const NEAR = 6;

function isNeeded(character: string, offset: number, whole: string): boolean {
  if (!SOMETIMES_NEEDED.has(character)) return false;
  const before = whole.slice(Math.max(0, offset - NEAR), offset);
  const after = whole.slice(offset + 1, offset + 1 + NEAR);
  if (character === "\ufe0e" || character === "\ufe0f") {
    return STYLED_BEFORE.test(before) || (KEYCAP_BEFORE.test(before) && after.startsWith("\u20e3"));
  }
  if (character === "\u200d" && EMOJI_BEFORE.test(before) && EMOJI_AFTER.test(after)) return true;
  return JOINED_BEFORE.test(before) && JOINED_AFTER.test(after);
}

function codePointText(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}}`;
}

const EXCERPT_LENGTH = 160;

/** The span on one line, shortened in the middle of nothing: its start is what a reader recognises. */
export function excerptOf(text: string, start: number, end: number): string {
  const cut = end - start > EXCERPT_LENGTH;
  const shown = showHidden(text.slice(start, cut ? start + EXCERPT_LENGTH : end)).replace(/\s+/g, " ");
  if (shown.length <= EXCERPT_LENGTH) return cut ? `${shown}…` : shown;
  return `${shown.slice(0, EXCERPT_LENGTH)}…`;
}
