/** Which regular expressions a provider can read; for one that it cannot, it refuses the whole request. */
import { MAX_PATTERN_LENGTH } from "./schema-size.ts";

/** Those that were found to exist, such as `L` and `Script=Greek`; there are some thousand. */
const properties = new Set<string>();

/**
 * As JSON Schema wants it: ECMA-262 with the `u` flag. Each `\p{…}` takes a tenth of a millisecond to read, so it is looked
 * at once and `\d`, which may stand wherever it may, is read in its place.
 */
export function isRegex(source: string): boolean {
  if (source.length > MAX_PATTERN_LENGTH) return false;
  let isKnown = true;
  const cheap = source.replaceAll(/\\(?:[pP]\{([^{}]*)\}|.)/gsu, (escaped, property: string | undefined) => {
    if (property === undefined) return escaped;
    isKnown &&= isProperty(property);
    return "\\d";
  });
  return isKnown && canRead(cheap);
}

function isProperty(name: string): boolean {
  if (properties.has(name)) return true;
  const isOne = canRead(`\\p{${name}}`);
  if (isOne) properties.add(name);
  return isOne;
}

function canRead(source: string): boolean {
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
