/**
 * Puts properties into JSONC text and takes them out again, touching nothing else: comments, order and layout stay,
 * and taking out what was put in gives back the same bytes. jsonc-parser's own `modify` re-indents the neighbours of an
 * edit and moves their comments, so only its parser is used.
 */
import { parseTree, type Node } from "jsonc-parser";
import { isJsonObject } from "../model/json.ts";

const PARSE_OPTIONS = { allowTrailingComma: true };

/** The text with `path` set. Objects on the way are made where missing; an existing value is replaced in place. */
export function setProperty(text: string, path: readonly string[], value: unknown): string {
  const root = rootOf(text);
  const style = styleOf(text, root);
  let node = root;
  for (const [index, key] of path.entries()) {
    const property = propertyOf(node, key);
    const child = property?.children?.[1];
    const rest = path.slice(index + 1);
    if (child === undefined) return insert(text, node, key, nested(rest, value), style);
    if (rest.length === 0) {
      const rendered = render(value, style, indentAt(text, child.offset), isOneLine(text, child));
      return text.slice(0, child.offset) + rendered + text.slice(child.offset + child.length);
    }
    node = child;
  }
  return text;
}

/** The text with one more item at the end of the list at `path`, which is made where missing. */
export function appendItem(text: string, path: readonly string[], value: unknown): string {
  const root = rootOf(text);
  const list = nodeAt(root, path);
  const last = list?.type === "array" ? list.children?.at(-1) : undefined;
  if (last === undefined) return setProperty(text, path, [value]);
  const style = styleOf(text, root);
  const item = JSON.stringify(value);
  const added = isOnOwnLines(text, last) ? `,${style.eol}${indentAt(text, last.offset)}${item}` : `, ${item}`;
  return text.slice(0, endOf(last)) + added + text.slice(endOf(last));
}

/** The text without the property at `path`, its own line comment included; the same text if there is none. */
export function removeProperty(text: string, path: readonly string[]): string {
  const parent = nodeAt(rootOf(text), path.slice(0, -1));
  const properties = parent?.children ?? [];
  const index = properties.findLastIndex((one) => one.children?.[0]?.value === path.at(-1));
  const property = properties[index];
  if (parent === undefined || property === undefined) return text;
  const before = properties[index - 1];
  const after = properties[index + 1];

  const inner = text.slice(parent.offset + 1, property.offset) + text.slice(endOf(property), endOf(parent) - 1);
  if (properties.length === 1 && inner.replace(",", "").trim() === "") {
    return `${text.slice(0, parent.offset)}{}${text.slice(endOf(parent))}`;
  }
  const comma = commaAfter(text, endOf(property), endOf(parent));
  const end = endOfLineTrivia(text, comma === undefined ? endOf(property) : comma + 1);
  if (isOnOwnLines(text, property) && end === lineEnd(text, end)) {
    const without = text.slice(0, lineBreakBefore(text, property.offset)) + text.slice(end);
    // The last property of a list without a trailing comma: the comma before it goes too.
    return after === undefined && comma === undefined ? withoutComma(without, text, before, property) : without;
  }
  if (after !== undefined) return text.slice(0, property.offset) + text.slice(after.offset);
  const gap = before === undefined ? "" : text.slice(endOf(before), property.offset);
  if (before === undefined || /^\s*,\s*$/.test(gap)) {
    return text.slice(0, before === undefined ? property.offset : endOf(before)) + text.slice(endOf(property));
  }
  return withoutComma(text.slice(0, property.offset) + text.slice(endOf(property)), text, before, property);
}

/** `edited` without the comma that stood before `property`, where the two texts are still the same. */
function withoutComma(edited: string, text: string, before: Node | undefined, property: Node): string {
  const comma = before === undefined ? undefined : commaAfter(text, endOf(before), property.offset);
  return comma === undefined ? edited : edited.slice(0, comma) + edited.slice(comma + 1);
}

