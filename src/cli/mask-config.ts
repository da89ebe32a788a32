/** The text of a config with all in it masked that may be secret. It keeps its lines, so that it can be shown by line. */
import { jsonScalars, type PlacedScalar } from "../files/edit/scalars.ts";
import { isPlainText, looksLikeCredential } from "../secrets/looks-like-secret.ts";
import { MASK } from "../secrets/mask.ts";
import { hideShapes, maskValue } from "./mask-value.ts";

/** Gives the values of a text, or throws where it cannot. */
export type ReadScalars = (text: string) => readonly PlacedScalar[];

export function maskConfig(original: string, read: ReadScalars = jsonScalars): string {
  const text = original.replace(/^\uFEFF/, "");
  let masked = "";
  let position = 0;
  let previous: PlacedScalar | undefined;
  for (const scalar of scalarsOf(text, read)) {
    const { path, start, end, value } = scalar;
    if (start < position) continue;
    const before = previous !== undefined && isNext(previous, scalar) ? previous.value : undefined;
    masked += maskComments(text.slice(position, start));
    masked += written(text.slice(start, end), value, maskValue(value, { path, before }));
    position = end;
    previous = scalar;
  }
  return masked + maskComments(text.slice(position));
}

/** A text that cannot be read is masked like a comment, which leaves less of it. */
function scalarsOf(text: string, read: ReadScalars): readonly PlacedScalar[] {
  try {
    return read(text);
  } catch {
    return [];
  }
}

/** Whether one follows the other in a list. */
function isNext(one: PlacedScalar, other: PlacedScalar): boolean {
  const [at, then] = [one.path.at(-1), other.path.at(-1)];
  if (typeof at !== "number" || then !== at + 1 || one.path.length !== other.path.length) return false;
  return one.path.slice(0, -1).every((step, index) => step === other.path[index]);
}

/** The masked value in the place of the one that was written. */
function written(raw: string, value: string, masked: string): string {
  if (masked === value) return raw;
  if (raw.includes("\n")) return raw.replaceAll(/[^\s][^\r\n]*/g, MASK);
  const quote = /^["']/.exec(raw)?.[0];
  if (quote === undefined) return masked.replaceAll(/[\r\n]+/g, " ");
  const escaped = JSON.stringify(masked).slice(1, -1);
  return quote + (quote === '"' ? escaped : escaped.replaceAll('\\"', '"')) + quote;
}

const KEY_BLOCK = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z -]*|$)/g;
/** In comments there may be entries that somebody has switched off. */
const QUOTED = /([:=][ \t]*)(["'])((?:(?!\2)[^\\\r\n]|\\.)*)\2/g;
const OPTION = /((["'])--?([A-Za-z][\w-]{0,63})\2[ \t]*,[ \t]*)(["'])((?:(?!\4)[^\\\r\n]|\\.)*)\4/g;
const NAMED = /([A-Za-z][\w.-]{0,63})(["']?[ \t]*[:=][ \t]*)([^\s"',{}[\]]+)/g;

/** What stands between values: keys, brackets and comments. */
function maskComments(text: string): string {
  if (!/\S/.test(text)) return text;
  return text
    .replace(KEY_BLOCK, (block) => block.replaceAll(/[^\s][^\r\n]*/g, MASK))
    .replace(QUOTED, (whole, start: string, quote: string, value: string) =>
      isPlainText(value) ? `${start}${quote}${MASK}${quote}` : whole,
    )
    .replace(OPTION, (whole, start: string, _quote, name: string, quote: string, value: string) =>
      looksLikeCredential(name) && isPlainText(value) ? `${start}${quote}${MASK}${quote}` : whole,
    )
    .replace(NAMED, (whole, name: string, sign: string, value: string) =>
      looksLikeCredential(name) && isPlainText(value) ? `${name}${sign}${MASK}` : whole,
    )
    .split("\n")
    .map(hideShapes)
    .join("\n");
}
