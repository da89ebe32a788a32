/** Reads one top-level entry that YAML cannot read as it stands, changing as little as will do. */
import { type Entry, readKey } from "./entries.ts";
import { parseJson5 } from "./json5-text.ts";
import { type Notes, shown } from "./notes.ts";
import { quoteValues, reindent, type Repair, type Repaired, untab, whyQuoted, withoutQuotes } from "./repair-lines.ts";
import { YamlText } from "./yaml-text.ts";

/** What is meant as text whatever it looks like. */
const TEXT_KEYS = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "homepage",
  "version",
  "author",
  "argument-hint",
]);

const MOST_CHARACTERS = 8 * 1024;

export interface ReadEntry {
  readonly value: unknown;
  /** Where it could be read as YAML. */
  readonly yaml?: YamlText;
}

/** @param firstLine Line of the entry in the file. */
export function readEntry(entry: Entry, firstLine: number, notes: Notes): ReadEntry {
  const tell = (repairs: readonly Repair[]): void => {
    for (const { code, message, index } of repairs) notes.add(code, message, firstLine + index);
  };
  const attempt = (lines: readonly string[], repairs: readonly Repair[]): ReadEntry | undefined => {
    const yaml = new YamlText(lines.join("\n"), firstLine);
    const value = yaml.error === undefined && isMapping(yaml.value) ? yaml.value[entry.key] : undefined;
    if (value === undefined) return undefined;
    tell(repairs);
    return { value, yaml };
  };

  // Each attempt parses again; what is this large was hardly written by hand.
  if (entry.lines.reduce((sum, line) => sum + line.length, 0) > MOST_CHARACTERS)
    return readAsText(entry, firstLine, notes);
  const asIs = attempt(entry.lines, []);
  if (asIs !== undefined) return asIs;
  const spaced = untab(entry.lines);
  const flow = readFlow(spaced.lines);
  if (flow !== undefined) {
    notes.add("FLOW_NOT_YAML", `"${shown(entry.key)}" is no valid YAML, but JSON5; it is read as that.`, firstLine);
    return { value: flow };
  }
  if (!TEXT_KEYS.has(entry.key.toLowerCase())) {
    for (const steps of [[untab], [untab, quoteValues], [untab, reindent], [untab, quoteValues, reindent]]) {
      const { lines, repairs } = apply(steps, entry.lines);
      const read = attempt(lines, repairs);
      if (read !== undefined) return read;
    }
  }
  return readAsText(entry, firstLine, notes);
}

function apply(steps: readonly ((lines: readonly string[]) => Repaired)[], lines: readonly string[]): Repaired {
  return steps.reduce<Repaired>(
    (before, step) => {
      const after = step(before.lines);
      return { lines: after.lines, repairs: [...before.repairs, ...after.repairs] };
    },
    { lines, repairs: [] },
  );
}

/** JSON and JSON5 that YAML objects to: comments, closing brackets at the margin, no space after colons. */
function readFlow(lines: readonly string[]): unknown {
  return parseJson5([readKey(lines[0] ?? "")?.rest ?? "", ...lines.slice(1)].join("\n"));
}

/** What stands behind the key, in one line. Needs no parser. */
export function readAsText(entry: Entry, firstLine: number, notes: Notes): ReadEntry {
  const [first = "", ...more] = entry.lines;
  const others = more.filter((line) => !line.startsWith("#"));
  const rest = (readKey(first)?.rest ?? "").trim();
  const block = /^[|>][-+0-9]*$/.test(rest);
  const parts = [block ? "" : rest, ...others.map((line) => line.trim())].filter((part) => part !== "");
  const text = parts.join(" ");
  const what = `"${shown(entry.key)}"`;
  const why = whyQuoted(text, what) ?? {
    code: "VALUE_AS_TEXT",
    message: `${what} is no valid YAML; it is read as text.`,
  };
  notes.add(why.code, why.message, firstLine);
  return { value: withoutQuotes(text) };
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
