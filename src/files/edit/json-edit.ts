/**
 * Inserts properties into JSON, JSONC and JSON5 text and removes them, touching nothing else: comments, order and
 * layout stay, and removing what was inserted restores the same bytes. jsonc-parser's own `modify` re-indents the
 * neighbours of an edit, moves their comments and cannot read JSON5. The caller has checked that the text parses.
 */
import { isJsonObject } from "../../model/json.ts";
import {
  bracketScalars,
  type PlacedScalar,
  type BracketMember,
  type BracketNode,
  type BracketStyle,
  indexOfStep,
  insertMember,
  type Layout,
  removeMember,
} from "./brackets.ts";
import { keyOf, nestedValue, notAContainer, outermostRemovable, type PathStep, type SetResult } from "./text-editor.ts";
import { indentAt, lineBreakOf, startsLine } from "./text-lines.ts";

/** The text with `path` set. Objects on the way are made where missing; an existing value is replaced in place. */
export function setProperty(text: string, path: readonly PathStep[], value: unknown): string {
  return setInJson(text, path, value).text;
}

/** The text without the property at `path`, its own line comment included; the same text if there is none. */
export function removeProperty(text: string, path: readonly PathStep[]): string {
  return removeFromJson(text, path, path.length);
}

/** The text with one more item at the end of the list at `path`, which is made where missing. What else is there is not replaced. */
export function appendItem(text: string, path: readonly string[], value: unknown): string {
  const root = outlineJson(text);
  let list = root;
  for (const key of path) list = list?.members[indexOfStep(list, key)]?.value;
  if (list !== undefined && list.kind !== "list") throw notAContainer(path, { key: "", is: "" });
  if (root === undefined || list?.kind !== "list" || list.members.length === 0) return setProperty(text, path, [value]);
  const style = styleOf(text, root, list);
  return insertMember(text, list, () => JSON.stringify(value), style);
}

/** The text without the items of the list at `path` that are this string. */
export function removeItem(text: string, path: readonly string[], item: string): string {
  const root = outlineJson(text);
  let list = root;
  for (const key of path) list = list?.members[indexOfStep(list, key)]?.value;
  if (root === undefined || list?.kind !== "list") return text;
  const index = list.members.findLastIndex(({ value }) => value.string === item);
  if (index === -1) return text;
  return removeItem(removeMember(text, list, index, styleOf(text, root, list)), path, item);
}

export function setInJson(text: string, path: readonly PathStep[], value: unknown): SetResult {
  const root = outlineJson(text);
  if (root === undefined) return { text: newDocument(text, nestedValue(path, value)), madeFrom: -1 };
  let node = root;
  for (const [index, step] of path.entries()) {
    if (node.kind !== (typeof step === "string" ? "object" : "list")) throw notAContainer(path.slice(0, index), step);
    const style = styleOf(text, root, node);
    const member = node.members[indexOfStep(node, step)];
    if (member === undefined) {
      const made = nestedValue(path.slice(index + 1), value, step);
      const write = renderMember.bind(undefined, keyOf(step), made, style);
      return { text: insertMember(text, node, write, style), madeFrom: index };
    }
    node = member.value;
    if (index === path.length - 1) return { text: replaceNode(text, node, value, style), madeFrom: path.length };
  }
  return { text, madeFrom: path.length };
}

/** `alsoFrom` as in TextEditor; the length of the path takes out the entry alone. */
export function removeFromJson(text: string, path: readonly PathStep[], alsoFrom: number): string {
  const root = outlineJson(text);
  const trail: { parent: BracketNode; index: number; member: BracketMember }[] = [];
  let node = root;
  for (const step of path) {
    const parent = node;
    const index = parent === undefined ? -1 : indexOfStep(parent, step);
    const member = parent?.members[index];
    if (parent === undefined || member === undefined) return text;
    trail.push({ parent, index, member });
    node = member.value;
  }
  const from = outermostRemovable(trail.length, alsoFrom, (at) => isOnlyContent(text, trail[at]));
  if (root !== undefined && from === -1) return withoutDocument(text, root);
  const place = trail[from];
  if (root === undefined || place === undefined) return text;
  return removeMember(text, place.parent, place.index, styleOf(text, root, place.parent));
}

/** Whether a container has only that member and not even a comment. */
function isOnlyContent(text: string, place: { parent: BracketNode; member: BracketMember } | undefined): boolean {
  if (place === undefined || place.parent.members.length > 1) return false;
  const { parent, member } = place;
  const around = text.slice(parent.start + 1, member.start) + text.slice(member.end, parent.end - 1);
  return around.replace(",", "").trim() === "";
}

/**
 * A document in text that has none. The result ends with a line break if the text did, so that removing the document
 * can restore the text.
 */
function newDocument(text: string, value: unknown): string {
  const style: JsonStyle = { ...NEW_STYLE, lineBreak: lineBreakOf(text) };
  const document = renderJson(value, style, { indent: "", oneLine: false, space: " " });
  if (text === "" || text.endsWith("\n")) return `${text}${document}${style.lineBreak}`;
  return `${text}${style.lineBreak}${document}`;
}

function withoutDocument(text: string, root: BracketNode): string {
  const before = text.slice(0, root.start);
  const behind = text.slice(root.end);
  const lineBreak = lineBreakOf(text);
  if (behind === lineBreak) return before;
  return behind === "" && before.endsWith(lineBreak) ? before.slice(0, -lineBreak.length) : before + behind;
}

