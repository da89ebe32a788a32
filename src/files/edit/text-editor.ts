/** The interface of text editors: paths into documents, and the result that a change must have in every format. */
import { isDeepStrictEqual } from "node:util";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

/** A key, or the item of a list whose field `key` equals `is`. */
export type PathStep = string | { readonly key: string; readonly is: string };

export interface SetResult {
  readonly text: string;
  /**
   * The outermost step that had to be made, as an index into the path: its length if the entry was there already, -1 if
   * the text held no document at all.
   */
  readonly madeFrom: number;
}

export interface RemoveOptions {
  /** Containers of the path from this step on are removed too if they are empty; -1 includes the document. */
  readonly alsoFrom?: number;
}

/**
 * Changes one entry of a text and leaves every other byte alone. `remove(set(…).text, path, { alsoFrom: madeFrom })`
 * restores the text that `set` was given, unless `set` replaced a value.
 */
export interface TextEditor {
  readonly format: "jsonc" | "json5" | "yaml" | "toml";
  /** Throws TextSyntaxError. Text that is empty or consists of comments is an empty object. */
  parse(text: string): unknown;
  /** An existing value is replaced in place; comments inside it may be lost. */
  set(text: string, path: readonly PathStep[], value: unknown): SetResult;
  /** The same text if there is no such entry. */
  remove(text: string, path: readonly PathStep[], options?: RemoveOptions): string;
}

/** The part of an editor that knows the format. Gets texts that parse, without byte order mark, and checked paths. */
export interface FormatEditor {
  readonly format: TextEditor["format"];
  /** Undefined for a text without a document. */
  read(text: string): unknown;
  set(text: string, path: readonly PathStep[], value: unknown): SetResult;
  remove(text: string, path: readonly PathStep[], alsoFrom: number): string;
}

/** The value wrapped in its containers, as it is found at the first of the steps, or at `step` before them. */
export function nestedValue(rest: readonly PathStep[], value: unknown, step?: PathStep): unknown {
  const inner = rest.reduceRight<unknown>(
    (held, one) => (typeof one === "string" ? { [one]: held } : [withField(one, held)]),
    value,
  );
  return step === undefined ? inner : withField(step, inner);
}

/** An item of a list carries the field that it is found by. */
function withField(step: PathStep, value: unknown): unknown {
  if (typeof step === "string") return value;
  if (isJsonObject(value)) return { [step.key]: step.is, ...value };
  throw new ToolcribError("invalid_arguments", `the item with ${step.key} ${JSON.stringify(step.is)} is not an object`);
}

export function keyOf(step: PathStep): string | undefined {
  return typeof step === "string" ? step : undefined;
}

/** The outermost step that can be removed: every container from there on contains only the next step. */
export function outermostRemovable(length: number, alsoFrom: number, isSole: (step: number) => boolean): number {
  let from = length - 1;
  // The container of `step` is the one that the previous step names.
  while (from > alsoFrom && from >= 0 && isSole(from)) from -= 1;
  return from;
}

/** A copy of a parsed document with the value set. Throws if something other than a container is in the way. */
export function withValue(document: unknown, path: readonly PathStep[], value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  const present = stepInto(document, step);
  const next =
    present === undefined ? nestedValue(rest, value, step) : withField(step, withValue(present.value, rest, value));
  if (typeof step === "string") return withKey(isJsonObject(document) ? document : {}, step, next);
  const items: unknown[] = Array.isArray(document) ? document : [];
  return present === undefined ? [...items, next] : items.with(present.index, next);
}

/** A copy without the value; containers stay, also empty ones. */
export function withoutValue(document: unknown, path: readonly PathStep[]): unknown {
  const [step, ...rest] = path;
  const present = step === undefined ? undefined : stepInto(document, step);
  if (step === undefined || present === undefined) return document;
  if (typeof step === "string" && isJsonObject(document)) {
    const { [step]: gone, ...others } = document;
    return rest.length === 0 ? others : withKey(document, step, withoutValue(gone, rest));
  }
  if (!Array.isArray(document)) return document;
  return rest.length === 0
    ? document.toSpliced(present.index, 1)
    : document.with(present.index, withoutValue(present.value, rest));
}

/** Undefined if there is nothing at the path. */
export function valueAt(document: unknown, path: readonly PathStep[]): unknown {
  return path.reduce<unknown>((value, step) => stepInto(value, step)?.value, document);
}

/**
 * Whether two documents say the same. Along the path an empty container, one without a value and a missing one are the
 * same: when the last entry is removed, YAML keeps a key without a value and TOML keeps nothing.
 */
export function isSameDocument(one: unknown, other: unknown, path: readonly PathStep[]): boolean {
  return isSameValue(withoutEmpty(one, path), withoutEmpty(other, path));
}

/** As isDeepStrictEqual, but parsers differ in the prototypes of their objects. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one)) {
    return (
      Array.isArray(other) && one.length === other.length && one.every((item, index) => isSameValue(item, other[index]))
    );
  }
  if (!isPlain(one) || !isPlain(other)) return isDeepStrictEqual(one, other);
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameValue(one[key], other[key]))
  );
}

function isPlain(value: unknown): value is JsonObject {
  return isJsonObject(value) && !(value instanceof Date);
}

function withoutEmpty(document: unknown, path: readonly PathStep[]): unknown {
  const [step, ...rest] = path;
  const present = step === undefined ? undefined : stepInto(document, step);
  if (step === undefined || present === undefined || rest.length === 0) return document;
  const inner = withoutEmpty(present.value, rest);
  const isEmpty = inner === null || (typeof inner === "object" && Object.keys(inner).length === 0);
  if (typeof step === "string" && isJsonObject(document)) {
    return isEmpty ? withoutValue(document, [step]) : withKey(document, step, inner);
  }
  return Array.isArray(document) ? document.with(present.index, inner) : document;
}

function stepInto(document: unknown, step: PathStep): { value: unknown; index: number } | undefined {
  if (typeof step === "string") {
    const value = isJsonObject(document) && Object.hasOwn(document, step) ? document[step] : undefined;
    return value === undefined ? undefined : { value, index: -1 };
  }
  if (!Array.isArray(document)) return undefined;
  const index = document.findIndex((item) => isJsonObject(item) && item[step.key] === step.is);
  return index === -1 ? undefined : { value: document[index], index };
}

/** Keeps the place of a key that is there, and does not turn `__proto__` into a prototype. */
function withKey(object: object, key: string, value: unknown): object {
  const entries = new Map<string, unknown>(Object.entries(object));
  return Object.fromEntries(entries.set(key, value));
}

/** A step leads into something that is not an object or not a list. */
export function notAContainer(path: readonly PathStep[], step: PathStep): ToolcribError {
  const where = path.length === 0 ? "the document" : formatSteps(path);
  return new ToolcribError(
    "invalid_config",
    `${where} is ${typeof step === "string" ? "not an object" : "not a list"}`,
    {
      hint: "Correct it by hand or remove it. The file was not changed.",
    },
  );
}

export function formatSteps(path: readonly PathStep[]): string {
  return path.map((step) => (typeof step === "string" ? step : `${step.key}=${step.is}`)).join(".");
}
