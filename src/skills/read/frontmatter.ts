/** The frontmatter of a SKILL.md as plain data: parsed once if it is valid YAML, else entry by entry. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { SkillWarning } from "../../model/skill.ts";
import { decodeText, type Split, splitFrontmatter, splitUnterminated } from "./split-frontmatter.ts";
import { cutEntries, type Entry, readAsText, type ReadEntry, readEntry } from "./repair-frontmatter.ts";
import { ReadWarnings, abbreviate } from "./read-warnings.ts";
import { type ValuePath, YamlText } from "./yaml-text.ts";

/** Where values are in the file. */
export interface SourceLocations {
  /** The line of a key or an item, or of the nearest thing around it. */
  lineOf(path: ValuePath): number;
  /** A scalar as it was written: `1.10` where the value is 1.1. */
  sourceOf(path: ValuePath): string | undefined;
  /** All of a value as it was written, unless it had to be repaired. */
  textOf(path: ValuePath): string | undefined;
}

export interface Frontmatter extends SourceLocations {
  readonly value: JsonObject;
  readonly body: string;
  /** The line of the file in which the body begins, from 1. */
  readonly bodyLine: number;
}

/** Real frontmatter has a kilobyte or two. */
const MAX_FRONTMATTER_LENGTH = 32 * 1024;

/** In a damaged file, where each key is read on its own. */
const MAX_ENTRIES = 300;

export function readFrontmatter(bytes: Uint8Array): Frontmatter & { readonly warnings: readonly SkillWarning[] } {
  const warnings = new ReadWarnings();
  const found = findFrontmatter(decodeText(bytes, warnings), warnings);
  return { ...found, warnings: warnings.sorted() };
}

/** The same, with its warnings added to `warnings`. */
export function findFrontmatter(text: string, warnings: ReadWarnings): Frontmatter {
  const split = splitFrontmatter(text, warnings);
  if (split.yaml === undefined) return noFrontmatter(split);
  if (split.yaml.length > MAX_FRONTMATTER_LENGTH) {
    const message = `The frontmatter has more than ${MAX_FRONTMATTER_LENGTH} characters; all in it is read as text.`;
    warnings.add("FRONTMATTER_TOO_LARGE", message, split.yamlLine);
    return fromEntries(text, split.yaml, split, warnings, (entry, line) => readAsText(entry, line, new ReadWarnings()));
  }
  const yaml = new YamlText(split.yaml, split.yamlLine);
  if (yaml.error === undefined && isJsonObject(yaml.value)) return fromYaml(yaml, yaml.value, split, warnings);
  const shorter = yaml.error === undefined ? undefined : splitUnterminated(text, split);
  if (shorter?.yaml !== undefined) {
    const short = new YamlText(shorter.yaml, shorter.yamlLine);
    if (short.error === undefined && isJsonObject(short.value)) {
      const message = `The frontmatter has no closing "---"; it is read as ending before line ${shorter.bodyLine}.`;
      warnings.add("FRONTMATTER_UNTERMINATED", message, shorter.bodyLine - 1);
      return fromYaml(short, short.value, shorter, warnings);
    }
  }
  return fromEntries(text, split.yaml, split, warnings, (entry, line) => readEntry(entry, line, warnings));
}

function noFrontmatter({ body, bodyLine }: Split): Frontmatter {
  return { value: {}, body, bodyLine, lineOf: () => 1, sourceOf: () => undefined, textOf: () => undefined };
}

function fromYaml(yaml: YamlText, value: JsonObject, split: Split, warnings: ReadWarnings): Frontmatter {
  warnProblems(yaml, warnings);
  return {
    value: withWholeDescription(yaml, value, warnings),
    body: split.body,
    bodyLine: split.bodyLine,
    lineOf: (path) => yaml.lineOf(path),
    sourceOf: (path) => yaml.sourceOf(path),
    textOf: (path) => yaml.textOf(path),
  };
}

