import type { JsonObject } from "../model/json.ts";
import type { Use } from "../model/source.ts";

interface UseRequest {
  readonly method: string;
  readonly params: JsonObject;
}

/** A Use as the MCP request that stands for it. */
export function useRequest(use: Use): UseRequest {
  switch (use.kind) {
    case "tool":
      return { method: "tools/call", params: { name: use.name, arguments: use.arguments } };
    case "resource":
      return { method: "resources/read", params: { uri: use.uri } };
    case "prompt":
      return { method: "prompts/get", params: { name: use.name, arguments: use.arguments } };
    case "completion": {
      const { ref, argument, context } = use;
      return {
        method: "completion/complete",
        params: { ref, argument, context },
      };
    }
    case "subscribe":
      return { method: "resources/subscribe", params: { uri: use.uri } };
    case "unsubscribe":
      return { method: "resources/unsubscribe", params: { uri: use.uri } };
  }
}