function replaceNode(text: string, node: BracketNode, value: unknown, style: JsonStyle): string {
  const present = text.slice(node.start, node.end);
  const oneLine = present.length > 2 && node.kind !== "scalar" && !present.includes("\n");
  const space = oneLine ? style.space : " ";
  const rendered = renderJson(value, style, {
    indent: indentAt(text, node.start),
    oneLine: oneLine || style.flat,
    space,
  });
  return text.slice(0, node.start) + rendered + text.slice(node.end);
}

const NEW_STYLE: Omit<JsonStyle, "lineBreak"> = {
  comments: "slashes",
  unit: "  ",
  flat: false,
  space: " ",
  quote: '"',
  bareKeys: false,
};

/** How the text is written, as far as a new member of `parent` must follow it. */
function styleOf(text: string, root: BracketNode, parent: BracketNode): JsonStyle {
  const whole = text.slice(root.start, root.end);
  const inside = text.slice(parent.start, parent.end);
  // A single item does not show how items are separated.
  const near = /[:,]/.test(inside) ? inside : whole;
  const first = root.members.find((member) => startsLine(text, member.start));
  const indent = first === undefined ? "" : indentAt(text, first.start);
  const firstKey = root.members[0]?.start;
  return {
    comments: "slashes",
    lineBreak: lineBreakOf(text),
    unit: indent === "" ? "  " : indent,
    flat: root.members.length > 0 && !whole.includes("\n"),
    space: /[:,] /.test(near) ? " " : "",
    quote: firstQuote(text, root) === "'" ? "'" : '"',
    bareKeys: firstKey !== undefined && !/["']/.test(text[firstKey] ?? ""),
  };
}

function firstQuote(text: string, node: BracketNode): string | undefined {
  if (node.string !== undefined) return text[node.start];
  for (const member of node.members) {
    const quote = firstQuote(text, member.value);
    if (quote !== undefined) return quote;
  }
  return undefined;
}

// Rendering values the way people write JSON: short lists of plain values stay on one line.

interface JsonStyle extends BracketStyle {
  /** JSON has one way to write keys and texts, JSON5 several. */
  readonly quote: '"' | "'";
  readonly bareKeys: boolean;
}

const MAX_LIST_WIDTH = 100;

function renderMember(key: string | undefined, value: unknown, style: JsonStyle, layout: Layout): string {
  const rendered = renderJson(value, style, layout);
  return key === undefined ? rendered : `${renderKey(key, style)}:${layout.space}${rendered}`;
}

function renderJson(value: unknown, style: JsonStyle, layout: Layout): string {
  const { indent, oneLine, space } = layout;
  const inner = { ...layout, indent: indent + style.unit };
  if (Array.isArray(value)) {
    const items: string[] = value.map((item) => renderJson(item, style, inner));
    const flat = `[${items.join(`,${space}`)}]`;
    const plain = value.every((item) => typeof item !== "object");
    if (oneLine || value.length === 0 || (plain && flat.length + indent.length <= MAX_LIST_WIDTH)) return flat;
    return block("[", items, "]", style, indent);
  }
  if (!isJsonObject(value)) return renderScalar(value, style);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  const items = entries.map(([key, item]) => renderMember(key, item, style, inner));
  if (items.length === 0) return "{}";
  if (!oneLine) return block("{", items, "}", style, indent);
  return `{${space}${items.join(`,${space}`)}${space}}`;
}

function renderKey(key: string, style: JsonStyle): string {
  return style.bareKeys && /^[A-Za-z_$][\w$]*$/.test(key) ? key : renderScalar(key, style);
}

function renderScalar(value: unknown, { quote }: JsonStyle): string {
  // The two are line breaks to JavaScript, and the json5 package warns of them on the terminal.
  const json = (JSON.stringify(value) ?? "null").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  if (typeof value !== "string" || quote === '"') return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function block(
  open: string,
  items: readonly string[],
  close: string,
  { lineBreak, unit }: JsonStyle,
  indent: string,
): string {
  return `${open}${items.map((item) => `${lineBreak}${indent}${unit}${item}`).join(",")}${lineBreak}${indent}${close}`;
}

// The offsets of members in JSON, JSONC and JSON5. Reads the union of the three; a parser has checked the text
// before.

/** Undefined for a text of white space and comments. */
function outlineJson(text: string): BracketNode | undefined {
  const scan = new JsonScanner(text);
  scan.skipTrivia();
  return scan.isDone ? undefined : scan.node();
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "0": "\0" };

class JsonScanner {
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
    return { kind: "scalar", start, end: this.#at, members: [], string: quoted ? string : undefined };
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
      return unescapeJson(word);
    }
    const start = this.#at + 1;
    let end = start;
    while (end < this.#text.length && this.#text[end] !== quote) end += this.#text[end] === "\\" ? 2 : 1;
    this.#at = end + 1;
    return unescapeJson(this.#text.slice(start, end));
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

function unescapeJson(raw: string): string {
  if (!raw.includes("\\")) return raw;
  return raw.replaceAll(
    /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[^]))/g,
    (_, unicode?: string, hex?: string, char = "") => {
      const code = unicode ?? hex;
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      // An escaped line break is not part of the string.
      return /[\r\n\u2028\u2029]/.test(char) ? "" : (ESCAPES[char] ?? char);
    },
  );
}

// The plain values of a document with their offsets, in the order of the text.

/** JSON, JSONC and JSON5. Throws for anything else. */
export function jsonScalars(text: string): PlacedScalar[] {
  const root = outlineJson(text);
  return root === undefined ? [] : bracketScalars(text, root, []);
}
