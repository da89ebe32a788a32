/** YAML: whole lines go in and out of blocks; what stands between brackets is left to the surgery for brackets. */
import { insertMember, removeMember, type BracketStyle } from "../bracket-edit.ts";
import { indexOfStep, type BracketNode } from "../bracket-tree.ts";
import { beforeLineBreak, indentAt, lineBreakOf, lineEnd, lineStart, pastLineBreak } from "../lines.ts";
import { nestedValue, notAContainer, soleFrom } from "../paths.ts";
import type { PathStep, SetResult, Surgeon } from "../text-editor.ts";
import { TextSyntaxError } from "../text-syntax-error.ts";
import { renderAfterColon, renderBlock, renderFlow, renderItem, renderPair, type YamlStyle } from "./yaml-render.ts";
import { outlineYaml, parseYaml, type YamlBlock, type YamlEntry, type YamlValue } from "./yaml-tree.ts";
import { YAML_ERROR_WORDS } from "./yaml-words.ts";

export const YAML: Surgeon = { format: "yaml", read, set, remove };

function read(text: string): unknown {
  const document = parseYaml(text);
  const [error] = document.errors;
  if (error !== undefined) {
    throw TextSyntaxError.at(text, error.pos[0], YAML_ERROR_WORDS[error.code] ?? "this is not YAML");
  }
  try {
    return document.toJS() ?? undefined;
  } catch {
    // Aliases that multiply without end, or point at nothing.
    throw new TextSyntaxError("the aliases cannot be resolved", 1, 1);
  }
}

function set(text: string, path: readonly PathStep[], value: unknown): SetResult {
  const root = outlineYaml(text);
  const style = styleOf(text, root);
  if (root === undefined) return { text: newDocument(text, nestedValue(path, value), style), madeFrom: 0 };
  let at: YamlValue = root;
  let holder: YamlEntry | undefined;
  for (const [index, step] of path.entries()) {
    if (at.kind === "flow") return setInFlow(text, at.node, path, index, value, style);
    const made = nestedValue(path.slice(index + 1), value, step);
    if (at.kind === "empty" && holder !== undefined) {
      return { text: fillEmpty(text, holder, step, made, style), madeFrom: index };
    }
    if (at.kind !== (typeof step === "string" ? "map" : "list")) throw notAContainer(path.slice(0, index), step);
    const entry: YamlEntry | undefined = at.entries[indexOf(at, step)];
    if (entry === undefined) return { text: appendEntry(text, at, step, made, style), madeFrom: index };
    holder = entry;
    at = entry.value;
  }
  return { text: holder === undefined ? text : replaceValue(text, holder, value, style), madeFrom: path.length };
}

function setInFlow(
  text: string,
  root: BracketNode,
  path: readonly PathStep[],
  from: number,
  value: unknown,
  style: YamlStyle,
): SetResult {
  let node = root;
  for (const [offset, step] of path.slice(from).entries()) {
    const index = from + offset;
    if (node.kind !== (typeof step === "string" ? "object" : "list")) throw notAContainer(path.slice(0, index), step);
    const member = node.members[indexOfStep(node, step)];
    if (member === undefined) {
      const made = nestedValue(path.slice(index + 1), value, step);
      const rendered = renderFlow(typeof step === "string" ? { [step]: made } : made);
      const inserted = typeof step === "string" ? rendered.slice(2, -2) : rendered;
      return { text: insertMember(text, node, () => inserted, flowStyle(style)), madeFrom: index };
    }
    node = member.value;
  }
  const gap = text[node.start - 1] === ":" ? " " : "";
  return { text: splice(text, node.start, node.end, gap + renderFlow(value)), madeFrom: path.length };
}

function remove(text: string, path: readonly PathStep[], alsoFrom: number): string {
  const trail: Place[] = [];
  let at: YamlValue | BracketNode | undefined = outlineYaml(text);
  let before = 0;
  for (const step of path) {
    const place: Place | undefined = at === undefined ? undefined : placeOf(text, at, step, before);
    if (place === undefined) return text;
    trail.push(place);
    at = place.value;
    before = place.after;
  }
  return trail[soleFrom(trail.length, Math.max(alsoFrom, 0), (index) => trail[index]?.isSole === true)]?.cut() ?? text;
}

/** A step that was found, and how to take it out. */
interface Place {
  readonly value: YamlValue | BracketNode;
  readonly after: number;
  /** Nothing else, not even a comment, is in the container. */
  readonly isSole: boolean;
  cut(): string;
}

function placeOf(text: string, at: YamlValue | BracketNode, step: PathStep, before: number): Place | undefined {
  if (at.kind === "flow") return placeOf(text, at.node, step, before);
  if ("members" in at) {
    const index = indexOfStep(at, step);
    const member = at.members[index];
    if (member === undefined) return undefined;
    const around = text.slice(at.start + 1, member.start) + text.slice(member.end, at.end - 1);
    const isSole = around.replace(",", "").trim() === "";
    const cut = (): string => removeMember(text, at, index, flowStyle({ lineBreak: lineBreakOf(text), unit: "  " }));
    return { value: member.value, after: member.end, isSole, cut };
  }
  if (at.kind !== "map" && at.kind !== "list") return undefined;
  const index = indexOf(at, step);
  const entry = at.entries[index];
  if (entry === undefined) return undefined;
  const isSole = at.entries.length === 1 && !text.slice(before, entry.start).includes("#");
  return { value: entry.value, after: entry.after, isSole, cut: () => removeEntry(text, at, index) };
}

