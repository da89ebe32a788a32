/** A tool's name as words: `readTextFile`, `read_text_file` and `read-text-file` say the same. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
}

/** One line of a server's or a model's words, for people: no terminal codes and no hidden characters. */
export function oneLine(text: string, longest: number): string {
  const clean = text
    .slice(0, longest * 4)
    .replace(/[\p{Cf}\p{Cs}\p{Co}]/gu, "")
    .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return clean.length <= longest ? clean : `${clean.slice(0, Math.max(0, longest - 1)).toWellFormed()}…`;
}
