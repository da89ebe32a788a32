/**
 * Puts properties into JSON, JSONC and JSON5 text and takes them out again, touching nothing else: comments, order and
 * layout stay, and taking out what was put in gives back the same bytes. jsonc-parser's own `modify` re-indents the
 * neighbours of an edit and moves their comments, and reads no JSON5. The caller has checked that the text parses.
 */
import { insertMember, removeMember } from "./bracket-edit.ts";
import { indexOfStep, type BracketMember, type BracketNode } from "./bracket-tree.ts";
import { outlineJson } from "./json-outline.ts";
import { renderJson, renderMember, type JsonStyle } from "./json-render.ts";
import { indentAt, lineBreakOf, startsLine } from "./lines.ts";
import { keyOf, nestedValue, notAContainer, soleFrom } from "./paths.ts";
import type { PathStep, SetResult } from "./text-editor.ts";

/** The text with `path` set. Objects on the way are made where missing; an existing value is replaced in place. */
export function setProperty(text: string, path: readonly PathStep[], value: unknown): string {
  return setInJson(text, path, value).text;
}

/** The text without the property at `path`, its own line comment included; the same text if there is none. */
export function removeProperty(text: string, path: readonly PathStep[]): string {
  return removeFromJson(text, path, path.length);
}

/** The text with one more item at the end of the list at `path`, which is made where missing. */
export function appendItem(text: string, path: readonly string[], value: unknown): string {
  const root = outlineJson(text);
  let list = root;
  for (const key of path) list = list?.members[indexOfStep(list, key)]?.value;
  if (root === undefined || list?.kind !== "list" || list.members.length === 0) return setProperty(text, path, [value]);
  const style = styleOf(text, root, list);
  return insertMember(text, list, () => JSON.stringify(value), style);
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
  const from = soleFrom(trail.length, alsoFrom, (at) => isAllOf(text, trail[at]));
  if (root !== undefined && from === -1) return withoutDocument(text, root);
  const place = trail[from];
  if (root === undefined || place === undefined) return text;
  return removeMember(text, place.parent, place.index, styleOf(text, root, place.parent));
}

/** Whether a container holds that member and nothing else, not even a comment. */
function isAllOf(text: string, place: { parent: BracketNode; member: BracketMember } | undefined): boolean {
  if (place === undefined || place.parent.members.length > 1) return false;
  const { parent, member } = place;
  const around = text.slice(parent.start + 1, member.start) + text.slice(member.end, parent.end - 1);
  return around.replace(",", "").trim() === "";
}

/**
 * A document in a text that has none. Whether the text ended with a line break can be seen afterwards from whether the
 * new one does.
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
  // One item alone does not tell how they are set apart.
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
