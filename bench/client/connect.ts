/** How the bench reaches what it measures. */
import { HttpSseClient } from "./http-sse.ts";
import type { Era, McpClient } from "./protocol.ts";
import { StreamableClient } from "./streamable.ts";

export type Endpoint =
  | { readonly kind: "streamable"; readonly url: string; readonly era?: Era; readonly token?: string }
  | { readonly kind: "sse"; readonly url: string };

/** Connects and does the handshake of its era. */
export function connect(endpoint: Endpoint): Promise<McpClient> {
  switch (endpoint.kind) {
    case "streamable":
      return StreamableClient.open(endpoint);
    case "sse":
      return HttpSseClient.open(endpoint.url);
  }
}

/** The names of all tools, from all pages. */
export async function listTools(client: McpClient): Promise<string[]> {
  const names: string[] = [];
  let cursor: unknown;
  do {
    const { result, error } = await client.request("tools/list", cursor === undefined ? {} : { cursor });
    if (error !== undefined) throw new Error(`tools/list: ${error.message}`);
    // What a list answer holds by the protocol; the bench only reads names.
    const tools = (result?.["tools"] ?? []) as readonly { name: string }[];
    for (const { name } of tools) names.push(name);
    cursor = result?.["nextCursor"];
  } while (cursor !== undefined);
  return names;
}
