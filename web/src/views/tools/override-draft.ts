/** An override as a form edits it: only what differs from the server's own definition is kept. */
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";

export type OverrideDraft = Readonly<Record<string, unknown>>;

/** The draft with a key of its own; undefined and the server's own value take it out. */
export function withOwn(draft: OverrideDraft, key: string, value: unknown, original?: unknown): OverrideDraft {
  const { [key]: _, ...rest } = draft;
  const isOwn = value !== undefined && value !== "" && JSON.stringify(value) !== JSON.stringify(original);
  return isOwn ? { ...rest, [key]: value } : rest;
}

/** The same for one of an object's keys: an object without any is taken out, too. */
export function withInner(draft: OverrideDraft, key: string, inner: string, value: unknown): OverrideDraft {
  const changed = withOwn(objectIn(draft, key), inner, value);
  return withOwn(draft, key, Object.keys(changed).length === 0 ? undefined : changed);
}

export function objectIn(draft: OverrideDraft, key: string): OverrideDraft {
  const value = draft[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as OverrideDraft) : {};
}

export type ParameterMode = "free" | "default" | "fixed";

export function modeOf(parameter: OverrideDraft): ParameterMode {
  if (parameter["fixed"] !== undefined) return "fixed";
  return parameter["default"] === undefined ? "free" : "default";
}

/** A fixed parameter has no description that anyone would see. */
export function withMode(parameter: OverrideDraft, mode: ParameterMode): OverrideDraft | undefined {
  const { fixed, default: preset, description } = parameter;
  const value = fixed ?? preset ?? "";
  if (mode === "fixed") return { fixed: value };
  const text = description === undefined ? {} : { description };
  if (mode === "default") return { ...text, default: value };
  return description === undefined ? undefined : text;
}

/** The value that was typed: JSON where it is some, else text. A text of digits needs quotes. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function shownValue(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return typedValue(value) === value ? value : JSON.stringify(value);
}

/** Paths, one on each line. */
export function withDropped(draft: OverrideDraft, text: string): OverrideDraft {
  const drop = text.split("\n").flatMap((line) => line.trim() || []);
  return withOwn(draft, "output", drop.length === 0 ? undefined : { drop });
}

/** How many tokens an override saves or costs, in words. */
export function costText(before: number, after: number): string {
  if (after === before) return t(toolWords.costSame, { count: after });
  const percent = Math.round((Math.abs(before - after) / before) * 100);
  return t(after < before ? toolWords.costLess : toolWords.costMore, { before, after, percent });
}
