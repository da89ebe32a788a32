/** The difference between two definitions, for a person who decides whether to trust the new one. */
import { diffSequences, type Step } from "../../base/sequence-diff.ts";
import type { DefinitionChange } from "../../contract/catalog-schemas.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../model/json.ts";
import { showHidden } from "../../base/visible-text.ts";
import { formatPath } from "../../config/config-document.ts";

const VALUE_LENGTH = 2000;
/** A definition may differ in a thousand places; the first ones are enough to refuse it. */
const MAX_CHANGES = 200;
/** Of changes that are shown side by side. */
const MAX_SIDES = 50;

/** Hints by which a client decides how careful to be. Changes there are reported first. */
const SECURITY_HINTS: readonly string[] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/** Pairs of words that are compared in one definition: as many as two long texts have. */
const MAX_PAIRS = 2_500_000;
/** In all definitions of a report, which is made while others wait. */
const MAX_REPORT_PAIRS = 10_000_000;

/** For all definitions that are compared at once. */
export function reportBudget(): DiffBudget {
  return { pairs: MAX_REPORT_PAIRS };
}

/**
 * Lines without colour: `~` changed, `+` added, `-` removed, details indented. Empty where nothing differs. Once the budget is
 * spent, texts are shown as they were and are, without the words that differ.
 */
export function renderDiff(before: JsonObject, after: JsonObject, report: DiffBudget = reportBudget()): string[] {
  const granted = Math.min(MAX_PAIRS, report.pairs);
  const budget = { pairs: granted };
  const changes = changesBetween(before, after).toSorted((a, b) => rank(a) - rank(b));
  const lines = changes.slice(0, MAX_CHANGES).flatMap((change) => renderChange(change, budget));
  report.pairs -= granted - budget.pairs;
  if (changes.length > MAX_CHANGES) lines.push(`… and ${changes.length - MAX_CHANGES} more changes`);
  return lines;
}

/** The same for a person who sees both sides beside each other. */
export function compareDefinitions(
  before: JsonObject,
  after: JsonObject,
): Omit<DefinitionChange, "state" | "pinnedAt"> {
  const budget = { pairs: MAX_PAIRS };
  const changes = changesBetween(before, after).toSorted((a, b) => rank(a) - rank(b));
  return {
    changes: changes.slice(0, MAX_SIDES).map((change) => ({
      place: change.path.length === 0 ? "definition" : placeOf(change.path),
      ...sidesOf(change, budget),
    })),
    more: Math.max(0, changes.length - MAX_SIDES),
  };
}

type Sides = Pick<DefinitionChange["changes"][number], "before" | "after">;

function sidesOf(change: Change, budget: DiffBudget): Sides {
  const before = "before" in change ? change.before : undefined;
  const after = "after" in change ? change.after : undefined;
  if (typeof before === "string" && typeof after === "string") return textSides(before, after, budget);
  const whole = (value: unknown): Sides["before"] =>
    value === undefined ? null : [{ text: plainText(value), changed: true }];
  return { before: whole(before), after: whole(after) };
}

function textSides(before: string, after: string, budget: DiffBudget): Sides {
  const [old, fresh] = [splitWords(before), splitWords(after)];
  const pairs = old.length * fresh.length;
  if (old.length > MAX_WORDS || fresh.length > MAX_WORDS || pairs > budget.pairs)
    return {
      before: [{ text: plainText(before), changed: true }],
      after: [{ text: plainText(after), changed: true }],
    };
  budget.pairs -= pairs;
  const runs = joinRuns(diffSequences(old, fresh));
  const side = (kind: "removed" | "added"): NonNullable<Sides["before"]> =>
    runs
      .filter((run) => run.kind === "same" || run.kind === kind)
      .map(({ text, ...run }) => ({ text: plainText(text), changed: run.kind === kind }));
  return { before: side("removed"), after: side("added") };
}

