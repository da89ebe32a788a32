/** Markdown of a model's answer for a terminal, line by line, as it arrives. */
import type { Output } from "../output.ts";

const FENCE = /^ {0,3}(?:```|~~~)/;
const HEADING = /^ {0,3}#{1,6} +(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,}) *$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const BULLET = /^( *)[-*+] +(\[[ xX]\] +)?(.*)$/;
/** Each part ends before the next mark of its kind, so that the work stays linear. */
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\[([^[\]\n]{1,300})\]\(([^()\s]{1,1000})\)/g;

type Painter = Pick<Output, "paint">;

/**
 * Renders one line after the other. The result is for `Output.line`; undefined for a line that is not shown.
 */
export function markdownRenderer(out: Painter): (line: string) => string | undefined {
  let isCode = false;
  return (line) => {
    if (FENCE.test(line)) {
      isCode = !isCode;
      return undefined;
    }
    return isCode ? `  ${out.paint("cyan", line)}` : renderLine(out, line);
  };
}

function renderLine(out: Painter, line: string): string {
  const heading = HEADING.exec(line)?.[1];
  if (heading !== undefined) return out.paint("bold", withoutMarks(heading.replace(/ #+ *$/, "")));
  if (RULE.test(line)) return out.paint("dim", "─".repeat(24));
  const quote = QUOTE.exec(line)?.[1];
  if (quote !== undefined) return `${out.paint("dim", "│")} ${renderInline(out, quote)}`;
  const [, indent, box = "", item] = BULLET.exec(line) ?? [];
  if (item !== undefined) return `${indent ?? ""}• ${box}${renderInline(out, item)}`;
  return renderInline(out, line);
}

function renderInline(out: Painter, text: string): string {
  return text.replace(INLINE, (_whole, code?: string, bold?: string, other?: string, label?: string, url?: string) => {
    if (code !== undefined) return out.paint("cyan", code);
    const strong = bold ?? other;
    if (strong !== undefined) return out.paint("bold", strong);
    return label === url ? (url ?? "") : `${label ?? ""} (${url ?? ""})`;
  });
}

/** For text that has a style as a whole: styles do not nest. */
function withoutMarks(text: string): string {
  return text.replace(
    INLINE,
    (_whole, code?: string, bold?: string, other?: string, label?: string) =>
      [code, bold, other, label].find((part) => part !== undefined) ?? "",
  );
}
