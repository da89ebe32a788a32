/** The frontmatter of a SKILL.md as plain data. One parse for a file in good order; a damaged one is read entry by entry. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { SkillWarning } from "../../model/skill.ts";
import { decodeText, type Split, splitFrontmatter, splitUnterminated } from "./split-frontmatter.ts";
import { cutEntries, type Entry, readAsText, type ReadEntry, readEntry } from "./repair-frontmatter.ts";
import { ReadWarnings, abbreviate } from "./read-warnings.ts";
import { type ValuePath, YamlText } from "./yaml-text.ts";

/** Where things stand in the file. */
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
  readonly warnings: readonly SkillWarning[];
}

/** More than this is no frontmatter; real ones have a kilobyte or two. */
const MAX_FRONTMATTER_LENGTH = 32 * 1024;

/** In a damaged file, where each key is read on its own. */
const MAX_ENTRIES = 300;

export function readFrontmatter(bytes: Uint8Array): Frontmatter {
  const notes = new ReadWarnings();
  const found = findFrontmatter(decodeText(bytes, notes), notes);
  return { ...found, warnings: notes.sorted() };
}

/** The same with the warnings left in `notes`. */
export function findFrontmatter(text: string, notes: ReadWarnings): Omit<Frontmatter, "warnings"> {
  const split = splitFrontmatter(text, notes);
  if (split.yaml === undefined) return noFrontmatter(split);
  if (split.yaml.length > MAX_FRONTMATTER_LENGTH) {
    const message = `The frontmatter has more than ${MAX_FRONTMATTER_LENGTH} characters; all in it is read as text.`;
    notes.add("FRONTMATTER_TOO_LARGE", message, split.yamlLine);
    return fromEntries(text, split.yaml, split, notes, (entry, line) => readAsText(entry, line, new ReadWarnings()));
  }
  const yaml = new YamlText(split.yaml, split.yamlLine);
  if (yaml.error === undefined && isJsonObject(yaml.value)) return fromYaml(yaml, yaml.value, split, notes);
  const shorter = yaml.error === undefined ? undefined : splitUnterminated(text, split);
  if (shorter?.yaml !== undefined) {
    const short = new YamlText(shorter.yaml, shorter.yamlLine);
    if (short.error === undefined && isJsonObject(short.value)) {
      const message = `The frontmatter has no closing "---"; it is read as ending before line ${shorter.bodyLine}.`;
      notes.add("FRONTMATTER_UNTERMINATED", message, shorter.bodyLine - 1);
      return fromYaml(short, short.value, shorter, notes);
    }
  }
  return fromEntries(text, split.yaml, split, notes, (entry, line) => readEntry(entry, line, notes));
}

function noFrontmatter({ body, bodyLine }: Split): Omit<Frontmatter, "warnings"> {
  return { value: {}, body, bodyLine, lineOf: () => 1, sourceOf: () => undefined, textOf: () => undefined };
}

function fromYaml(yaml: YamlText, value: JsonObject, split: Split, notes: ReadWarnings): Omit<Frontmatter, "warnings"> {
  warnProblems(yaml, notes);
  return {
    value,
    body: split.body,
    bodyLine: split.bodyLine,
    lineOf: (path) => yaml.lineOf(path),
    sourceOf: (path) => yaml.sourceOf(path),
    textOf: (path) => yaml.textOf(path),
  };
}

function warnProblems(yaml: YamlText, notes: ReadWarnings): void {
  for (const { code, message, offset } of yaml.surprises) notes.add(code, message, yaml.lineOfOffset(offset));
  if (yaml.unknownTag !== undefined) {
    notes.add("TAG_IGNORED", "YAML tags have no meaning here; the value is used as written.", yaml.unknownTag.line);
  }
}

function fromEntries(
  text: string,
  yaml: string,
  split: Split,
  notes: ReadWarnings,
  read: (entry: Entry, line: number) => ReadEntry,
): Omit<Frontmatter, "warnings"> {
  const { entries, stray, joined, colons } = cutEntries(yaml);
  const lineAt = (index: number): number => split.yamlLine + index;
  if (entries.length === 0) {
    if (yaml.trim() === "") {
      notes.add("FRONTMATTER_EMPTY", "The frontmatter is empty.", 1);
      return noFrontmatter(split);
    }
    // Nothing is lost: what stands there may be the beginning of the instructions, below a rule.
    notes.add(
      "FRONTMATTER_UNREADABLE",
      "The text between the marks has no keys; it is read as part of the body.",
      split.yamlLine,
    );
    return noFrontmatter({ yamlLine: 1, body: text, bodyLine: 1 });
  }
  for (const index of stray) notes.add("LINE_IGNORED", "The line belongs to no key and is ignored.", lineAt(index));
  for (const index of joined)
    notes.add("LINE_JOINED", "The line is read as a continuation of the one above.", lineAt(index));
  for (const index of colons) notes.add("COLON_REPAIRED", 'A key needs ": " after it.', lineAt(index));
  const value: JsonObject = {};
  const parts = new Map<string, { line: number; yaml?: YamlText }>();
  for (const [index, entry] of entries.entries()) {
    const line = lineAt(entry.start);
    if (index === MAX_ENTRIES) {
      notes.add("TOO_MANY_KEYS", `Only the first ${MAX_ENTRIES} keys are read.`, line);
      break;
    }
    if (entry.key === "__proto__") continue;
    if (parts.has(entry.key)) {
      notes.add("DUPLICATE_KEY", `"${abbreviate(entry.key)}" appears more than once; the last one is used.`, line);
    }
    const { value: one, yaml: parsed } = read(entry, line);
    if (parsed !== undefined) warnProblems(parsed, notes);
    value[entry.key] = one;
    parts.set(entry.key, parsed === undefined ? { line } : { line, yaml: parsed });
  }
  const partOf = (path: ValuePath) => parts.get(String(path[0]));
  return {
    value,
    body: split.body,
    bodyLine: split.bodyLine,
    lineOf: (path) => partOf(path)?.yaml?.lineOf(path) ?? partOf(path)?.line ?? split.yamlLine,
    sourceOf: (path) => partOf(path)?.yaml?.sourceOf(path),
    textOf: (path) => partOf(path)?.yaml?.textOf(path),
  };
}
