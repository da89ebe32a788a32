import type { JsonObject } from "../../src/model/json.ts";
import type { SessionContext, UseContext } from "../../src/model/source.ts";
import type { Tool } from "../../src/model/tool.ts";

/** A tool that answers with its arguments as JSON, unless told otherwise. */
export function tool(name: string, overrides: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `The tool ${name}.`,
    parameters: { type: "object" },
    execute: async (_id, params) => ({ content: [{ type: "text", text: JSON.stringify(params) }] }),
    ...overrides,
  };
}

export function session(overrides: Partial<SessionContext> = {}): SessionContext {
  return { id: "s1", door: "library", owner: true, client: { key: "s1", capabilities: {} }, ...overrides };
}

export function useContext(overrides: Partial<UseContext> = {}): UseContext {
  const whose = overrides.session ?? session();
  const { signal } = new AbortController();
  return { callId: "call-1", session: whose, client: whose.client, signal, ...overrides };
}

export function use(name: string, args: JsonObject = {}) {
  return { kind: "tool", name, arguments: args } as const;
}
