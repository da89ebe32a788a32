/** JSON on one line means the same to YAML, with three exceptions, which are left to the YAML parser. */

const DEEPEST = 32;
const STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

/**
 * @returns undefined if it is no list or object, or holds what needs more care: doubled keys, which JSON would drop in
 * silence; numbers, whose spelling may matter; `__proto__`.
 */
export function parseOneLineJson(text: string): unknown {
  if (!/^[[{]/.test(text) || text.includes("__proto__")) return undefined;
  let keys = 0;
  const rest = text.replaceAll(STRING, (_, colon: string | undefined) => {
    if (colon !== undefined) keys += 1;
    return "";
  });
  if (/\d/.test(rest)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return countKeys(value, 0) === keys ? value : undefined;
  } catch {
    return undefined;
  }
}

/** NaN, which equals nothing, if it is nested beyond reason. */
function countKeys(value: unknown, depth: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (depth > DEEPEST) return Number.NaN;
  const below = Object.values(value).reduce<number>((sum, item) => sum + countKeys(item, depth + 1), 0);
  return Array.isArray(value) ? below : below + Object.keys(value).length;
}
