/** The difference between two definitions, for a person who decides whether to trust the new one. */
import { canonicalJson } from "../../model/canonical-json.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { showHidden } from "../detect/show-hidden.ts";
import { type Change, changesBetween, type Path } from "./changes.ts";
import { type DiffBudget, renderTextChange } from "./text-changes.ts";

const VALUE_LENGTH = 2000;
/** A definition may differ in a thousand places; the first ones are enough to say no. */
const MAX_CHANGES = 200;

/** What a client reads to decide how careful to be. A change there is told first. */
const SECURITY_HINTS: readonly string[] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/** Pairs of words that are compared in one definition: as many as two long texts have. */
const MAX_PAIRS = 2_500_000;
/** In all definitions of a report, which is made while others wait. */
const MAX_REPORT_PAIRS = 10_000_000;

export type { DiffBudget };

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

/** All annotations may come or go at once; each hint is named on its own line all the same. */
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
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${showHidden(JSON.stringify(step))}]`;
  }
  return text;
}

function valueText(value: unknown): string {
  const text = value === undefined ? "(nothing)" : showHidden(canonicalJson(value));
  return text.length > VALUE_LENGTH ? `${text.slice(0, VALUE_LENGTH)}… (${text.length} characters)` : text;
}
