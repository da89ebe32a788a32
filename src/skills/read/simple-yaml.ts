/**
 * Most frontmatter uses very little of YAML: lines of `key: text`, a block of text, one level of keys or items below, JSON
 * on one line. That is read here in a fraction of the parser's time; whatever could mean anything else to YAML is left to
 * the parser, so this needs no word about errors.
 */
import type { JsonObject } from "../../model/json.ts";
import type { ValuePath } from "./yaml-text.ts";
import { parseOneLineJson } from "./one-line-json.ts";

export interface SimpleYaml {
  readonly value: JsonObject;
  /** From 0. */
  lineOf(path: ValuePath): number;
}

const KEY = /^( *)([A-Za-z][\w-]*):(?: +(.*))?$/;
const ITEM = /^( *)- +(.*)$/;
/**
 * Quoted text without quotes and escapes inside; or text that begins like a word or a version and holds no colon or hash
 * that could end it. No control characters.
 */
const TEXT =
  /^(?:"([^"\\\p{Cc}\uFEFF]*)"|'([^'\p{Cc}\uFEFF]*)'|((?:[\p{L}\p{So}]|\d+\.\d+\.\d)(?:[^:#\p{Cc}\uFEFF]|:(?! |$)|(?<! )#)*)) *$/u;
const WORDS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);
/** Other spellings of words that are no text to YAML. */
const SPECIAL_WORD = /^(?:null|true|false)$/i;
const BLOCK = /^([|>])(-?) *$/;

/** @returns undefined if the text is not that simple. */
export function readSimpleYaml(text: string): SimpleYaml | undefined {
  const lines = text.split(text.includes("\r") ? /\r?\n/ : "\n");
  const value: JsonObject = {};
  const places = new Map<string, number>();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line === "") {
      at += 1;
      continue;
    }
    const [, indent, key = "", rest = ""] = KEY.exec(line) ?? [];
    if (indent !== "" || places.has(key)) return undefined;
    places.set(key, at);
    const end = endOfEntry(lines, at + 1);
    const below = lines.slice(at + 1, end);
    const read = below.length === 0 ? readText(rest) : readBelow(rest, below, key, at + 1, places);
    if (read === undefined) return undefined;
    value[key] = read;
    at = end;
  }
  if (places.size === 0) return undefined;
  return { value, lineOf: (path) => places.get(path.slice(0, 2).join("\n")) ?? places.get(String(path[0])) ?? 0 };
}

/** Items of a list may stand at the margin. Blank lines at the end belong to nobody. */
function endOfEntry(lines: readonly string[], start: number): number {
  let end = start;
  for (let at = start; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.startsWith(" ") || line.startsWith("- ")) end = at + 1;
    else if (line !== "") break;
  }
  return end;
}

function readText(text: string): unknown {
  const [, double, single, bare] = TEXT.exec(text) ?? [];
  if (bare !== undefined) {
    // Only spaces: YAML keeps other blanks.
    const word = bare.replace(/(?<! ) +$/, "");
    return WORDS.get(word) ?? (SPECIAL_WORD.test(word) ? undefined : word);
  }
  return double ?? single ?? parseOneLineJson(text);
}

function readBelow(
  rest: string,
  below: readonly string[],
  key: string,
  line: number,
  places: Map<string, number>,
): unknown {
  if (rest !== "") return readBlock(rest, below);
  if (ITEM.test(below[0] ?? "")) return readItems(below);
  const value: JsonObject = {};
  const depth = KEY.exec(below[0] ?? "")?.[1];
  if (depth === undefined || depth === "") return undefined;
  for (const [index, one] of below.entries()) {
    const [, indent, name = "", text = ""] = KEY.exec(one) ?? [];
    const read = indent === depth && !Object.hasOwn(value, name) ? readText(text) : undefined;
    if (read === undefined) return undefined;
    value[name] = read;
    places.set(`${key}\n${name}`, line + index);
  }
  return value;
}

function readItems(below: readonly string[]): unknown {
  const depth = ITEM.exec(below[0] ?? "")?.[1];
  const items: unknown[] = [];
  for (const one of below) {
    const [, indent, text = ""] = ITEM.exec(one) ?? [];
    const read = indent === depth ? readText(text) : undefined;
    if (read === undefined) return undefined;
    items.push(read);
  }
  return items;
}

/** A block whose lines are all moved in alike and hold neither blank lines nor blanks at the end. */
function readBlock(rest: string, below: readonly string[]): string | undefined {
  const [, style, strip] = BLOCK.exec(rest) ?? [];
  const indent = /^ +/.exec(below[0] ?? "")?.[0];
  if (style === undefined || indent === undefined) return undefined;
  const texts: string[] = [];
  for (const line of below) {
    const text = line.slice(indent.length);
    if (!line.startsWith(indent) || !/^[^ ](?:.*[^ ])?$/.test(text) || /[\p{Cc}\uFEFF]/u.test(text)) return undefined;
    texts.push(text);
  }
  return texts.join(style === ">" ? " " : "\n") + (strip === "-" ? "" : "\n");
}
