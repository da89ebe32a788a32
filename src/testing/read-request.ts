/** Reads HTTP requests, for both servers of this folder. */
import type { IncomingMessage } from "node:http";
import { isJsonObject, type JsonObject } from "../model/json.ts";

/** With names in lower case. */
export function readHeaders(request: IncomingMessage): Record<string, string> {
  const entries = Object.entries(request.headers);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );
}

/** Undefined if the body is not a JSON object. */
export async function readJsonBody(request: IncomingMessage): Promise<JsonObject | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    return isJsonObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}
