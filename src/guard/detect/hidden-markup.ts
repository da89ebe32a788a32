/** Parts of a page that a person does not see: comments and elements styled away. */
import { matchesAt } from "./matches.ts";
import type { Steps } from "./steps.ts";

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** An opening tag whose attributes hide it. Attributes are read up to 300 characters. */
const HIDING_TAG = /<([a-z][a-z0-9]{0,15})\b([^<>]{1,300})>/y;
const HIDING_STYLE =
  /display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0(?![.\d])|font-size\s{0,3}:\s{0,3}(?:0|1px)(?![.\d])|(?:left|top|text-indent)\s{0,3}:\s{0,3}-\d{3,6}|(?:height|width)\s{0,3}:\s{0,3}0(?![.\d])|(?<![-\w])color\s{0,3}:\s{0,3}(?:white|transparent|#fff(?:fff)?\b|rgba?\(255, ?255, ?255)/;
const HIDING_ATTRIBUTE = /(?:^|\s)(?:hidden(?=$|\s|=)|aria-hidden="?true)/;
/** How far an invisible element is followed when its end is looked for. */
const ELEMENT_REACH = 4_000;
const COMMENT_REACH = 20_000;

/** Spans in the order of their starts. `tags` are the indices of all "<". */
export function* hiddenSpans(text: string, tags: readonly number[]): Steps<Span[]> {
  const spans = [...comments(text, "<!--", "-->"), ...(yield* invisibleElements(text, tags))];
  return spans.toSorted((a, b) => a.start - b.start);
}

function comments(text: string, open: string, close: string): Span[] {
  const spans: Span[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const end = text.indexOf(close, start + open.length);
    // An unclosed comment hides the rest of a page.
    if (end === -1) {
      spans.push({ start, end: Math.min(text.length, start + COMMENT_REACH) });
      break;
    }
    spans.push({ start, end: Math.min(end + close.length, start + COMMENT_REACH) });
    start = text.indexOf(open, end + close.length);
  }
  return spans;
}

function* invisibleElements(text: string, tags: readonly number[]): Steps<Span[]> {
  const spans: Span[] = [];
  let from = 0;
  yield* matchesAt(HIDING_TAG, text, tags, ([tag, name = "", attributes = ""], start) => {
    if (start < from || name === "input" || name === "svg" || name === "path") return;
    const styled = attributes.includes("style") && HIDING_STYLE.test(attributes);
    if (!styled && !HIDING_ATTRIBUTE.test(attributes)) return;
    const body = start + tag.length;
    const closing = text.slice(body, body + ELEMENT_REACH).indexOf(`</${name}`);
    const end = closing === -1 ? Math.min(text.length, body + ELEMENT_REACH) : body + closing;
    spans.push({ start, end });
    from = end;
  });
  return spans;
}

/** The first span that holds the offset. `spans` are few or the offset is asked for in order; a binary search does. */
export function spanAt(spans: readonly Span[], offset: number): Span | undefined {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle]?.start ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  // Comments and elements can overlap: the two spans that start last before the offset are enough.
  for (let index = low - 1; index >= 0 && index >= low - 2; index -= 1) {
    const span = spans[index];
    if (span !== undefined && offset < span.end) return span;
  }
  return undefined;
}