/** A text as it is, with hidden characters shown; anything else as JSON. */
function plainText(value: unknown): string {
  const text = typeof value === "string" ? linesOf(value).join("\n") : showHidden(canonicalJson(value));
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}… (${text.length} characters)` : text;
}

function rank({ path }: Change): number {
  if (path[0] === "annotations") return 0;
  if (path[0] === "description" || path[0] === "title") return 1;
  if (path[0] === "inputSchema") return 2;
  return 3;
}

function renderChange(change: Change, budget: DiffBudget): string[] {
  const { path } = change;
  if (path[0] === "annotations") return renderAnnotations(change);
  const place = placeOf(path);
  if (change.kind === "added") return [`+ ${place}: ${valueText(change.after)}`];
  if (change.kind === "removed") return [`- ${place}: ${valueText(change.before)}`];
  const { before, after } = change;
  if (typeof before !== "string" || typeof after !== "string") {
    return [`~ ${place}: ${valueText(before)} → ${valueText(after)}`];
  }
  return [`~ ${place}:`, ...renderTextChange(before, after, budget).map((line) => `    ${line}`)];
}

/** All annotations may come or go at once; each hint still gets its own line. */
function renderAnnotations({ path, ...change }: Change): string[] {
  const before = "before" in change ? change.before : undefined;
  const after = "after" in change ? change.after : undefined;
  const name = path[1];
  if (name !== undefined) return [annotationLine(path.slice(1), before, after)];
  const [old, fresh] = [isJsonObject(before) ? before : {}, isJsonObject(after) ? after : {}];
  const names = [...new Set([...Object.keys(old), ...Object.keys(fresh)])].toSorted();
  if (names.length === 0) return [`~ annotations: ${valueText(before)} → ${valueText(after)}`];
  return names.map((each) => annotationLine([each], old[each], fresh[each]));
}

function annotationLine(path: Path, before: unknown, after: unknown): string {
  const name = String(path[0]);
  const mark = SECURITY_HINTS.includes(name) ? "!" : before === undefined ? "+" : after === undefined ? "-" : "~";
  return `${mark} annotation ${pathText(path)}: ${hintText(before)} → ${hintText(after)}`;
}

function hintText(value: unknown): string {
  return value === undefined ? "(not set)" : valueText(value);
}

/** `parameter "path"` for what a caller fills in, the plain path for the rest. */
function placeOf(path: Path): string {
  const [root, properties, name, ...rest] = path;
  if (root !== "inputSchema" || properties !== "properties" || name === undefined) return pathText(path);
  const parameter = `parameter ${showHidden(JSON.stringify(name))}`;
  return rest.length === 0 ? parameter : `${parameter} ${pathText(rest)}`;
}

function pathText(path: Path): string {
  return formatPath(path, (key) => showHidden(JSON.stringify(key)));
}

function valueText(value: unknown): string {
  const text = value === undefined ? "(nothing)" : showHidden(canonicalJson(value));
  return text.length > VALUE_LENGTH ? `${text.slice(0, VALUE_LENGTH)}… (${text.length} characters)` : text;
}

type Path = readonly (string | number)[];

type Change =
  | { readonly path: Path; readonly kind: "added"; readonly after: unknown }
  | { readonly path: Path; readonly kind: "removed"; readonly before: unknown }
  | { readonly path: Path; readonly kind: "changed"; readonly before: unknown; readonly after: unknown };

/** Lists within lists are compared as a whole at each level: this many times the text is written out at most. */
const MAX_LISTS = 8;

/** In the order of keys; the order of keys itself does not matter. Recursive: definitions are bounded in depth. */
export function changesBetween(before: unknown, after: unknown, path: Path = []): Change[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
    return keys.flatMap((key) => memberChanges([...path, key], ownValue(before, key), ownValue(after, key)));
  }
  if (canonicalJson(before) === canonicalJson(after)) return [];
  const isDeep = path.filter((step) => typeof step === "number").length >= MAX_LISTS;
  // Lists of plain values, such as `required`, read better whole than by index.
  if (!isDeep && Array.isArray(before) && Array.isArray(after) && [...before, ...after].some(isJsonObject)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => memberChanges([...path, index], before[index], after[index])).flat();
  }
  return [{ path, kind: "changed", before, after }];
}

function memberChanges(path: Path, before: unknown, after: unknown): Change[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ path, kind: "added", after }];
  if (after === undefined) return [{ path, kind: "removed", before }];
  return changesBetween(before, after, path);
}

/** A key that a definition does not have itself, such as `constructor`, is absent. */
function ownValue(object: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Above this many words the table of common ones would be large; then old and new are shown whole. */
const MAX_WORDS = 1500;
/** Unchanged words that are kept around a change. */
const CONTEXT = 6;

/** Of a text that is not compared word by word, from where it differs. */
const MAX_LENGTH = 10_000;

/** A budget for comparing: each word of one text with each of the other. */
export interface DiffBudget {
  pairs: number;
}

/**
 * A changed text in one or more lines, with the words marked that differ: `[-old-]` and `{+new+}`. Invisible characters
 * are written as `\u{…}`, so that a hidden addition shows.
 */
function renderTextChange(before: string, after: string, budget: DiffBudget): string[] {
  const old = splitWords(before);
  const fresh = splitWords(after);
  const pairs = old.length * fresh.length;
  if (old.length > MAX_WORDS || fresh.length > MAX_WORDS || pairs > budget.pairs) return renderWhole(old, fresh);
  budget.pairs -= pairs;
  const runs = joinRuns(diffSequences(old, fresh));
  return linesOf(runs.map((run, index) => renderRun(run, index === 0, index === runs.length - 1)).join(""));
}

/** Both texts without their common beginning: otherwise the difference could be in the part that is cut. */
function renderWhole(old: readonly string[], fresh: readonly string[]): string[] {
  let same = 0;
  while (same < old.length && old[same] === fresh[same]) same += 1;
  const from = Math.max(same - CONTEXT, 0);
  const shown = (texts: readonly string[]): string[] => {
    const text = `${from > 0 ? "… " : ""}${texts.slice(from).join("")}`;
    const rest = text.length - MAX_LENGTH;
    return linesOf(rest > 0 ? `${text.slice(0, MAX_LENGTH)}… (${rest} more characters)` : text);
  };
  return [...shown(old).map((line) => `- ${line}`), ...shown(fresh).map((line) => `+ ${line}`)];
}

function renderRun({ kind, text }: Step, isFirst: boolean, isLast: boolean): string {
  if (kind === "removed") return `[-${text}-]`;
  if (kind === "added") return `{+${text}+}`;
  const parts = splitWords(text);
  if (parts.length <= 2 * CONTEXT + 1) return text;
  const head = isFirst ? "" : parts.slice(0, CONTEXT).join("");
  const tail = isLast ? "" : parts.slice(-CONTEXT).join("");
  return `${head} … ${tail}`;
}

/** Words, each with the blanks after it, so that joining them restores the text. */
function splitWords(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

/** A carriage return is shown too: alone it would let a line overwrite itself on a terminal. */
function linesOf(text: string): string[] {
  return text.split("\n").map((line) => showHidden(line).replaceAll("\r", "\\u{000D}"));
}

/** Neighbours of one kind as one run. */
function joinRuns(runs: readonly Step[]): Step[] {
  const result: Step[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.kind === run.kind) result[result.length - 1] = { kind: run.kind, text: last.text + run.text };
    else result.push(run);
  }
  return result;
}
