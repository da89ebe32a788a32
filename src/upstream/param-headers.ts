/** `x-mcp-header`: arguments that a modern HTTP server wants repeated as `Mcp-Param-*` headers. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import { schemaSize } from "../schemas/schema-size.ts";
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
  let known = mirrored.get(tool);
  if (known === undefined) mirrored.set(tool, (known = readParams(tool)));
  return known;
}

/** Definitions are immutable, and calls ask for this too. */
const mirrored = new WeakMap<ToolDefinition, MirroredParams>();

function readParams(tool: ToolDefinition): MirroredParams {
  const fault = isJsonObject(tool.inputSchema) ? schemaSize(tool.inputSchema).fault : undefined;
  if (fault !== undefined) return { ok: false, reason: `inputSchema ${fault}` };
  const params: MirroredParam[] = [];
  const reason = isJsonObject(tool.inputSchema) ? collect(tool.inputSchema, [], params) : undefined;
  if (reason !== undefined) return { ok: false, reason };
  const names = new Set<string>();
  for (const { header } of params) {
    const name = header.toLowerCase();
    if (names.has(name)) return { ok: false, reason: `${ANNOTATION} "${name}" is used twice` };
    names.add(name);
  }
  return { ok: true, params };
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
  const found = mirroredParams(tool);
  const headers: Record<string, string> = {};
  for (const { header, path } of found.ok ? found.params : []) {
    const value = path.reduce<unknown>((at, key) => (isJsonObject(at) ? at[key] : undefined), args);
    if (typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value)) {
      headers[`Mcp-Param-${header}`] = encodeHeaderValue(String(value));
    }
  }
  return headers;
}
