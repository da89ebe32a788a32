/** What one node tells another about a request that it hands on. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { type Caller, SCOPES } from "../../../model/caller.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";

export interface RequestHead {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whom the node that took the request has made sure of. Nodes trust each other; credentials are never handed on. */
  readonly caller: Caller;
}

/** The address at which a node takes requests of others. */
export function requestsOf(node: string): string {
  return `node.${node}.http`;
}

/** What routes look at. Neither credentials nor anything of the connection is among them. */
const PASSED = new Set(["accept", "content-type", "host", "if-match", "if-none-match", "last-event-id", "user-agent"]);

export function passedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && (PASSED.has(name) || name.startsWith("mcp-"))) passed[name] = value;
  }
  return passed;
}

/** They are about one connection. */
const OF_CONNECTION = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

export function answeredHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !OF_CONNECTION.has(name)) answered[name] = value;
  }
  return answered;
}

export function toWire({ method, url, headers, caller }: RequestHead): JsonObject {
  return { method, url, headers: { ...headers }, caller: { ...caller, scopes: [...caller.scopes] } };
}

/** Undefined for what no node sends. */
export function fromWire(head: JsonObject): RequestHead | undefined {
  const { method, url, headers, caller } = head;
  if (typeof method !== "string" || typeof url !== "string" || !isJsonObject(headers)) return undefined;
  const known = callerFrom(caller);
  return known && { method, url, headers: texts(headers), caller: known };
}

export function callerFrom(value: unknown): Caller | undefined {
  if (!isJsonObject(value)) return undefined;
  const { key, user, role, owner, scopes, expiresAt } = value;
  if (typeof key !== "string" || typeof owner !== "boolean" || !Array.isArray(scopes)) return undefined;
  return {
    key,
    owner,
    scopes: new Set(SCOPES.filter((scope) => scopes.includes(scope))),
    ...(typeof user === "string" ? { user } : {}),
    ...(typeof role === "string" ? { role } : {}),
    ...(typeof expiresAt === "number" ? { expiresAt } : {}),
  };
}

export function headersFrom(value: unknown): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, text] of Object.entries(isJsonObject(value) ? value : {})) {
    if (typeof text === "string") headers[name] = text;
    else if (Array.isArray(text)) headers[name] = text.map(String);
  }
  return headers;
}

function texts(value: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) => (typeof text === "string" ? [[name, text]] : [])),
  );
}
