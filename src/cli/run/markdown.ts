/** Markdown of a model's answer for a terminal, line by line, as it arrives. */
import type { Output } from "../output.ts";

const FENCE = /^ {0,3}(?:```|~~~)/;
const HEADING = /^ {0,3}#{1,6} +(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,}) *$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const BULLET = /^( *)[-*+] +(\[[ xX]\] +)?(.*)$/;
/** Each part ends before the next mark of its kind, so that the work stays linear. */
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\[([^[\]\n]{1,300})\]\(([^()\s]{1,1000})\)/g;

export class MarkdownLines {
  readonly #out: Pick<Output, "paint">;
  #isCode = false;

  constructor(out: Pick<Output, "paint">) {
    this.#out = out;
  }

  /** The line as `Output.line` shows it; undefined for one that is not shown. */
  render(line: string): string | undefined {
    const out = this.#out;
    if (FENCE.test(line)) {
      this.#isCode = !this.#isCode;
      return undefined;
    }
    if (this.#isCode) return `  ${out.paint("cyan", line)}`;
    const heading = HEADING.exec(line)?.[1];
    if (heading !== undefined) return out.paint("bold", withoutMarks(heading.replace(/ #+ *$/, "")));
    if (RULE.test(line)) return out.paint("dim", "─".repeat(24));
    const quote = QUOTE.exec(line)?.[1];
    if (quote !== undefined) return `${out.paint("dim", "│")} ${this.#inline(quote)}`;
    const [, indent, box = "", item] = BULLET.exec(line) ?? [];
    if (item !== undefined) return `${indent ?? ""}• ${box}${this.#inline(item)}`;
    return this.#inline(line);
  }

  #inline(text: string): string {
    return text.replace(
      INLINE,
      (_whole, code?: string, bold?: string, other?: string, label?: string, url?: string) => {
        if (code !== undefined) return this.#out.paint("cyan", code);
        const strong = bold ?? other;
        if (strong !== undefined) return this.#out.paint("bold", strong);
        return label === url ? (url ?? "") : `${label ?? ""} (${url ?? ""})`;
      },
    );
  }
}

/** For text that has a style as a whole: styles do not nest. */
function withoutMarks(text: string): string {
  return text.replace(
    INLINE,
    (_whole, code?: string, bold?: string, other?: string, label?: string) =>
      [code, bold, other, label].find((part) => part !== undefined) ?? "",
  );
}
