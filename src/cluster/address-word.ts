/**
 * Any text as one word of a subject or key: NATS cuts at dots, reads `*` and `>` as wildcards and allows no spaces. Injective,
 * so that two names never share an address: what is not a letter, digit or dash becomes `_` and the two hex digits of each
 * of its bytes.
 *
 * `addressWord("a.b") === "a_2eb"`
 */
export function addressWord(text: string): string {
  if (text === "") return "_";
  return text.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** The text that `addressWord` made the word of. */
export function textOfWord(word: string): string {
  if (word === "_") return "";
  try {
    return decodeURIComponent(word.replaceAll("_", "%"));
  } catch {
    // Not one of ours.
    return word;
  }
}
