/**
 * The places of members in JSON, JSONC and JSON5 text. It reads the union of the three and judges nothing: whether the
 * text is right is asked of a parser of the format before.
 */
import type { BracketMember, BracketNode } from "./bracket-tree.ts";

/** Undefined for a text of white space and comments. */
export function outlineJson(text: string): BracketNode | undefined {
  const scan = new Scan(text);
  scan.skipTrivia();
  return scan.isDone ? undefined : scan.node();
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "0": "\0" };

class Scan {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length;
  }

  skipTrivia(): void {
    for (;;) {
      const [blank = ""] = this.#match(/[\s\uFEFF]*/y) ?? [];
      this.#at += blank.length;
      if (this.#text.startsWith("//", this.#at)) this.#at += (this.#match(/[^\n\r\u2028\u2029]*/y)?.[0] ?? "").length;
      else if (this.#text.startsWith("/*", this.#at)) this.#at = this.#past("*/", this.#at + 2);
      else return;
    }
  }

  node(): BracketNode {
    const char = this.#text[this.#at];
    if (char === "{") return this.#container("object", "}");
    if (char === "[") return this.#container("list", "]");
    const start = this.#at;
    const string = this.#scalar();
    const quoted = char === '"' || char === "'";
    return { kind: "scalar", start, end: this.#at, members: [], ...(quoted ? { string } : {}) };
  }

  #container(kind: "object" | "list", close: string): BracketNode {
    const start = this.#at++;
    const members: BracketMember[] = [];
    this.skipTrivia();
    while (!this.isDone && this.#text[this.#at] !== close) {
      const member = this.#member(kind);
      this.skipTrivia();
      const hasComma = this.#text[this.#at] === ",";
      members.push(hasComma ? { ...member, comma: this.#at } : member);
      if (hasComma) this.#at += 1;
      else if (this.#text[this.#at] !== close) throw new SyntaxError("a comma is missing");
      this.skipTrivia();
    }
    this.#at += 1;
    return { kind, start, end: this.#at, members };
  }

  #member(kind: "object" | "list"): BracketMember {
    const start = this.#at;
    if (kind === "list") {
      const value = this.node();
      return { start, end: value.end, value };
    }
    const key = this.#scalar();
    this.skipTrivia();
    if (this.#text[this.#at] !== ":") throw new SyntaxError("a colon is missing");
    this.#at += 1;
    this.skipTrivia();
    const value = this.node();
    return { key, start, end: value.end, value };
  }

  /** A text in quotes without them, or the characters of a name or number. */
  #scalar(): string {
    const quote = this.#text[this.#at];
    if (quote !== '"' && quote !== "'") {
      const [word = ""] = this.#match(/[^\s\uFEFF,:[\]{}"'/]+/y) ?? [];
      if (word === "") throw new SyntaxError("a value is missing");
      this.#at += word.length;
      return unescaped(word);
    }
    const start = this.#at + 1;
    let end = start;
    while (end < this.#text.length && this.#text[end] !== quote) end += this.#text[end] === "\\" ? 2 : 1;
    this.#at = end + 1;
    return unescaped(this.#text.slice(start, end));
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }

  #past(what: string, from: number): number {
    const at = this.#text.indexOf(what, from);
    return at === -1 ? this.#text.length : at + what.length;
  }
}

function unescaped(raw: string): string {
  if (!raw.includes("\\")) return raw;
  return raw.replaceAll(
    /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[^]))/g,
    (_, unicode?: string, hex?: string, char = "") => {
      const code = unicode ?? hex;
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      // A line break behind a backslash is no part of the text.
      return /[\r\n\u2028\u2029]/.test(char) ? "" : (ESCAPES[char] ?? char);
    },
  );
}
