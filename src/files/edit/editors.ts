/** Editors that change one entry of a user's file and leave every other byte alone. */
import JSON5 from "json5";
import { parse, parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { removeFromJson, setInJson } from "./json-edit.ts";
import {
  type FormatEditor,
  formatSteps,
  isSameDocument,
  nestedValue,
  notAContainer,
  type PathStep,
  type RemoveOptions,
  type SetResult,
  type TextEditor,
  valueAt,
  withoutValue,
  withValue,
} from "./text-editor.ts";
import {
  assertShallowText,
  assertShallowValue,
  JSONC_ERROR_MESSAGES,
  TextSyntaxError,
  withinStack,
} from "./text-syntax.ts";
import { TOML_EDITOR } from "./toml-edit.ts";
import { YAML_EDITOR } from "./yaml-edit.ts";

const BYTE_ORDER_MARK = "\uFEFF";
const JSONC_OPTIONS = { allowTrailingComma: true, allowEmptyContent: true };
const EDITORS: Readonly<Record<TextEditor["format"], TextEditor>> = {
  jsonc: checkedEditor({ format: "jsonc", read: readJsonc, set: setInJson, remove: removeFromJson }),
  json5: checkedEditor({ format: "json5", read: readJson5, set: setInJson, remove: removeFromJson }),
  yaml: checkedEditor(YAML_EDITOR),
  toml: checkedEditor(TOML_EDITOR),
};

export function editorFor(format: TextEditor["format"]): TextEditor {
  return EDITORS[format];
}

// Common to all editors: the byte order mark, checks of the request, and the check of the result.

function checkedEditor(surgeon: FormatEditor): TextEditor {
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

function checkedSet(surgeon: FormatEditor, text: string, path: readonly PathStep[], value: unknown): SetResult {
  checkPath(path);
  const wanted = nestedValue([], asJson(value), path.at(-1));
  const before = readObject(surgeon, text);
  const expected = withValue(before, path, wanted);
  // Written as it is already: not even its layout changes.
  if (valueAt(before, path) !== undefined && isSameDocument(before, expected, []))
    return { text, madeFrom: path.length };
  const result = surgeon.set(text, path, wanted);
  checkResult(surgeon, result.text, expected, path);
  return result;
}

function checkedRemove(surgeon: FormatEditor, text: string, path: readonly PathStep[], options: RemoveOptions): string {
  checkPath(path);
  const before = readObject(surgeon, text);
  if (valueAt(before, path) === undefined) return text;
  const result = surgeon.remove(text, path, options.alsoFrom ?? path.length);
  checkResult(surgeon, result, withoutValue(before, path), path);
  return result;
}

/** The parser has the last word: an edit that says anything else than meant is not given out. */
function checkResult(surgeon: FormatEditor, text: string, expected: unknown, path: readonly PathStep[]): void {
  let found: unknown;
  try {
    found = surgeon.read(text) ?? {};
  } catch {
    throw wouldBreak(path);
  }
  if (!isSameDocument(found, expected, path)) throw wouldBreak(path);
}

function wouldBreak(path: readonly PathStep[]): ToolcribError {
  return new ToolcribError("internal", `${formatSteps(path)} cannot be changed without changing other entries`, {
    hint: "The file was not changed. Make this change by hand.",
  });
}

function readObject(surgeon: FormatEditor, text: string): object {
  const document = readShallow(surgeon, text);
  if (isJsonObject(document)) return document;
  throw notAContainer([], "");
}

function readShallow(surgeon: FormatEditor, text: string): unknown {
  const document = withinStack(() => surgeon.read(text)) ?? {};
  assertShallowValue(document);
  return document;
}

function checkPath(path: readonly PathStep[]): void {
  const keys = path.map((step) => (typeof step === "string" ? step : step.key));
  if (keys.length === 0 || keys.includes("__proto__")) {
    throw new ToolcribError("invalid_arguments", `${JSON.stringify(formatSteps(path))} is not a path to an entry`);
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

// The readers of JSON with comments and of JSON5; both formats share one way to edit.

function readJsonc(text: string): unknown {
  assertShallowText(text);
  const errors: ParseError[] = [];
  const value = mayNameProto(text)
    ? valueOfNode(parseTree(text, errors, JSONC_OPTIONS))
    : parse(text, errors, JSONC_OPTIONS);
  const [error] = errors;
  if (error !== undefined) {
    const what = JSONC_ERROR_MESSAGES[printParseErrorCode(error.error)] ?? "this is not JSON";
    throw TextSyntaxError.at(text, error.offset, what);
  }
  return value;
}

/** jsonc-parser's own values take half the time of its tree, which counts in megabytes, but a key may spoil them. */
function mayNameProto(text: string): boolean {
  return /__proto__|\\u005f/i.test(text);
}

function valueOfNode(node: Node | undefined): unknown {
  if (node === undefined) return undefined;
  if (node.type === "array") return (node.children ?? []).map(valueOfNode);
  if (node.type !== "object") return node.value;
  return Object.fromEntries(
    (node.children ?? []).flatMap(({ children: [key, value] = [] }) =>
      key === undefined || value === undefined ? [] : [[String(key.value), valueOfNode(value)]],
    ),
  );
}

function readJson5(text: string): unknown {
  if (text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "").trim() === "") return undefined;
  assertShallowText(text);
  try {
    return JSON5.parse<unknown>(text);
  } catch (error) {
    // Its message quotes what it found.
    const isEnd = error instanceof Error && error.message.includes("end of input");
    throw new TextSyntaxError(
      isEnd ? "the text ends too early" : "this character does not belong here",
      positionIn(error, "lineNumber"),
      positionIn(error, "columnNumber"),
    );
  }
}

function positionIn(error: unknown, field: "lineNumber" | "columnNumber"): number {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "number" ? value : 1;
}
