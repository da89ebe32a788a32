/** A hub with one server and one tool, for sessions that bring their own. */
import { expect } from "vitest";
import { createHub, type HubOptions } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { ConfigInput } from "../../src/model/config.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Tool } from "../../src/model/tool.ts";
import type { Session } from "../../src/sessions/session.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { misbehaving } from "../support/servers.ts";

export function tool(name: string, text = name, more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `Says ${text}.`,
    parameters: { type: "object" },
    execute: async () => ({ content: [{ type: "text", text }] }),
    ...more,
  };
}

export function startHub(config: ConfigInput = {}, options: HubOptions = {}): Promise<Hub> {
  const registry = new ToolRegistry();
  registry.register(tool("here"));
  const mcpServers = { files: misbehaving("ok"), ...config.mcpServers };
  return createHub({ ...config, mcpServers }, { registry, ...options });
}

export const names = (hub: Hub, session: Session): string[] => hub.view(session).tools.map(({ name }) => name);

/** The names that a session has besides the hub's. */
export function ownNames(hub: Hub, session: Session): string[] {
  const shared = new Set(names(hub, hub.session));
  return names(hub, session).filter((name) => !shared.has(name));
}

export async function textOf(hub: Hub, session: Session, name: string, args: JsonObject = {}): Promise<string> {
  const outcome = await hub.call({ session, name, arguments: args });
  if (!outcome.ok) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
  const [block] = outcome.result.content;
  return block?.type === "text" ? String(block["text"]) : "";
}

export async function pidOf(hub: Hub, session: Session, name: string): Promise<number> {
  const { pid } = JSON.parse(await textOf(hub, session, name)) as { pid: number };
  expect(pid).toBeGreaterThan(0);
  return pid;
}

export const messages = (session: Session): string[] => session.own.notices().map(({ message }) => message);
