/** Syntax errors of edited files, and the limit on nesting. */
import { ToolcribError } from "../../model/errors.ts";

/**
 * Parsers and the code behind them are recursive, so a few kilobytes of brackets would overflow the stack. No real
 * configuration comes near this limit.
 */
export const MAX_DEPTH = 200;

export const TOO_DEEP_MESSAGE = `this nests deeper than ${MAX_DEPTH} levels`;

/** Where JSON, JSONC or JSON5 nests too deeply, found without parsing it. */
export function tooDeepAt(text: string): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > MAX_DEPTH) return at;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        break;
      case QUOTE:
      case APOSTROPHE:
        at = endOfString(text, at);
        break;
      case SLASH:
        at = endOfComment(text, at);
        break;
    }
  }
  return undefined;
}

/** Throws TextSyntaxError. */
export function assertShallowText(text: string): void {
  const at = tooDeepAt(text);
  if (at !== undefined) throw TextSyntaxError.at(text, at, TOO_DEEP_MESSAGE);
}

/** Runs a parser or a walk; a stack overflow is reported as a fault of the text. */
export function withinStack<T>(task: () => T): T {
  try {
    return task();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new TextSyntaxError(TOO_DEEP_MESSAGE, 1, 1);
  }
}

/** For formats that say with more than brackets what is inside of what. Level by level, so without a stack. */
export function assertShallowValue(value: unknown): void {
  const seen = new Set<unknown>();
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new TextSyntaxError(TOO_DEEP_MESSAGE, 1, 1);
    const inner: unknown[] = [];
    for (const each of level) {
      // A YAML alias returns the same object again.
      if (typeof each !== "object" || each === null || seen.has(each)) continue;
      seen.add(each);
      for (const item of Object.values(each)) if (typeof item === "object" && item !== null) inner.push(item);
    }
    level = inner;
  }
}

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;

function endOfString(text: string, start: number): number {
  const quote = text[start] ?? "";
  let end = text.indexOf(quote, start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf(quote, end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 1;
}

function endOfComment(text: string, start: number): number {
  const isLine = text[start + 1] === "/";
  if (!isLine && text[start + 1] !== "*") return start;
  const end = isLine ? text.indexOf("\n", start) : text.indexOf("*/", start + 2);
  return end === -1 ? text.length : end + (isLine ? 0 : 1);
}

/** Text that is invalid in its format. The message says where and what, and never quotes the text. */
export class TextSyntaxError extends ToolcribError {
  readonly line: number;
  readonly column: number;

  constructor(what: string, line: number, column: number) {
    super("invalid_config", `line ${line}, column ${column}: ${what}`, { details: { line, column } });
    this.line = line;
    this.column = column;
  }

  static at(text: string, offset: number, what: string): TextSyntaxError {
    const before = text.slice(0, offset);
    const line = before.split("\n").length;
    return new TextSyntaxError(what, line, offset - (before.lastIndexOf("\n") + 1) + 1);
  }
}

/** Messages for the errors of jsonc-parser. */
export const JSONC_ERROR_MESSAGES: Readonly<Record<string, string>> = {
  InvalidSymbol: "this is not a JSON value",
  InvalidNumberFormat: "this is not a number",
  PropertyNameExpected: "a key in double quotes is expected",
  ValueExpected: "a value is expected",
  ColonExpected: "a colon is expected",
  CommaExpected: "a comma is expected",
  CloseBraceExpected: "a closing } is expected",
  CloseBracketExpected: "a closing ] is expected",
  EndOfFileExpected: "nothing more is expected here",
  UnexpectedEndOfComment: "the comment is not closed",
  UnexpectedEndOfString: "the text is not closed",
  UnexpectedEndOfNumber: "the number is not complete",
  InvalidUnicode: "the unicode escape is wrong",
  InvalidEscapeCharacter: "the escape is wrong",
  InvalidCharacter: "the character is not allowed here",
};
