/** The headers that mirror a message's body in the modern era, so that proxies can route without reading it. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { type RpcMessage, type ToolDefinition, VERSION_KEY } from "../../model/protocol.ts";
import { schemaSize } from "../../schemas/schema-size.ts";

/** The version that a modern message claims in its own `_meta`: how a server is asked before anything is agreed. */
export function claimedVersion(message: RpcMessage): string | undefined {
  if (!("method" in message)) return undefined;
  const meta = message.params?.["_meta"];
  const version = isJsonObject(meta) ? meta[VERSION_KEY] : undefined;
  return typeof version === "string" ? version : undefined;
}

export function modernHeaders(message: RpcMessage, version: string): Record<string, string> {
  if (!("method" in message)) return { "mcp-protocol-version": version };
  const name = nameOf(message.method, message.params ?? {});
  return {
    "mcp-protocol-version": version,
    "mcp-method": message.method,
    ...(typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : {}),
  };
}

function nameOf(method: string, params: Readonly<Record<string, unknown>>): unknown {
  switch (method) {
    case "tools/call":
    case "prompts/get":
      return params["name"];
    case "resources/read":
      return params["uri"];
    case "tasks/get":
    case "tasks/update":
    case "tasks/cancel":
      return params["taskId"];
    default:
      return undefined;
  }
}

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
  const reason = isJsonObject(tool.inputSchema) ? collectParams(tool.inputSchema, [], params) : undefined;
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
function collectParams(schema: JsonObject, path: readonly string[], found: MirroredParam[]): string | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === ANNOTATION) continue;
    if (keyword !== "properties" || !isJsonObject(value)) {
      if (isSchemaKeyword(keyword) && hasAnnotation(value)) return `${ANNOTATION} is not allowed below "${keyword}"`;
      continue;
    }
    for (const [name, property] of Object.entries(value)) {
      if (!isJsonObject(property)) continue;
      const reason = checkProperty(property, [...path, name], found) ?? collectParams(property, [...path, name], found);
      if (reason !== undefined) return reason;
    }
  }
  return path.length === 0 && ANNOTATION in schema ? `${ANNOTATION} is not allowed on the whole schema` : undefined;
}

function checkProperty(property: JsonObject, path: readonly string[], found: MirroredParam[]): string | undefined {
  if (!(ANNOTATION in property)) return undefined;
  const header = property[ANNOTATION];
  const where = path.join(".");
  if (typeof header !== "string" || !TOKEN.test(header))
    return `${ANNOTATION} of "${where}" is not a valid header name`;
  const type = property["type"];
  if (typeof type !== "string" || !TYPES.includes(type)) {
    return `${ANNOTATION} of "${where}" is on a parameter that is not a string, integer or boolean`;
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

function hasAnnotation(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasAnnotation);
  if (!isJsonObject(value)) return false;
  return (
    ANNOTATION in value || Object.entries(value).some(([key, inner]) => isSchemaKeyword(key) && hasAnnotation(inner))
  );
}

/** `x-mcp-header`: arguments that a modern HTTP server wants repeated as `Mcp-Param-*` headers. */
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

/** Text as an HTTP header value, by the rule that MCP 2026-07-28 has for Mcp-Name and Mcp-Param-*. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
const SENTINEL = /^=\?base64\?.*\?=$/;

/** As it is where a header can carry it, in base64 with a mark otherwise; what looks like the mark is encoded too. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && !SENTINEL.test(value)) return value;
  return `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}
