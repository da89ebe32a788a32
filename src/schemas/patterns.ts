/** Which regular expressions a provider can read; for one that it cannot, it refuses the whole request. */

/** As JSON Schema wants it: ECMA-262 with the `u` flag. */
export function isRegex(source: string): boolean {
  try {
    return new RegExp(source, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/**
 * OpenAI compiles patterns with Python's `re`, and some models refuse lookaround besides. What is left out here and
 * would have been fine (such as most back references) costs the model a hint and nothing else.
 */
export function isRegexForOpenAi(source: string): boolean {
  if (!isRegex(source)) return false;
  // Unicode properties, control letters, back references, code points in braces: read otherwise or not at all.
  for (const [, escaped = ""] of source.matchAll(/\\(u\{|.)/gsu)) if (/^(?:[pPck1-9]|u\{)$/.test(escaped)) return false;
  const bare = source.replaceAll(/\\./gsu, "_");
  // Lookaround and named groups, empty classes, counts that overflow.
  return !/\(\?[=!<]|\[\^?\]|\{(?:\d*,)?\d{10}/.test(bare);
}
