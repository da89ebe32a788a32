/**
 * Inserts members between brackets and removes them. Removing what was inserted must restore the same bytes from the
 * text alone, so the two halves mirror each other: `removeMember` removes around a member what `insertMember` adds.
 */
import type { PathStep } from "./text-editor.ts";
import {
  beforeLineBreak,
  endsInLineComment,
  indentAt,
  lineEnd,
  lineStart,
  pastLineComments,
  startsLine,
  type Comments,
} from "./text-lines.ts";

export interface Layout {
  /** Of the line that the member begins on. */
  readonly indent: string;
  readonly oneLine: boolean;
  /** Between a comma or colon and the next value. */
  readonly space: "" | " ";
}

export interface BracketStyle {
  readonly comments: Comments;
  readonly lineBreak: string;
  /** One step of indentation. */
  readonly unit: string;
  /** An empty container gets its first member on its own line. */
  readonly flat: boolean;
  readonly space: "" | " ";
}

/** Writes a member, its key included. */
type WriteMember = (layout: Layout) => string;

/** The text with one more member at the end of a container. */
export function insertMember(text: string, parent: BracketNode, write: WriteMember, style: BracketStyle): string {
  const last = parent.members.at(-1);
  if (last === undefined) return insertFirst(text, parent, write, style);
  const tail = last.comma === undefined ? last.end : last.comma + 1;
  const own = beginsLine(text, last.start);
  const indent = indentAt(text, last.start);
  const at = own ? pastLineComments(text, tail, style.comments) : tail;
  const member = own
    ? `${style.lineBreak}${indent}${write({ indent, oneLine: false, space: " " })}`
    : `${style.space}${write({ indent, oneLine: true, space: style.space })}`;
  if (last.comma !== undefined) return `${text.slice(0, at)}${member},${text.slice(at)}`;
  return `${text.slice(0, last.end)},${text.slice(last.end, at)}${member}${text.slice(at)}`;
}

/**
 * White space between the brackets is kept after the member, before the closing bracket: it distinguishes `{ }` from `{}` when
 * the member is removed. A lone line break there becomes a space, which looks better.
 */
function insertFirst(text: string, parent: BracketNode, write: WriteMember, style: BracketStyle): string {
  const inner = text.slice(parent.start + 1, parent.end - 1);
  const kept = inner.trimEnd();
  const outer = indentAt(text, parent.start);
  const indent = outer + style.unit;
  const head = text.slice(0, parent.start + 1);
  const tail = text.slice(parent.end - 1);
  if (kept !== "") {
    const member = write({ indent, oneLine: style.flat, space: style.flat ? style.space : " " });
    return `${head}${kept}${style.lineBreak}${indent}${member}${inner.slice(kept.length)}${tail}`;
  }
  if (style.flat) {
    const member = write({ indent: outer, oneLine: true, space: style.space });
    return `${head}${style.space}${member}${inner}${style.space}${tail}`;
  }
  const member = write({ indent, oneLine: false, space: " " });
  const close = `${style.lineBreak}${outer}`;
  const mark = inner === close ? " " : /^ +$/.test(inner) ? `${inner} ` : inner;
  return `${head}${style.lineBreak}${indent}${member}${mark}${close}${tail}`;
}

/** The text without one member of a container, and without a comment behind it on its line. */
export function removeMember(text: string, parent: BracketNode, index: number, style: BracketStyle): string {
  const member = parent.members[index];
  if (member === undefined) return text;
  const end = pastComma(member);
  if (parent.members.length === 1) {
    const before = text.slice(parent.start + 1, member.start);
    const behind = text.slice(end, parent.end - 1);
    if (`${before}${text.slice(member.end, end).replace(",", "")}${behind}`.trim() === "") {
      const inner = innerWithout(before, behind, indentAt(text, parent.start), style);
      return text.slice(0, parent.start + 1) + inner + text.slice(parent.end - 1);
    }
  }
  return startsLine(text, member.start) ? removeLines(text, parent, index, style) : removeInline(text, parent, index);
}

/** The text between the brackets before `insertFirst`. */
function innerWithout(before: string, behind: string, outer: string, { lineBreak }: BracketStyle): string {
  const lines = before.split(lineBreak).length - 1;
  const close = lines === 0 ? before : `${lineBreak}${outer}`;
  if (lines > 1 || !behind.endsWith(close)) return "";
  const mark = behind.slice(0, behind.length - close.length);
  if (lines === 0 || !/^ +$/.test(mark)) return mark;
  return mark === " " ? close : mark.slice(1);
}

