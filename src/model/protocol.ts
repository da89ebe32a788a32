/**
 * The MCP shapes that Toolcrib reads. Each keeps an index signature on purpose:
 * fields we do not know belong to the server and its client and pass through untouched.
 */
import type { JsonObject } from "./json.ts";

export const MODERN_VERSION = "2026-07-28";
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
export const LATEST_LEGACY_VERSION = LEGACY_VERSIONS[0];

/** Members of `_meta` in the modern era. */
export const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
export const CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo";
export const CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
export const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";
export const SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId";
export const SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** How servers of both generations report on a task. */
export const LEGACY_REPORT = "notifications/tasks/status";
export const MODERN_REPORT = "notifications/tasks";

/** Doors pass on the state alone: the result of a task comes with a use of its tool. */
export function isTaskReport(method: string): boolean {
  return method === LEGACY_REPORT || method === MODERN_REPORT;
}

/** In `_meta` of what belongs to a task of 2025-11-25. */
export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** Legacy: `initialize` and sessions. Modern: stateless, version and capabilities in each request's `_meta`. */
export type Era = "legacy" | "modern";

export interface Implementation extends JsonObject {
  name: string;
  version: string;
}

export interface ToolAnnotations extends JsonObject {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export interface ToolDefinition extends JsonObject {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations?: ToolAnnotations;
  _meta?: JsonObject;
}

export interface ResourceDefinition extends JsonObject {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

export interface ResourceTemplateDefinition extends JsonObject {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

export interface PromptArgument extends JsonObject {
  name: string;
  description?: string;
  required?: boolean;
}

export interface PromptDefinition extends JsonObject {
  name: string;
  title?: string;
  description?: string;
  arguments?: PromptArgument[];
}

/** One block of content; `type` may be unknown here. */
export interface ContentBlock extends JsonObject {
  type: string;
}

/** Any result of a request, as the server sent it. */
export type Result = JsonObject;

export interface CallToolResult extends JsonObject {
  content: ContentBlock[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: JsonObject;
}

export interface ResourceContents extends JsonObject {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

export interface ReadResourceResult extends JsonObject {
  contents: ResourceContents[];
}

export interface PromptMessage extends JsonObject {
  role: string;
  content: ContentBlock;
}

export interface GetPromptResult extends JsonObject {
  description?: string;
  messages: PromptMessage[];
}

export interface Root extends JsonObject {
  uri: string;
  name?: string;
}

/** A progress report, without the token that only the wire needs. */
export interface Progress extends JsonObject {
  progress: number;
  total?: number;
  message?: string;
}

export interface LogMessage extends JsonObject {
  level: string;
  logger?: string;
  data?: unknown;
}

export type RequestId = string | number;

export interface RpcError extends JsonObject {
  code: number;
  message: string;
  data?: unknown;
}

export interface RpcRequest {
  jsonrpc: "2.0";
  id: RequestId;
  method: string;
  params?: JsonObject;
}

export interface RpcNotification {
  jsonrpc: "2.0";
  method: string;
  params?: JsonObject;
}

export type RpcResponse =
  | { jsonrpc: "2.0"; id: RequestId; result: JsonObject }
  | { jsonrpc: "2.0"; id: RequestId | null; error: RpcError };

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** Legacy only: the modern era says INVALID_PARAMS. */
export const RESOURCE_NOT_FOUND = -32002;
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
/** Of the legacy era: the user has to visit addresses first. */
export const URL_ELICITATION_REQUIRED = -32042;
export const UNSUPPORTED_VERSION = -32022;
