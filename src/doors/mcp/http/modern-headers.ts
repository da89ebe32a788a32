/** Checks that the headers of a modern request say what its body says, so that whoever routed by them routed right. */
import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { ToolDefinition } from "../../../model/protocol.ts";
import { HEADER_MISMATCH, type RpcError, type RpcRequest } from "../../../model/rpc.ts";
import { mirroredParams } from "../../../upstream/param-headers.ts";
import { envelopeError } from "../envelope.ts";
import { decodeHeaderValue, headerOf } from "./header-value.ts";

/** What is wrong with the request before anybody looks at what it wants; undefined if nothing is. */
export function headerError(request: RpcRequest, headers: IncomingHttpHeaders): RpcError | undefined {
  const { method, params } = request;
  const header = headerOf(headers["mcp-protocol-version"]);
  const error = envelopeError(request, (version) =>
    header === version ? undefined : mismatch("MCP-Protocol-Version", header, version),
  );
  if (error !== undefined) return error;
  const methodHeader = headerOf(headers["mcp-method"]);
  if (methodHeader !== method) return mismatch("Mcp-Method", methodHeader, method);
  const name = nameIn(method, params);
  if (typeof name !== "string") return undefined;
  const nameHeader = headerOf(headers["mcp-name"]);
  const matches = nameHeader !== undefined && decodeHeaderValue(nameHeader) === name;
  return matches ? undefined : mismatch("Mcp-Name", nameHeader, name);
}

function nameIn(method: string, params: JsonObject | undefined): unknown {
  switch (method) {
    case "tools/call":
    case "prompts/get":
      return params?.["name"];
    case "resources/read":
      return params?.["uri"];
    default:
      return undefined;
  }
}

type Mirrored = readonly { readonly header: string; readonly path: readonly string[] }[];
const mirrored = new WeakMap<ToolDefinition, Mirrored>();

/** Arguments that the tool wants repeated in `Mcp-Param-*` headers. */
export function paramError(
  tool: ToolDefinition,
  params: JsonObject | undefined,
  headers: IncomingHttpHeaders,
): RpcError | undefined {
  for (const { header, path } of mirroredIn(tool)) {
    const value = path.reduce<unknown>((at, key) => (isJsonObject(at) ? at[key] : undefined), params?.["arguments"]);
    const sent = headerOf(headers[`mcp-param-${header.toLowerCase()}`]);
    if (!says(sent, value)) return mismatch(`Mcp-Param-${header}`, sent, value);
  }
  return undefined;
}

/** A tool whose annotations are wrong as a whole has none: clients must not offer it, and nobody routed by them. */
function mirroredIn(tool: ToolDefinition): Mirrored {
  let found = mirrored.get(tool);
  if (found === undefined) {
    const checked = mirroredParams(tool);
    found = checked.ok ? checked.params : [];
    mirrored.set(tool, found);
  }
  return found;
}

function says(header: string | undefined, value: unknown): boolean {
  if (value === undefined || value === null) return header === undefined;
  // No header can carry anything else; the tool's own schema refuses it.
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return true;
  if (header === undefined) return false;
  const decoded = decodeHeaderValue(header);
  if (decoded === undefined) return false;
  if (typeof value === "number") return decoded.trim() !== "" && Number(decoded) === value;
  return decoded === String(value);
}

function mismatch(header: string, sent: string | undefined, body: unknown): RpcError {
  const said = sent === undefined ? "is missing" : `"${shown(sent)}" does not match the body`;
  return { code: HEADER_MISMATCH, message: `Header mismatch: ${header} ${said}; the body says "${shown(body)}".` };
}

function shown(value: unknown): string {
  const text = String(value);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
