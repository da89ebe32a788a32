import type { CheckedInput } from "../../../../contract/operations.ts";
import type { ToolInfo } from "../../../../contract/catalog.ts";
import type { Quarantined } from "../../../../catalog/quarantine.ts";
import type { ToolCapability } from "../../../../model/capability.ts";
import { isJsonObject } from "../../../../model/json.ts";
import { callTool } from "../call-tool.ts";
import { findTools } from "../find-tools.ts";
import type { Handlers, OperationContext } from "../operation.ts";
import type { OperatorHub } from "../operator-hub.ts";
import { pageOf } from "../paging.ts";
import type { Shown } from "../shown.ts";
import { visibleServer } from "../visible-servers.ts";

export const toolHandlers: Handlers<"listTools" | "callTool"> = {
  listTools(input, context, { hub }) {
    const { entries, total, next } = pageOf(matching(hub, input, context), input, keyOf);
    const tools = entries.map((tool) => (isCapability(tool) ? toolInfo(tool, hub.pins, input.fields) : setAside(tool)));
    return { tools, total, ...next };
  },
  callTool,
};

function matching(
  hub: OperatorHub,
  { serverId, name, q, pin }: CheckedInput<"listTools">,
  { session, caller }: OperationContext,
): (ToolCapability | Quarantined)[] {
  const view = hub.view(session);
  const { pins } = hub;
  let tools: readonly ToolCapability[] = q === undefined || q.trim() === "" ? view.tools : findTools(view, q);
  if (serverId !== undefined) {
    tools = tools.filter(({ origin }) => origin.source === serverId);
    // In-process tools and skills are sources as well, and no servers.
    if (tools.length === 0 && !view.tools.some(({ origin }) => origin.source === serverId)) {
      visibleServer(hub, session, serverId);
    }
  }
  if (name !== undefined) tools = tools.filter((tool) => tool.name === name);
  if (pin !== undefined) tools = tools.filter(({ origin }) => pins.stateOf(origin.source, origin.name) === pin);
  const seesAll = caller.scopes.has("admin") && session.role === undefined;
  const isPlain = q === undefined && name === undefined && pin === undefined;
  if (!seesAll || !isPlain) return [...tools];
  const bad = hub.quarantined().filter(({ kind, source }) => kind === "tool" && source === (serverId ?? source));
  return [...tools, ...bad];
}

function isCapability(tool: ToolCapability | Quarantined): tool is ToolCapability {
  return "definition" in tool;
}

function keyOf(tool: ToolCapability | Quarantined): string {
  return isCapability(tool) ? tool.name : JSON.stringify([tool.source, tool.name]);
}

interface PinStates {
  stateOf(source: string, tool: string): ToolInfo["pin"];
}

/** What a server wrote as null is as good as absent. */
export function toolInfo(
  { name, origin, definition, fingerprint }: ToolCapability,
  pins: PinStates,
  fields: "all" | "summary",
): Shown<ToolInfo> {
  const { title, description, inputSchema, outputSchema, annotations } = definition;
  return {
    name,
    server: origin.source,
    tool: origin.name,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    ...(fields === "all" ? { inputSchema } : {}),
    ...(fields === "all" && isJsonObject(outputSchema) ? { outputSchema } : {}),
    ...(isJsonObject(annotations) ? { annotations } : {}),
    fingerprint,
    pin: pins.stateOf(origin.source, origin.name),
  };
}

/** It has no public name, because nobody can call it. */
function setAside({ source, name, reason }: Quarantined): Shown<ToolInfo> {
  return { name, server: source, tool: name, fingerprint: "", pin: "unknown", quarantined: reason };
}
