/** Writes values as TOML: tables with headers, and inline where a value stands behind a key. */
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";

export interface TomlStyle {
  readonly lineBreak: string;
  /** Before headers and rows. */
  readonly indent: string;
}

/** A table with its header; tables in it follow with headers of their own. */
export function renderTable(path: readonly string[], table: JsonObject, style: TomlStyle): string {
  const entries = Object.entries(table);
  const rows = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => renderRow([key], value));
  const own = [`[${renderKey(path)}]`, ...rows].map((line) => style.indent + line).join(style.lineBreak);
  const inner = entries.flatMap(([key, value]) => (isTable(value) ? [renderTable([...path, key], value, style)] : []));
  return [own, ...inner].join(style.lineBreak + style.lineBreak);
}

export function renderRow(path: readonly string[], value: unknown): string {
  return `${renderKey(path)} = ${renderInline(value)}`;
}

export function renderInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderInline).join(", ")}]`;
  if (typeof value === "string") return renderText(value);
  if (typeof value === "number") return renderNumber(value);
  if (typeof value === "boolean") return String(value);
  if (!isJsonObject(value)) throw new ToolcribError("invalid_arguments", "TOML has no way to write null");
  const rows = Object.entries(value).map(([key, item]) => renderRow([key], item));
  return rows.length === 0 ? "{}" : `{ ${rows.join(", ")} }`;
}

function renderKey(path: readonly string[]): string {
  return path.map((key) => (/^[\w-]+$/.test(key) ? key : renderText(key))).join(".");
}

/** A JSON text is a basic string of TOML, but for one character. */
function renderText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007F", "\\u007F");
}

/** Integers of TOML have 64 bits; what a number of JSON cannot hold exactly is written as a float. */
function renderNumber(value: number): string {
  const text = JSON.stringify(value);
  return Number.isSafeInteger(value) || /[.e]/.test(text) ? text : `${text}.0`;
}

function isTable(value: unknown): value is JsonObject {
  return isJsonObject(value) && Object.keys(value).length > 0;
}
