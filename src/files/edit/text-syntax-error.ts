import { ToolcribError } from "../../model/errors.ts";

/** A text that is not what its format says. The message tells where and what, never what the text holds there. */
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
