/** Where in a document a line stands: section, block, comment. Told line by line, from the top. */
/** instructions: read by an agent. script: run by one. data: neither, as far as its name says. */
export type TextKind = "instructions" | "script" | "data";

export interface Place {
  /** It stands in a fenced block. */
  readonly fenced: boolean;
  /** It stands in a comment that a page does not show. */
  readonly hidden: boolean;
  /** It stands between the lines that open and close the frontmatter. */
  readonly frontmatter: boolean;
  /** The headings above it but for the title. */
  readonly heading: string;
  /** What leads into it: the line before its block, or the comment above it. */
  readonly intro: string;
}

const FENCE = /^[ \t>]{0,8}(`{3,}|~{3,})/;
const HEADING = /^(#{1,6})[ \t]{1,8}(\S.{0,300})/;
const COMMENT_LINE = /^[ \t]{0,40}(?:#|\/\/|\*|--|::|rem )/;
const LONGEST_INTRO = 400;

export class Places {
  readonly #kind: TextKind;
  readonly #headings: string[] = [];
  #first = true;
  #frontmatter = false;
  #fence: string | undefined;
  #hidden = false;
  /** The last lines of text outside of fences, and the comment before the line. */
  #outside = "";
  #comment = "";

  constructor(kind: TextKind) {
    this.#kind = kind;
  }

  next(raw: string, text: string): Place {
    const place = this.#kind === "instructions" ? this.#inDocument(raw, text) : this.#inCode(text);
    this.#first = false;
    return place;
  }

  #inCode(text: string): Place {
    const intro = this.#comment;
    this.#noteComment(text);
    return { fenced: false, hidden: false, frontmatter: false, heading: "", intro };
  }

  #inDocument(raw: string, text: string): Place {
    if (/^---[ \t]*$/.test(raw) && (this.#first || this.#frontmatter)) {
      this.#frontmatter = !this.#frontmatter;
      return { fenced: false, hidden: false, frontmatter: true, heading: "", intro: "" };
    }
    if (this.#frontmatter) return { fenced: false, hidden: false, frontmatter: true, heading: "", intro: "" };
    const fence = FENCE.exec(raw)?.[1];
    if (fence !== undefined && !this.#hidden) {
      if (this.#fence === undefined) this.#fence = fence;
      else if (fence.startsWith(this.#fence)) this.#fence = undefined;
      this.#comment = "";
    }
    const fenced = this.#fence !== undefined;
    const hidden = this.#hidden || (!fenced && text.includes("<!--"));
    if (!fenced) this.#noteHidden(text);
    const place = {
      fenced,
      hidden,
      frontmatter: false,
      heading: this.#headings.slice(1).join(" / "),
      intro: fenced ? `${this.#outside} ${this.#comment}` : this.#outside,
    };
    if (fenced) this.#noteComment(text);
    else this.#noteOutside(raw, text);
    return place;
  }

  #noteHidden(text: string): void {
    const opened = text.lastIndexOf("<!--");
    const closed = text.lastIndexOf("-->");
    if (opened > closed) this.#hidden = true;
    else if (closed !== -1) this.#hidden = false;
  }

  #noteOutside(raw: string, text: string): void {
    const heading = HEADING.exec(text);
    if (heading !== null) {
      const depth = heading[1]?.length ?? 1;
      while (this.#headings.length >= depth) this.#headings.pop();
      while (this.#headings.length < depth - 1) this.#headings.push("");
      this.#headings.push(heading[2] ?? "");
      this.#outside = "";
      return;
    }
    if (raw.trim() === "" || FENCE.test(raw)) return;
    // A list goes on with what led into it; any other line takes its place.
    const isItem = /^[ \t]{0,12}(?:[-*+]|\d{1,3}[.)]|\|)[ \t]?/.test(raw);
    if (!isItem) this.#outside = text.slice(-LONGEST_INTRO);
    else if (/:[ *_]{0,4}$/.test(text)) this.#outside = `${this.#outside} ${text}`.slice(-LONGEST_INTRO);
  }

  #noteComment(text: string): void {
    if (COMMENT_LINE.test(text)) this.#comment = text.slice(0, LONGEST_INTRO);
    else if (text.trim() === "") this.#comment = "";
  }
}
