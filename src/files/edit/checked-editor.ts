/** What all editors share: the byte order mark, checks of what is asked, and the check of what came out. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { assertShallowValue, withinStack } from "./depth.ts";
import { formatSteps, nestedValue, notAContainer, sameDocuments, valueAt, withoutValue, withValue } from "./paths.ts";
import type { PathStep, RemoveOptions, SetResult, Surgeon, TextEditor } from "./text-editor.ts";

const BYTE_ORDER_MARK = "\uFEFF";

export function checkedEditor(surgeon: Surgeon): TextEditor {
  return {
    format: surgeon.format,
    parse: (text) => readShallow(surgeon, splitMark(text).content),
    set(text, path, value) {
      const { mark, content } = splitMark(text);
      const result = withinStack(() => checkedSet(surgeon, content, path, value));
      return { ...result, text: mark + result.text };
    },
    remove(text, path, options) {
      const { mark, content } = splitMark(text);
      return mark + withinStack(() => checkedRemove(surgeon, content, path, options ?? {}));
    },
  };
}

function checkedSet(surgeon: Surgeon, text: string, path: readonly PathStep[], value: unknown): SetResult {
  checkPath(path);
  const wanted = nestedValue([], asJson(value), path.at(-1));
  const before = readObject(surgeon, text);
  const expected = withValue(before, path, wanted);
  // Written as it is already: not even its layout changes.
  if (valueAt(before, path) !== undefined && sameDocuments(before, expected, []))
    return { text, madeFrom: path.length };
  const result = surgeon.set(text, path, wanted);
  checkResult(surgeon, result.text, expected, path);
  return result;
}

function checkedRemove(surgeon: Surgeon, text: string, path: readonly PathStep[], options: RemoveOptions): string {
  checkPath(path);
  const before = readObject(surgeon, text);
  if (valueAt(before, path) === undefined) return text;
  const result = surgeon.remove(text, path, options.alsoFrom ?? path.length);
  checkResult(surgeon, result, withoutValue(before, path), path);
  return result;
}

/** The parser has the last word: an edit that says anything else than meant is not given out. */
function checkResult(surgeon: Surgeon, text: string, expected: unknown, path: readonly PathStep[]): void {
  let found: unknown;
  try {
    found = surgeon.read(text) ?? {};
  } catch {
    throw wouldBreak(path);
  }
  if (!sameDocuments(found, expected, path)) throw wouldBreak(path);
}

function wouldBreak(path: readonly PathStep[]): ToolcribError {
  return new ToolcribError("internal", `${formatSteps(path)} cannot be changed without changing something else`, {
    hint: "The file was left alone; make this change by hand.",
  });
}

function readObject(surgeon: Surgeon, text: string): object {
  const document = readShallow(surgeon, text);
  if (isJsonObject(document)) return document;
  throw notAContainer([], "");
}

function readShallow(surgeon: Surgeon, text: string): unknown {
  const document = withinStack(() => surgeon.read(text)) ?? {};
  assertShallowValue(document);
  return document;
}

function checkPath(path: readonly PathStep[]): void {
  const keys = path.map((step) => (typeof step === "string" ? step : step.key));
  if (keys.length === 0 || keys.includes("__proto__")) {
    throw new ToolcribError("invalid_arguments", `${JSON.stringify(formatSteps(path))} is no place for an entry`);
  }
}

/** A copy without undefined fields. Not by way of JSON.parse, which in Node 24 takes the key "\\n" for "\\" at times. */
function asJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asJson);
  if (isJsonObject(value)) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return Object.fromEntries(entries.map(([key, item]) => [key, asJson(item)]));
  }
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) return value;
  throw new ToolcribError("invalid_arguments", `a value of type ${typeof value} cannot be written`);
}

function splitMark(text: string): { mark: string; content: string } {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  return { mark, content: text.slice(mark.length) };
}
