/** Results are often JSON as text: what its strings say is behind escapes, and so is what they hide. */
import { lastAtOrBefore } from "./sorted.ts";
import { finish, type Steps } from "./steps.ts";

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
const HEX = /[0-9a-fA-F]{4}/y;
const ESCAPE_COST = 60;

/** The text with its JSON escapes resolved; undefined where it is no JSON document or has none. */
export function unescaped(text: string): Unescaped | undefined {
  return finish(unescapedInSteps(text));
}

export function* unescapedInSteps(text: string): Steps<Unescaped | undefined> {
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
  let escapes = 0;
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", Math.max(from, at + 1))) {
    if ((escapes += 1) % 1024 === 0) yield 1024 * ESCAPE_COST;
    const plain = ESCAPES[text[at + 1] ?? ""] ?? fromHex(text, at);
    if (plain === undefined) continue;
    if (at > from) push(text.slice(from, at), from);
    push(plain, at);
    from = at + (text[at + 1] === "u" ? 6 : 2);
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

function fromHex(text: string, at: number): string | undefined {
  if (text[at + 1] !== "u") return undefined;
  HEX.lastIndex = at + 2;
  return HEX.test(text) ? String.fromCharCode(Number.parseInt(text.slice(at + 2, at + 6), 16)) : undefined;
}
