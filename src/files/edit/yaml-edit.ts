/** Edits YAML: whole lines in blocks; bracketed values as in the other formats. */
import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  type CST,
  type Document,
  type Pair,
  type ParsedNode,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { isJsonObject } from "../../model/json.ts";
import {
  bracketScalars,
  type PlacedScalar,
  type BracketMember,
  type BracketNode,
  type BracketStyle,
  indexOfStep,
  insertMember,
  removeMember,
} from "./brackets.ts";
import {
  type FormatEditor,
  nestedValue,
  notAContainer,
  outermostRemovable,
  type PathStep,
  type SetResult,
} from "./text-editor.ts";
import { beforeLineBreak, indentAt, lineBreakOf, lineEnd, lineStart, pastLineBreak, splice } from "./text-lines.ts";
import { TextSyntaxError, TOO_DEEP_MESSAGE } from "./text-syntax.ts";

/** Words that some YAML reader or other takes for something else than a text. */
const AMBIGUOUS_WORDS = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i;
const TRIVIA: readonly string[] = ["space", "newline", "comment", "comma"];
/** Messages for the errors of the yaml package, whose own messages may quote the text. */
const YAML_ERROR_MESSAGES: Readonly<Record<string, string>> = {
  ALIAS_PROPS: "an alias cannot have an anchor or a tag",
  BAD_ALIAS: "the alias is wrong",
  BAD_COLLECTION_TYPE: "the tag does not fit what follows",
  BAD_DIRECTIVE: "the directive is wrong",
  BAD_DQ_ESCAPE: "the escape is wrong",
  BAD_INDENT: "the indentation is wrong",
  BAD_PROP_ORDER: "an anchor or tag is in the wrong place",
  BAD_SCALAR_START: "a plain value cannot begin with this character",
  BLOCK_AS_IMPLICIT_KEY: "a map or list is where a plain value is expected",
  BLOCK_IN_FLOW: "a block is between brackets",
  DUPLICATE_KEY: "this key is a duplicate",
  KEY_OVER_1024_CHARS: "the key is too long",
  MISSING_CHAR: "a closing bracket, quote, comma, colon or space is missing",
  MULTILINE_IMPLICIT_KEY: "a key spans several lines",
  MULTIPLE_ANCHORS: "there are two anchors",
  MULTIPLE_DOCS: "there is more than one document",
  MULTIPLE_TAGS: "there are two tags",
  RESOURCE_EXHAUSTION: TOO_DEEP_MESSAGE,
  TAB_AS_INDENT: "tabs cannot indent",
  TAG_RESOLVE_FAILED: "the tag is unknown or does not fit",
  UNEXPECTED_TOKEN: "this does not belong here",
};
export const YAML_EDITOR: FormatEditor = { format: "yaml", read: readYaml, set: setInYaml, remove: removeFromYaml };

function readYaml(text: string): unknown {
  const document = parseYaml(text);
  const [error] = document.errors;
  if (error !== undefined) {
    throw TextSyntaxError.at(text, error.pos[0], YAML_ERROR_MESSAGES[error.code] ?? "this is not YAML");
  }
  try {
    return document.toJS() ?? undefined;
  } catch {
    // Aliases that multiply without end, or point at nothing.
    throw new TextSyntaxError("the aliases cannot be resolved", 1, 1);
  }
}