function insert(text: string, parent: Node, key: string, value: unknown, style: Style): string {
  const last = parent.children?.at(-1);
  const parentIndent = indentAt(text, parent.offset);
  const indent = parentIndent + style.unit;
  const name = JSON.stringify(key);
  if (last === undefined) {
    const inner = text.slice(parent.offset + 1, endOf(parent) - 1);
    const kept = inner.trimEnd();
    const head = text.slice(0, parent.offset + 1) + kept;
    const line = `${style.eol}${indent}${name}: ${render(value, style, indent, false)}`;
    // With a comment inside, what closed the object keeps its own line.
    const tail = kept === "" ? `${style.eol}${parentIndent}` : inner.slice(kept.length);
    return head + line + tail + text.slice(endOf(parent) - 1);
  }
  const comma = commaAfter(text, endOf(last), endOf(parent));
  if (!isOnOwnLines(text, last)) {
    const space = text.slice(parent.offset, endOf(last)).includes(": ") ? " " : "";
    const rendered = `${name}:${space}${render(value, style, parentIndent, true, space)}`;
    if (comma !== undefined) return `${text.slice(0, comma + 1)}${space}${rendered},${text.slice(comma + 1)}`;
    return `${text.slice(0, endOf(last))},${space}${rendered}${text.slice(endOf(last))}`;
  }
  const ownIndent = indentAt(text, last.offset);
  const line = `${style.eol}${ownIndent}${name}: ${render(value, style, ownIndent, false)}`;
  if (comma !== undefined) {
    const at = endOfLineTrivia(text, comma + 1);
    return `${text.slice(0, at)}${line},${text.slice(at)}`;
  }
  const at = endOfLineTrivia(text, endOf(last));
  return `${text.slice(0, endOf(last))},${text.slice(endOf(last), at)}${line}${text.slice(at)}`;
}

interface Style {
  readonly eol: string;
  readonly unit: string;
}

function styleOf(text: string, root: Node): Style {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const first = root.children?.find((child) => isOnOwnLines(text, child));
  const indent = first === undefined ? "" : indentAt(text, first.offset);
  return { eol, unit: indent === "" ? "  " : indent };
}

/** JSON as people write it by hand: lists of plain values on one line while they are short. */
function render(value: unknown, style: Style, indent: string, oneLine: boolean, space = " "): string {
  if (Array.isArray(value)) {
    const items: string[] = value.map((item) => render(item, style, indent + style.unit, oneLine, space));
    const flat = `[${items.join(`,${space}`)}]`;
    const plain = value.every((item) => typeof item !== "object");
    if (oneLine || value.length === 0 || (plain && flat.length + indent.length <= 100)) return flat;
    return block("[", items, "]", style, indent);
  }
  if (!isJsonObject(value)) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  const items = entries.map(
    ([key, item]) => `${JSON.stringify(key)}:${space}${render(item, style, indent + style.unit, oneLine, space)}`,
  );
  if (items.length === 0) return "{}";
  if (!oneLine) return block("{", items, "}", style, indent);
  return `{${space}${items.join(`,${space}`)}${space}}`;
}

function block(open: string, items: readonly string[], close: string, { eol, unit }: Style, indent: string): string {
  return `${open}${items.map((item) => `${eol}${indent}${unit}${item}`).join(",")}${eol}${indent}${close}`;
}

function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
}

/** The caller has checked that the text parses to an object. */
function rootOf(text: string): Node {
  const root = parseTree(text, [], PARSE_OPTIONS);
  if (root === undefined) throw new TypeError("text without a JSON value");
  return root;
}

function propertyOf(node: Node, key: string): Node | undefined {
  return node.type === "object" ? node.children?.findLast((one) => one.children?.[0]?.value === key) : undefined;
}

function nodeAt(root: Node, path: readonly string[]): Node | undefined {
  let node: Node | undefined = root;
  for (const key of path) node = node === undefined ? undefined : propertyOf(node, key)?.children?.[1];
  return node;
}

function endOf(node: Node): number {
  return node.offset + node.length;
}

function isOneLine(text: string, node: Node): boolean {
  return node.length > 2 && !text.slice(node.offset, endOf(node)).includes("\n");
}

/** The white space that the line of an offset begins with. */
function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))?.[0] ?? "";
}

function isOnOwnLines(text: string, node: Node): boolean {
  const start = text.lastIndexOf("\n", node.offset - 1);
  return start !== -1 && text.slice(start + 1, node.offset).trim() === "";
}

function lineBreakBefore(text: string, offset: number): number {
  const at = text.lastIndexOf("\n", offset - 1);
  return at > 0 && text[at - 1] === "\r" ? at - 1 : at;
}

/** The offset of the comma that follows, past comments, if one does before `limit`. */
function commaAfter(text: string, from: number, limit: number): number | undefined {
  let at = from;
  while (at < limit) {
    if (text[at] === ",") return at;
    if (text.startsWith("//", at)) at = lineEnd(text, at);
    else if (text.startsWith("/*", at)) at = Math.max(text.indexOf("*/", at) + 2, at + 2);
    else if (/\s/.test(text[at] ?? "")) at += 1;
    else return undefined;
  }
  return undefined;
}

/** Past a comment that shares the line; before the line break. */
function endOfLineTrivia(text: string, from: number): number {
  const rest = text.slice(from, lineEnd(text, from));
  const [comment = ""] = /^[ \t]*(?:\/\/.*|(?:\/\*(?:[^*]|\*(?!\/))*\*\/[ \t]*)+)/.exec(rest) ?? [];
  return from + comment.length;
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  if (at === -1) return text.length;
  return text[at - 1] === "\r" ? at - 1 : at;
}
