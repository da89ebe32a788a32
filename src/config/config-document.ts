/** A config text with its value and the way back from a path to a line, and the diagnostics that point into it. */
import JSON5 from "json5";
import { parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";
import { JSONC_ERROR_MESSAGES, TOO_DEEP_MESSAGE, tooDeepAt } from "../files/edit/text-syntax.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Diagnostic } from "../model/loaded-config.ts";

/** `file:line:column: path: message (hint)`, on one line. */
export function renderDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, path, message, hint } = diagnostic;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place}: ${path === "" ? "" : `${path}: `}${message}${hint === undefined ? "" : ` (${hint})`}`;
}

/** The one error for a config that cannot be used; it lists every problem. */
export function invalidConfigError(problems: readonly Diagnostic[]): ToolcribError {
  const lines = problems.map(renderDiagnostic);
  return new ToolcribError("invalid_config", lines.join("\n"), { details: { problems } });
}

/** A problem of another program's file: it costs the part that has it, and nothing else. */
export function asSkipped(problem: Diagnostic, what: string): Diagnostic {
  return { ...problem, severity: "warning", message: `${problem.message}; ${what}` };
}

/** A diagnostic without a position in a text. */
export function fileDiagnostic(file: string, path: string, report: Omit<Report, "atKey">): Diagnostic {
  return { ...report, file, line: 0, column: 0, path };
}

export function duplicateServer(id: string, file: string, earlierFile: string): Diagnostic {
  const message = `the server ${JSON.stringify(id)} is also in ${earlierFile}, which counts`;
  return fileDiagnostic(file, id, { severity: "warning", code: "duplicate_id", message });
}

/** The place of a value in a document. */
export type ConfigPath = readonly (string | number)[];

/** `mcpServers.files.args[0]`; a key that is not a plain word is quoted: `mcpServers["my server"]`. */
export function formatPath(path: ConfigPath, quote: (key: string) => string = JSON.stringify): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${quote(step)}]`;
  }
  return text;
}

interface Report {
  readonly severity: Diagnostic["severity"];
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** Points at the key, not at the value. */
  readonly atKey?: boolean;
}

export class ConfigDocument {
  readonly file: string;
  readonly value: unknown;
  /** Syntax errors; `value` is what could be read nevertheless. */
  readonly errors: readonly Diagnostic[];
  /** Duplicate keys and the like. */
  readonly warnings: readonly Diagnostic[];
  readonly #text: string;
  readonly #root: Node | undefined;
  /** Paths as they are written, by the path as JSON at which their value is read. */
  readonly #written = new Map<string, ConfigPath>();
  #lineStarts: number[] | undefined;