/** A description is a sentence, whatever YAML makes of a number sign or of brackets in it. */
function withWholeDescription(yaml: YamlText, value: JsonObject, warnings: ReadWarnings): JsonObject {
  const path = ["description"];
  const { description } = value;
  const written = description === null ? "" : description;
  const comment = typeof written === "string" ? yaml.commentAfter(path) : undefined;
  if (typeof written === "string" && comment !== undefined) {
    const message = `YAML reads what follows " #" as a comment; the description is kept whole. Put it in quotes.`;
    warnings.add("UNQUOTED_COMMENT", message, yaml.lineOf(path));
    return { ...value, description: `${written}${comment}`.trim() };
  }
  const text = typeof description === "object" && description !== null ? yaml.textOf(path)?.trim() : undefined;
  if (text === undefined || !/^[[{]/.test(text)) return value;
  const message = `The description begins with "${text[0]}" and needs quotes; it is read as text.`;
  warnings.add("UNQUOTED_SPECIAL", message, yaml.lineOf(path));
  return { ...value, description: text.replaceAll(/\s+/g, " ") };
}

function warnProblems(yaml: YamlText, warnings: ReadWarnings): void {
  for (const { code, message, offset } of yaml.problems) warnings.add(code, message, yaml.lineOfOffset(offset));
  if (yaml.unknownTag !== undefined) {
    warnings.add("TAG_IGNORED", "YAML tags have no meaning here; the value is used as written.", yaml.unknownTag.line);
  }
}

function fromEntries(
  text: string,
  yaml: string,
  split: Split,
  warnings: ReadWarnings,
  read: (entry: Entry, line: number) => ReadEntry,
): Frontmatter {
  const { entries, stray, joined, colons } = cutEntries(yaml);
  const lineAt = (index: number): number => split.yamlLine + index;
  if (entries.length === 0) {
    if (yaml.trim() === "") {
      warnings.add("FRONTMATTER_EMPTY", "The frontmatter is empty.", 1);
      return noFrontmatter(split);
    }
    // Nothing is lost: this may be the beginning of the instructions, below a horizontal rule.
    warnings.add(
      "FRONTMATTER_UNREADABLE",
      "The text between the marks has no keys; it is read as part of the body.",
      split.yamlLine,
    );
    return noFrontmatter({ yamlLine: 1, body: text, bodyLine: 1 });
  }
  for (const index of stray) warnings.add("LINE_IGNORED", "The line belongs to no key and is ignored.", lineAt(index));
  for (const index of joined)
    warnings.add("LINE_JOINED", "The line is read as a continuation of the one above.", lineAt(index));
  for (const index of colons) warnings.add("COLON_REPAIRED", 'A key needs ": " after it.', lineAt(index));
  const value: JsonObject = {};
  const parts = new Map<string, { line: number; yaml?: YamlText }>();
  for (const [index, entry] of entries.entries()) {
    const line = lineAt(entry.start);
    if (index === MAX_ENTRIES) {
      warnings.add("TOO_MANY_KEYS", `Only the first ${MAX_ENTRIES} keys are read.`, line);
      break;
    }
    if (entry.key === "__proto__") continue;
    if (parts.has(entry.key)) {
      warnings.add("DUPLICATE_KEY", `"${abbreviate(entry.key)}" appears more than once; the last one is used.`, line);
    }
    const { value: one, yaml: parsed } = read(entry, line);
    if (parsed !== undefined) warnProblems(parsed, warnings);
    const whole = parsed === undefined ? {} : withWholeDescription(parsed, { [entry.key]: one }, warnings);
    value[entry.key] = whole[entry.key] ?? one;
    parts.set(entry.key, parsed === undefined ? { line } : { line, yaml: parsed });
  }
  const entryAt = (path: ValuePath) => parts.get(String(path[0]));
  return {
    value,
    body: split.body,
    bodyLine: split.bodyLine,
    lineOf: (path) => entryAt(path)?.yaml?.lineOf(path) ?? entryAt(path)?.line ?? split.yamlLine,
    sourceOf: (path) => entryAt(path)?.yaml?.sourceOf(path),
    textOf: (path) => entryAt(path)?.yaml?.textOf(path),
  };
}
