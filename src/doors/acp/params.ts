/** Params of requests that hold MCP servers. The SDK's own schemas refuse the whole request for one field of one entry. */
import { isAbsolute, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

export interface SessionPlace {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  /** As they came: an entry that makes no sense is reported and left out when they are mounted. Undefined if not named. */
  readonly mcpServers: readonly unknown[] | undefined;
}

export interface KnownSession extends SessionPlace {
  readonly sessionId: string;
}

export function sessionPlace(params: unknown): SessionPlace {
  const given = objectOf(params);
  return {
    cwd: absolute(given["cwd"], "cwd"),
    additionalDirectories: listOf(given, "additionalDirectories").map((dir) => absolute(dir, "additionalDirectories")),
    mcpServers: given["mcpServers"] == null ? undefined : listOf(given, "mcpServers"),
  };
}

export function knownSession(params: unknown): KnownSession {
  const { sessionId } = objectOf(params);
  if (typeof sessionId !== "string" || sessionId === "") throw invalid("`sessionId` must be a text.");
  return { sessionId, ...sessionPlace(params) };
}

function objectOf(params: unknown): JsonObject {
  if (!isJsonObject(params)) throw invalid("The params must be an object.");
  return params;
}

function listOf(params: JsonObject, key: string): readonly unknown[] {
  const value = params[key] ?? [];
  if (!Array.isArray(value)) throw invalid(`\`${key}\` must be a list.`);
  return value;
}

function absolute(value: unknown, key: string): string {
  if (typeof value !== "string" || !isAbsolute(value)) throw invalid(`\`${key}\` must be an absolute path.`);
  // One folder has one spelling.
  return resolve(value);
}

function invalid(message: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message);
}