  private constructor(file: string, text: string, read: { value: unknown } | undefined) {
    this.file = file;
    this.#text = text;
    if (read !== undefined) {
      this.value = read.value;
      this.errors = [];
      this.warnings = [];
      return;
    }
    const deep = tooDeepAt(text);
    if (deep !== undefined) {
      this.value = undefined;
      this.errors = [this.#errorAt(deep, TOO_DEEP_MESSAGE)];
      this.warnings = [];
      return;
    }
    const parseErrors: ParseError[] = [];
    this.#root = parseTree(text, parseErrors, { allowTrailingComma: true, allowEmptyContent: true });
    const errors = parseErrors.slice(0, 10).map((error) => this.#syntaxError(error));
    const warnings: Diagnostic[] = [];
    this.value = this.#root === undefined ? undefined : this.#valueOf(this.#root, [], warnings);
    this.errors = errors;
    this.warnings = warnings;
  }

  /** Reads JSON with comments and trailing commas; a byte order mark and CRLF are fine. */
  static parse(file: string, text: string): ConfigDocument {
    return new ConfigDocument(file, withoutMark(text), undefined);
  }

  /** Reads JSON5, without positions; undefined if it is not that either. */
  static parseJson5(file: string, text: string): ConfigDocument | undefined {
    try {
      if (tooDeepAt(text) !== undefined) return undefined;
      return new ConfigDocument(file, "", { value: JSON5.parse<unknown>(withoutMark(text)) });
    } catch {
      return undefined;
    }
  }

  /** A value that was never text, such as a config given in code. */
  static ofValue(file: string, value: unknown): ConfigDocument {
    return new ConfigDocument(file, "", { value });
  }

  /** Notes that the value read at `path` is written at another one, such as under another program's key: reports name that one. */
  setWritten(path: ConfigPath, written: ConfigPath): void {
    this.#written.set(JSON.stringify(path), written);
  }

  /** The path at which the value that is read at `path` is written. */
  writtenPath(path: ConfigPath): ConfigPath {
    for (let length = path.length; length > 0; length--) {
      const written = this.#written.get(JSON.stringify(path.slice(0, length)));
      if (written === undefined) continue;
      const rest = path.slice(length);
      if (written.at(-1) === path[length - 1]) return [...written, ...rest];
      // Under another key the value may have another form.
      const missing = rest.findIndex((_, index) => !this.#has([...written, ...rest.slice(0, index + 1)]));
      return [...written, ...(missing === -1 ? rest : rest.slice(0, missing))];
    }
    return path;
  }

  #has(path: ConfigPath): boolean {
    let here: unknown = this.value;
    for (const step of path) {
      if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return false;
      here = Reflect.get(here, step);
    }
    return true;
  }

  /** A diagnostic at a path; if there is nothing, at the nearest thing around it. */
  report(path: ConfigPath, { severity, code, message, hint, atKey }: Report): Diagnostic {
    const written = this.writtenPath(path);
    const { line, column } = this.#place(this.#offsetOf(written, atKey ?? false));
    return { severity, code, file: this.file, line, column, path: formatPath(written), message, hint };
  }

  #offsetOf(path: ConfigPath, atKey: boolean): number | undefined {
    if (this.#root === undefined) return undefined;
    let node: Node = this.#root;
    let offset = node.offset;
    for (const [index, step] of path.entries()) {
      const { key, value } = childOf(node, step);
      if (key === undefined || value === undefined) break;
      offset = atKey && index === path.length - 1 ? key.offset : value.offset;
      node = value;
    }
    return offset;
  }

  #place(offset: number | undefined): { line: number; column: number } {
    if (offset === undefined) return { line: 0, column: 0 };
    const starts = (this.#lineStarts ??= lineStartsOf(this.#text));
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  }

  #syntaxError(error: ParseError): Diagnostic {
    const found = error.offset >= this.#text.length ? "the end of the file" : JSON.stringify(this.#text[error.offset]);
    const what = JSONC_ERROR_MESSAGES[printParseErrorCode(error.error)] ?? "this is not JSON";
    return this.#errorAt(error.offset, `${what}, found ${found}`);
  }

  #errorAt(offset: number, what: string): Diagnostic {
    const report = { severity: "error", code: "syntax", message: `syntax error: ${what}` } as const;
    return { ...fileDiagnostic(this.file, "", report), ...this.#place(offset) };
  }

  #valueOf(node: Node, path: ConfigPath, warnings: Diagnostic[]): unknown {
    if (node.type === "array") {
      return (node.children ?? []).map((child, index) => this.#valueOf(child, [...path, index], warnings));
    }
    if (node.type !== "object") return node.value;
    const object: Record<string, unknown> = {};
    for (const property of node.children ?? []) {
      const [keyNode, valueNode] = property.children ?? [];
      if (keyNode === undefined || valueNode === undefined) continue;
      const key = String(keyNode.value);
      const here = [...path, key];
      // Assigning it would change the object's prototype instead of adding a key.
      if (key === "__proto__") continue;
      if (Object.hasOwn(object, key)) {
        const message = "this key is written twice; the last one counts";
        const report = fileDiagnostic(this.file, formatPath(here), {
          severity: "warning",
          code: "duplicate_key",
          message,
        });
        warnings.push({ ...report, ...this.#place(keyNode.offset) });
      }
      object[key] = this.#valueOf(valueNode, here, warnings);
    }
    return object;
  }
}

function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Of properties with one name the last, because that is the one that counts. */
function childOf(node: Node, step: string | number): { key: Node | undefined; value: Node | undefined } {
  if (typeof step === "number") {
    const item = node.type === "array" ? node.children?.[step] : undefined;
    return { key: item, value: item };
  }
  const property =
    node.type === "object" ? node.children?.findLast((child) => child.children?.[0]?.value === step) : undefined;
  const [key, value] = property?.children ?? [];
  return { key, value };
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
