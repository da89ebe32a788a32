/** What is wrong or odd in a config, and exactly where. */
import { ToolcribError } from "../model/errors.ts";

export interface Diagnostic {
  readonly severity: "error" | "warning";
  /** A stable word for programs: `unknown_key`, `wrong_value`, `plain_credential`, … */
  readonly code: string;
  /** A file path; `library` for a config given in code, `environment` for variables. */
  readonly file: string;
  /** From 1; 0 where there is no text to point into. */
  readonly line: number;
  readonly column: number;
  /** Such as `mcpServers.files.args[0]`; empty for the whole file. */
  readonly path: string;
  /** Says what was found and what is allowed. Never holds a value that may be a secret. */
  readonly message: string;
  readonly hint?: string;
}

/** `file:line:column: path: message (hint)`, on one line. */
export function renderDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, path, message, hint } = diagnostic;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place}: ${path === "" ? "" : `${path}: `}${message}${hint === undefined ? "" : ` (${hint})`}`;
}

/** The one error for a config that cannot be used; it lists every problem. */
export function invalidConfig(problems: readonly Diagnostic[]): ToolcribError {
  const lines = problems.map(renderDiagnostic);
  return new ToolcribError("invalid_config", lines.join("\n"), { details: { problems } });
}

export function asWarning(diagnostic: Diagnostic): Diagnostic {
  return diagnostic.severity === "warning" ? diagnostic : { ...diagnostic, severity: "warning" };
}
