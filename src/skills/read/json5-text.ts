/** JSON and JSON5 that stands where YAML was expected. */
import JSON5 from "json5";

const DEEPEST = 64;

/** @returns undefined if the text is no list or object in JSON5. Nesting beyond reason and `__proto__` are left out. */
export function parseJson5(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return plain(JSON5.parse(text), 0);
  } catch {
    return undefined;
  }
}

function plain(value: unknown, depth: number): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEEPEST) return null;
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
  const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item, depth + 1)]));
}
