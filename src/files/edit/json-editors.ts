/** JSON with comments, and JSON5: two parsers, one surgery. */
import JSON5 from "json5";
import { parse, parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";
import { assertShallowText } from "./depth.ts";
import { JSONC_ERROR_WORDS } from "./jsonc-words.ts";
import { removeFromJson, setInJson } from "./text-edit.ts";
import type { Surgeon } from "./text-editor.ts";
import { TextSyntaxError } from "./text-syntax-error.ts";

const OPTIONS = { allowTrailingComma: true, allowEmptyContent: true };

export const JSONC: Surgeon = { format: "jsonc", read: readJsonc, set: setInJson, remove: removeFromJson };

export const JSON5_SURGEON: Surgeon = { format: "json5", read: readJson5, set: setInJson, remove: removeFromJson };

function readJsonc(text: string): unknown {
  assertShallowText(text);
  const errors: ParseError[] = [];
  const value = mayNameProto(text) ? valueOf(parseTree(text, errors, OPTIONS)) : parse(text, errors, OPTIONS);
  const [error] = errors;
  if (error !== undefined) {
    const what = JSONC_ERROR_WORDS[printParseErrorCode(error.error)] ?? "this is not JSON";
    throw TextSyntaxError.at(text, error.offset, what);
  }
  return value;
}

/** jsonc-parser's own values take half the time of its tree, which counts in megabytes, but a key may spoil them. */
function mayNameProto(text: string): boolean {
  return /__proto__|\\u005f/i.test(text);
}

function valueOf(node: Node | undefined): unknown {
  if (node === undefined) return undefined;
  if (node.type === "array") return (node.children ?? []).map(valueOf);
  if (node.type !== "object") return node.value;
  return Object.fromEntries(
    (node.children ?? []).flatMap(({ children: [key, value] = [] }) =>
      key === undefined || value === undefined ? [] : [[String(key.value), valueOf(value)]],
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
      numberIn(error, "lineNumber"),
      numberIn(error, "columnNumber"),
    );
  }
}

function numberIn(error: unknown, field: "lineNumber" | "columnNumber"): number {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "number" ? value : 1;
}
