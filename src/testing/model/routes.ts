/** Which protocol a request speaks, by its path. */
import type { JsonObject } from "../../model/json.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { openAiChat } from "./openai-chat.ts";
import { openAiResponses } from "./openai-responses.ts";
import type { Protocol } from "./protocol.ts";

export interface Protocols {
  readonly chat: Protocol;
  readonly responses: Protocol;
}

/** A set for one server, because one of them remembers. */
export function protocols(): Protocols {
  return { chat: openAiChat, responses: openAiResponses() };
}

/** A base address without `/v1` is as good: clients differ in what they expect. */
export function protocolOf(
  path: string,
  headers: Readonly<Record<string, string>>,
  { chat, responses }: Protocols,
): Protocol | undefined {
  if (path.endsWith("/chat/completions")) return chat;
  if (path.endsWith("/responses")) return responses;
  if (path.endsWith("/messages")) return anthropic;
  if (/\/models\/[^/]+:(?:stream)?generateContent$/i.test(path)) return gemini;
  if (path.endsWith("/models")) return headers["anthropic-version"] === undefined ? chat : anthropic;
  return undefined;
}

/** The answer to a request for the list of models; undefined for any other. */
export function modelList(
  method: string | undefined,
  path: string,
  protocol: Protocol | undefined,
  ids: readonly string[],
): JsonObject | undefined {
  if (method !== "GET" || !path.endsWith("/models")) return undefined;
  if (protocol?.name !== "anthropic")
    return { object: "list", data: ids.map((id) => ({ id, object: "model", created: 0, owned_by: "toolcrib" })) };
  const created = new Date(0).toISOString();
  const data = ids.map((id) => ({ type: "model", id, display_name: id, created_at: created }));
  return { data, has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null };
}
