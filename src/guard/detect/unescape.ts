/** Results are often JSON as text: what its strings say is behind escapes, and so is what they hide. */

export interface Unescaped {
  readonly text: string;
  originalAt(index: number): number;
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  '"': '"',
  "/": "/",
  "\\": "\\",
};
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|([ntrbf"/\\]))/g;

/** The text with its JSON escapes resolved; undefined where it is no JSON document or has none. */
export function unescaped(text: string): Unescaped | undefined {
  if (!looksLikeJson(text) || !text.includes("\\")) return undefined;
  const parts: string[] = [];
  /** Where a part starts, in the new text and in the original; parts run one to one. */
  const starts: number[] = [];
  const origins: number[] = [];
  let length = 0;
  let from = 0;
  const push = (part: string, origin: number): void => {
    starts.push(length);
    origins.push(origin);
    parts.push(part);
    length += part.length;
  };
  for (const found of text.matchAll(ESCAPE)) {
    if (found.index > from) push(text.slice(from, found.index), from);
    const [escape, hex, sign = ""] = found;
    push(hex === undefined ? (ESCAPES[sign] ?? sign) : String.fromCharCode(Number.parseInt(hex, 16)), found.index);
    from = found.index + escape.length;
  }
  if (from === 0) return undefined;
  push(text.slice(from), from);
  return {
    text: parts.join(""),
    originalAt(index) {
      if (index >= length) return text.length;
      const part = lastAtOrBefore(starts, index);
      return (origins[part] ?? 0) + index - (starts[part] ?? 0);
    },
  };
}

export function looksLikeJson(text: string): boolean {
  const start = text.slice(0, 200).trimStart()[0];
  const end = text.slice(-200).trimEnd().at(-1);
  return (start === "{" && end === "}") || (start === "[" && end === "]");
}

function lastAtOrBefore(starts: readonly number[], index: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? 0) <= index) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