function setInYaml(text: string, path: readonly PathStep[], value: unknown): SetResult {
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
    const entry: YamlEntry | undefined = at.entries[indexOfEntry(at, step)];
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

function removeFromYaml(text: string, path: readonly PathStep[], alsoFrom: number): string {
  const trail: FoundStep[] = [];
  let at: YamlValue | BracketNode | undefined = outlineYaml(text);
  let before = 0;
  for (const step of path) {
    const place: FoundStep | undefined = at === undefined ? undefined : findStep(text, at, step, before);
    if (place === undefined) return text;
    trail.push(place);
    at = place.value;
    before = place.after;
  }
  return (
    trail[outermostRemovable(trail.length, Math.max(alsoFrom, 0), (index) => trail[index]?.isSole === true)]?.cut() ??
    text
  );
}

/** A step that was found, and how to take it out. */
interface FoundStep {
  readonly value: YamlValue | BracketNode;
  readonly after: number;
  /** Nothing else, not even a comment, is in the container. */
  readonly isSole: boolean;
  cut(): string;
}

function findStep(text: string, at: YamlValue | BracketNode, step: PathStep, before: number): FoundStep | undefined {
  if (at.kind === "flow") return findStep(text, at.node, step, before);
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
  const index = indexOfEntry(at, step);
  const entry = at.entries[index];
  if (entry === undefined) return undefined;
  const isSole = at.entries.length === 1 && !text.slice(before, entry.start).includes("#");
  return { value: entry.value, after: entry.after, isSole, cut: () => removeEntry(text, at, index) };
}

function indexOfEntry(block: YamlBlock, step: PathStep): number {
  if (typeof step === "string") return block.kind === "map" ? block.entries.findIndex(({ key }) => key === step) : -1;
  if (block.kind !== "list") return -1;
  return block.entries.findIndex(({ value }) => {
    if (value.kind === "flow") return value.node.members[indexOfStep(value.node, step.key)]?.value.string === step.is;
    if (value.kind !== "map") return false;
    const field = value.entries[indexOfEntry(value, step.key)]?.value;
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

/** The mirror of `appendEntry`, `fillEmpty` and `newDocument`: removes the line break before the entry too. */
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

/** By how much the first nested map is indented. */
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

// Rendering values: blocks, and flow style between brackets.

interface YamlStyle {
  readonly lineBreak: string;
  /** One step of indentation; YAML knows spaces only. */
  readonly unit: string;
}

/** The text after a colon, including the space or line break. `indent` is that of the key. */
function renderAfterColon(value: unknown, indent: string, style: YamlStyle): string {
  if (isFlat(value)) return ` ${renderFlow(value)}`;
  const inner = indent + style.unit;
  return `${style.lineBreak}${inner}${renderBlock(value, inner, style)}`;
}

/** The lines of a map or list without the indent of the first. */
function renderBlock(value: unknown, indent: string, style: YamlStyle): string {
  const between = `${style.lineBreak}${indent}`;
  if (Array.isArray(value)) return value.map((item) => renderItem(item, indent, style)).join(between);
  if (!isJsonObject(value) || isFlat(value)) return renderFlow(value);
  return Object.entries(value)
    .map(([key, item]) => renderPair(key, item, indent, style))
    .join(between);
}

function renderPair(key: string, value: unknown, indent: string, style: YamlStyle): string {
  return `${renderText(key)}:${renderAfterColon(value, indent, style)}`;
}

/** An item of a list; its contents line up behind its dash. */
function renderItem(value: unknown, indent: string, style: YamlStyle): string {
  return `- ${renderBlock(value, `${indent}  `, style)}`;
}

function renderFlow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderFlow).join(", ")}]`;
  if (!isJsonObject(value)) return typeof value === "string" ? renderText(value) : JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  return `{ ${entries.map(([key, item]) => `${renderText(key)}: ${renderFlow(item)}`).join(", ")} }`;
}

function isFlat(value: unknown): boolean {
  return typeof value !== "object" || value === null || Object.keys(value).length === 0;
}

/** Plain only where no reader can be in doubt. A JSON text is a YAML text but for the control characters it leaves. */
function renderText(text: string): string {
  if (/^[A-Za-z_/][\w/.+-]*$/.test(text) && !AMBIGUOUS_WORDS.test(text)) return text;
  return JSON.stringify(text).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// The entries of a document with their offsets: blocks here, bracketed values as BracketNode.

interface YamlBlock {
  readonly kind: "map" | "list";
  readonly entries: readonly YamlEntry[];
  /** The end of its last entry; comments do not count. */
  readonly end: number;
}

interface YamlEntry {
  /** Of a map's entry. */
  readonly key?: string;
  /** The offset of the key, or of the dash of an item. */
  readonly start: number;
  /** Behind the colon or the dash. */
  readonly after: number;
  readonly value: YamlValue;
  readonly end: number;
}

type YamlValue =
  | YamlBlock
  | { readonly kind: "flow"; readonly node: BracketNode; readonly end: number }
  /** A key with nothing behind it, which YAML takes for null. */
  | { readonly kind: "empty"; readonly end: number }
  | { readonly kind: "scalar"; readonly start: number; readonly end: number; readonly string?: string };

function parseYaml(text: string): Document.Parsed {
  return parseDocument(text, { keepSourceTokens: true, prettyErrors: false });
}

/** Undefined for a text without a document. */
function outlineYaml(text: string): YamlValue | undefined {
  const { contents } = parseYaml(text);
  const root = valueOfOfYamlTree(text, contents, 0);
  return root.kind === "empty" ? undefined : root;
}

function valueOfOfYamlTree(text: string, node: unknown, fallback: number): YamlValue {
  if (!isNode(node) || node.range == null) return { kind: "empty", end: fallback };
  if ((isMap(node) || isSeq(node)) && isBracketed(node)) {
    return { kind: "flow", node: bracketOf(node, fallback), end: node.range[1] };
  }
  if (isMap(node))
    return blockOf(
      "map",
      node.items.map((pair) => entryOfPair(text, pair)),
      node.range[0],
    );
  if (isSeq(node)) return blockOf("list", itemsOf(text, node), node.range[0]);
  const [start, end] = node.range;
  if (isScalar(node) && node.source === "" && start === end) return { kind: "empty", end: fallback };
  const string = isScalar(node) && typeof node.value === "string" ? { string: node.value } : {};
  return { kind: "scalar", start, end: isAlias(node) ? end : contentEnd(text, start, end), ...string };
}

function blockOf(kind: "map" | "list", entries: readonly YamlEntry[], start: number): YamlBlock {
  return { kind, entries, end: entries.at(-1)?.end ?? start };
}

/** A block scalar extends over the empty lines after it; they count only if it says to keep them. */
function contentEnd(text: string, start: number, end: number): number {
  const isKept = /^[|>]\d?\+/.test(text.slice(start, start + 3));
  return isKept ? end : start + text.slice(start, end).trimEnd().length;
}

function entryOfPair(text: string, pair: Pair): YamlEntry {
  const key = scalarKey(pair);
  const token = pair.srcToken;
  const keyEnd = isNode(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  const colon = token?.sep?.find(({ type }) => type === "map-value-ind");
  const after = colon === undefined ? keyEnd : colon.offset + 1;
  const value = valueOfOfYamlTree(text, pair.value, after);
  return { ...key, start: startOf(token?.start, pair.key), after, value, end: value.end };
}

function itemsOf(text: string, node: YAMLSeq): YamlEntry[] {
  const tokens = node.srcToken?.type === "block-seq" ? node.srcToken.items : [];
  const dashes = tokens.flatMap(({ start }) => start.filter(({ type }) => type === "seq-item-ind"));
  return node.items.map((item, index) => {
    const start = dashes[index]?.offset ?? 0;
    const value = valueOfOfYamlTree(text, item, start + 1);
    return { start, after: start + 1, value, end: value.end };
  });
}

function isBracketed(node: YAMLMap | YAMLSeq): boolean {
  return node.srcToken?.type === "flow-collection";
}

function bracketOf(node: unknown, fallback: number): BracketNode {
  if (!isNode(node) || node.range == null) return { kind: "scalar", start: fallback, end: fallback, members: [] };
  const [start, end] = node.range;
  if (!isMap(node) && !isSeq(node)) {
    const string = isScalar(node) && typeof node.value === "string" ? { string: node.value } : {};
    return { kind: "scalar", start, end, members: [], ...string };
  }
  const tokens = node.srcToken?.type === "flow-collection" ? node.srcToken.items : [];
  const members = node.items.map((item, index): BracketMember => {
    const comma = tokens[index + 1]?.start.find(({ type }) => type === "comma");
    const member = isPair(item) ? memberOf(item) : itemOf(item, tokens[index]?.start);
    return comma === undefined ? member : { ...member, comma: comma.offset };
  });
  return { kind: isMap(node) ? "object" : "list", start, end, members };
}

function memberOf(pair: Pair): BracketMember {
  const keyEnd = isNode(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  const value = bracketOf(pair.value, keyEnd);
  const token = pair.srcToken;
  const colon = token?.sep?.find(({ type }) => type === "map-value-ind");
  const end = Math.max(value.end, colon === undefined ? keyEnd : colon.offset + 1);
  return { ...scalarKey(pair), start: startOf(token?.start, pair.key), end, value };
}

function itemOf(item: unknown, tokens: readonly CST.SourceToken[] | undefined): BracketMember {
  const value = bracketOf(item, 0);
  return { start: startOf(tokens, item), end: value.end, value };
}

function scalarKey(pair: Pair): { key?: string } {
  return isScalar(pair.key) ? { key: String(pair.key.value) } : {};
}

/** An anchor, a tag or the question mark of a long key belongs to the entry. */
function startOf(tokens: readonly CST.SourceToken[] | undefined, node: unknown): number {
  const first = tokens?.find(({ type }) => !TRIVIA.includes(type));
  if (first !== undefined) return first.offset;
  // Every node of a parsed document has a range.
  return isNode(node) ? ((node as ParsedNode).range[0] ?? 0) : 0;
}

export function yamlScalars(text: string): PlacedScalar[] {
  const root = outlineYaml(text);
  return root === undefined ? [] : scalarsOf(text, root, []);
}

function scalarsOf(text: string, value: YamlValue, path: PlacedScalar["path"]): PlacedScalar[] {
  switch (value.kind) {
    case "empty":
      return [];
    case "flow":
      return bracketScalars(text, value.node, path);
    case "scalar":
      return [{ path, start: value.start, end: value.end, value: value.string ?? text.slice(value.start, value.end) }];
    default:
      return value.entries.flatMap((entry, index) => scalarsOf(text, entry.value, [...path, entry.key ?? index]));
  }
}