function indexOf(block: YamlBlock, step: PathStep): number {
  if (typeof step === "string") return block.kind === "map" ? block.entries.findIndex(({ key }) => key === step) : -1;
  if (block.kind !== "list") return -1;
  return block.entries.findIndex(({ value }) => {
    if (value.kind === "flow") return value.node.members[indexOfStep(value.node, step.key)]?.value.string === step.is;
    if (value.kind !== "map") return false;
    const field = value.entries[indexOf(value, step.key)]?.value;
    return field?.kind === "scalar" && field.string === step.is;
  });
}

function appendEntry(text: string, block: YamlBlock, step: PathStep, made: unknown, style: YamlStyle): string {
  const first = block.entries[0]?.start ?? 0;
  const indent = " ".repeat(first - lineStart(text, first));
  const rendered = indent + renderStep(step, made, indent, style);
  // A block of text that keeps the empty lines behind it ends where a line begins, or with blanks at the end of the file.
  const lastChar = text[block.end - 1] ?? "";
  if (lastChar === "\n") return splice(text, block.end, block.end, rendered + style.lineBreak);
  if (/\s/.test(lastChar)) return splice(text, first, first, rendered.trimStart() + style.lineBreak + indent);
  const at = pastInnerComments(text, lineEnd(text, block.end), indent.length);
  return splice(text, at, at, style.lineBreak + rendered);
}

/** A key without a value gets its first entry. */
function fillEmpty(text: string, holder: YamlEntry, step: PathStep, made: unknown, style: YamlStyle): string {
  const outer = holder.start - lineStart(text, holder.start);
  const indent = " ".repeat(outer) + style.unit;
  const at = pastInnerComments(text, lineEnd(text, holder.after), outer);
  return splice(text, at, at, `${style.lineBreak}${indent}${renderStep(step, made, indent, style)}`);
}

function renderStep(step: PathStep, made: unknown, indent: string, style: YamlStyle): string {
  return typeof step === "string" ? renderPair(step, made, indent, style) : renderItem(made, indent, style);
}

/** Comments right below that are indented further belong to what is above them. */
function pastInnerComments(text: string, end: number, column: number): number {
  let past = end;
  for (;;) {
    const next = pastLineBreak(text, past);
    const line = text.slice(next, lineEnd(text, next));
    const comment = /^( *)#/.exec(line);
    if (next === past || comment === null || (comment[1] ?? "").length <= column) return past;
    past = next + line.length;
  }
}

function replaceValue(
  text: string,
  { start, after, value: present }: YamlEntry,
  value: unknown,
  style: YamlStyle,
): string {
  if (present.kind === "flow") return splice(text, present.node.start, present.node.end, renderFlow(value));
  const end = Math.max(after, after + text.slice(after, present.end).trimEnd().length);
  const indent = " ".repeat(start - lineStart(text, start));
  const isItem = text[after - 1] === "-";
  const rendered = isItem ? ` ${renderBlock(value, `${indent}  `, style)}` : renderAfterColon(value, indent, style);
  return splice(text, after, end, rendered);
}

/** The mirror of `appendEntry`, `fillEmpty` and `newDocument`: the line break before the entry goes with it. */
function removeEntry(text: string, block: YamlBlock, index: number): string {
  const entry = block.entries[index];
  if (entry === undefined) return text;
  const from = lineStart(text, entry.start);
  if (text.slice(from, entry.start).trim() !== "") {
    return splice(text, entry.start, block.entries[index + 1]?.start ?? entry.end, "");
  }
  if (text[entry.end - 1] === "\n") return splice(text, from, entry.end, "");
  const to = lineEnd(text, entry.end);
  const isFirst = from === 0 || block.entries[index - 1]?.end === from;
  return isFirst ? splice(text, from, pastLineBreak(text, to), "") : splice(text, beforeLineBreak(text, from), to, "");
}

function newDocument(text: string, value: unknown, style: YamlStyle): string {
  const rendered = renderBlock(value, "", style);
  const end = /^\.\.\.(?=\s|$)/m.exec(text)?.index;
  if (end !== undefined) return splice(text, end, end, rendered + style.lineBreak);
  if (text === "") return rendered + style.lineBreak;
  if (!text.endsWith("\n")) return text + style.lineBreak + rendered;
  return text + rendered + (text.endsWith("\r\n") ? "\r\n" : "\n");
}

function flowStyle(style: YamlStyle): BracketStyle {
  return { ...style, comments: "hashes", flat: true, space: " " };
}

function styleOf(text: string, root: YamlValue | undefined): YamlStyle {
  return { lineBreak: lineBreakOf(text), unit: " ".repeat((root && unitOf(text, root)) ?? 2) };
}

/** By how much the first map that stands in another is indented. */
function unitOf(text: string, block: YamlValue): number | undefined {
  if (block.kind !== "map" && block.kind !== "list") return undefined;
  for (const { start, value } of block.entries) {
    const inner = value.kind === "map" ? value.entries[0] : undefined;
    if (block.kind === "map" && inner !== undefined)
      return indentAt(text, inner.start).length - indentAt(text, start).length;
    const unit = unitOf(text, value);
    if (unit !== undefined) return unit;
  }
  return undefined;
}

function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}
