/** Lines, indents and comments of a text, by offset. */

export type Comments = "slashes" | "hashes";

/** The text with the part between two offsets replaced. */
export function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}

/** The line break that a text uses. */
export function lineBreakOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** The white space that the line of an offset begins with. */
export function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? "";
}

export function lineStart(text: string, offset: number): number {
  // A negative second argument would count as 0 and find a break at 0.
  return offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
}

/** Where the line of an offset ends, before its line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf("\n", offset);
  if (at === -1) return text.length;
  return at > offset && text[at - 1] === "\r" ? at - 1 : at;
}

/** The offset after a line break at `offset`; the same offset if there is none. */
export function pastLineBreak(text: string, offset: number): number {
  if (text.startsWith("\r\n", offset)) return offset + 2;
  return text[offset] === "\n" ? offset + 1 : offset;
}

/** Where the line break that ends before `offset` begins; the same offset if there is none. */
export function beforeLineBreak(text: string, offset: number): number {
  if (offset === 0 || text[offset - 1] !== "\n") return offset;
  return text[offset - 2] === "\r" ? offset - 2 : offset - 1;
}

/** Whether only white space precedes the offset on its line, and the line is not the first. */
export function startsLine(text: string, offset: number): boolean {
  const start = lineStart(text, offset);
  return start > 0 && text.slice(start, offset).trim() === "";
}

/** The offset after the comments on the rest of the line; the same offset if there are none or they continue below. */
export function pastLineComments(text: string, from: number, comments: Comments): number {
  const end = lineEnd(text, from);
  let past = from;
  for (;;) {
    const at = past + (/^[ \t]*/.exec(text.slice(past, end))?.[0].length ?? 0);
    if (text.startsWith(comments === "slashes" ? "//" : "#", at)) return end;
    const close = comments === "slashes" && text.startsWith("/*", at) ? text.indexOf("*/", at + 2) : -1;
    if (close === -1 || close > end) return past;
    past = close + 2;
  }
}

/** Whether the last thing in a stretch of white space, commas and comments is a comment that ends with its line. */
export function endsInLineComment(gap: string, comments: Comments): boolean {
  if (comments === "hashes") return gap.slice(gap.lastIndexOf("\n") + 1).includes("#");
  const rest = gap.replaceAll(/\/\*[^]*?\*\/|\/\/[^\n]*\n/g, "");
  return rest.includes("//");
}