/** A member that begins its line. */
function removeLines(text: string, parent: BracketNode, index: number, style: BracketStyle): string {
  const { member, previous, next } = around(parent, index);
  const end = pastComma(member);
  if (next !== undefined && !text.slice(end, next.start).includes("\n"))
    return cut(text, member.start, pastBlanks(text, end));
  const commented = pastLineComments(text, end, style.comments);
  const isLineDone = commented === lineEnd(text, commented);
  const begin = previous === undefined ? parent.start + 1 : pastComma(previous);
  const from = beforeLineBreak(text, lineStart(text, member.start));
  // The rest of the line must not become part of a comment on the line above.
  const keepsBreak = !isLineDone && endsInLineComment(text.slice(begin, from), style.comments);
  const without = cut(text, keepsBreak ? member.start : from, isLineDone ? commented : end);
  return next === undefined && member.comma === undefined ? cutComma(without, previous) : without;
}

/** A member that shares its line with what is before it. */
function removeInline(text: string, parent: BracketNode, index: number): string {
  const { member, previous, next } = around(parent, index);
  const end = pastComma(member);
  if (next !== undefined) {
    const isPlain = text.slice(end, next.start).trim() === "";
    return cut(text, member.start, isPlain ? next.start : pastBlanks(text, end));
  }
  if (previous === undefined) return cut(text, member.start, end);
  if (member.comma === undefined) {
    if (/^\s*,\s*$/.test(text.slice(previous.end, member.start))) return cut(text, previous.end, member.end);
    return cutComma(cut(text, member.start, member.end), previous);
  }
  const isPlain = text.slice(pastComma(previous), member.start).trim() === "";
  return cut(text, isPlain ? pastComma(previous) : member.start, end);
}

function around(parent: BracketNode, index: number) {
  const member = parent.members[index];
  if (member === undefined) throw new RangeError("no such member");
  return { member, previous: parent.members[index - 1], next: parent.members[index + 1] };
}

function pastComma(member: BracketMember): number {
  return member.comma === undefined ? member.end : member.comma + 1;
}

/** For texts that are still the same up to that comma. */
function cutComma(text: string, member: BracketMember | undefined): string {
  return member?.comma === undefined ? text : cut(text, member.comma, member.comma + 1);
}

function cut(text: string, from: number, to: number): string {
  return text.slice(0, from) + text.slice(to);
}

function pastBlanks(text: string, from: number): number {
  return from + (/^[ \t]*/.exec(text.slice(from))?.[0].length ?? 0);
}

/** As `startsLine`, but a block comment may come before it. */
function beginsLine(text: string, offset: number): boolean {
  const start = lineStart(text, offset);
  return start > 0 && /^[ \t]*(?:\/\*.*?\*\/[ \t]*)*$/.test(text.slice(start, offset));
}

// Bracketed text with its offsets: JSON and JSON5 as a whole, flow style in YAML, inline tables in TOML.

export interface BracketNode {
  readonly kind: "object" | "list" | "scalar";
  readonly start: number;
  readonly end: number;
  /** Empty for a scalar. */
  readonly members: readonly BracketMember[];
  /** The value of a scalar, if it is a string. */
  readonly string?: string;
}

export interface BracketMember {
  /** Of an object's member. */
  readonly key?: string;
  readonly start: number;
  readonly end: number;
  readonly value: BracketNode;
  /** The offset of the comma after it. */
  readonly comma?: number;
}

/** The place of a step among the members, or -1. Of two with one key the last counts, as every parser has it. */
export function indexOfStep(node: BracketNode, step: PathStep): number {
  if (typeof step === "string") {
    return node.kind === "object" ? node.members.findLastIndex((member) => member.key === step) : -1;
  }
  if (node.kind !== "list") return -1;
  return node.members.findIndex(({ value }) => {
    const field = value.members[indexOfStep(value, step.key)];
    return field?.value.string === step.is;
  });
}

/** A plain value with its place in the text. */
export interface PlacedScalar {
  /** Keys, and places in lists. */
  readonly path: readonly (string | number)[];
  /** In the text, with quotes. */
  readonly start: number;
  readonly end: number;
  /** The string, or any other value as it is written. */
  readonly value: string;
}

/** The plain values inside a node, in the order of the text. */
export function bracketScalars(text: string, node: BracketNode, path: PlacedScalar["path"]): PlacedScalar[] {
  const { kind, start, end } = node;
  if (kind === "scalar") return [{ path, start, end, value: node.string ?? text.slice(start, end) }];
  return node.members.flatMap(({ key, value }, index) => bracketScalars(text, value, [...path, key ?? index]));
}
