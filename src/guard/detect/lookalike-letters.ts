/** Written for `i` and for `l`. */
export const ONE = 0x31;

/** The letter that an ASCII character is written for. */
export const LOOKALIKE_LETTERS: Readonly<Record<string, string>> = {
  "0": "o",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};
