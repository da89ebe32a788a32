/** `x-mcp-header`: arguments that a modern HTTP server wants repeated as `Mcp-Param-*` headers. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import { encodeHeaderValue } from "./http/header-values.ts";

const ANNOTATION = "x-mcp-header";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES = ["string", "integer", "boolean"];

interface MirroredParam {
  readonly header: string;
  readonly path: readonly string[];
}

type MirroredParams =
  | { readonly ok: true; readonly params: readonly MirroredParam[] }
  | { readonly ok: false; readonly reason: string };

/** The annotated parameters of a tool, or why its annotations make the whole tool unusable over HTTP. */
export function mirroredParams(tool: ToolDefinition): MirroredParams {
  const params: MirroredParam[] = [];
  const reason = isJsonObject(tool.inputSchema) ? collect(tool.inputSchema, [], params) : undefined;
  if (reason !== undefined) return { ok: false, reason };
  const names = params.map((param) => param.header.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? { ok: true, params } : { ok: false, reason: `${ANNOTATION} "${twice}" is used twice` };
}

/** Walks `properties` only; an annotation found by any other way is out of place. Returns what is wrong. */
function collect(schema: JsonObject, path: readonly string[], found: MirroredParam[]): string | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === ANNOTATION) continue;
    if (keyword !== "properties" || !isJsonObject(value)) {
      if (isSchemaKeyword(keyword) && holdsAnnotation(value)) return `${ANNOTATION} is not allowed below "${keyword}"`;
      continue;
    }
    for (const [name, property] of Object.entries(value)) {
      if (!isJsonObject(property)) continue;
      const reason = checkProperty(property, [...path, name], found) ?? collect(property, [...path, name], found);
      if (reason !== undefined) return reason;
    }
  }
  return path.length === 0 && ANNOTATION in schema ? `${ANNOTATION} is not allowed on the whole schema` : undefined;
}

function checkProperty(property: JsonObject, path: readonly string[], found: MirroredParam[]): string | undefined {
  if (!(ANNOTATION in property)) return undefined;
  const header = property[ANNOTATION];
  const where = path.join(".");
  if (typeof header !== "string" || !TOKEN.test(header)) return `${ANNOTATION} of "${where}" is no valid header name`;
  const type = property["type"];
  if (typeof type !== "string" || !TYPES.includes(type)) {
    return `${ANNOTATION} of "${where}" stands on a parameter that is no string, integer or boolean`;
  }
  found.push({ header, path });
  return undefined;
}

/** Values that are data, not schemas, may hold anything. */
function isSchemaKeyword(keyword: string): boolean {
  return !["default", "const", "enum", "examples", "example", "required", "type", "title", "description"].includes(
    keyword,
  );
}

function holdsAnnotation(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsAnnotation);
  if (!isJsonObject(value)) return false;
  return (
    ANNOTATION in value || Object.entries(value).some(([key, inner]) => isSchemaKeyword(key) && holdsAnnotation(inner))
  );
}

export function paramHeaders(tool: ToolDefinition, args: JsonObject): Record<string, string> {
  const mirrored = mirroredParams(tool);
  const headers: Record<string, string> = {};
  for (const { header, path } of mirrored.ok ? mirrored.params : []) {
    const value = path.reduce<unknown>((at, key) => (isJsonObject(at) ? at[key] : undefined), args);
    if (typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value)) {
      headers[`Mcp-Param-${header}`] = encodeHeaderValue(String(value));
    }
  }
  return headers;
}
