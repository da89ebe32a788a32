/** A conversation told again, for a client that loads it. */
import type { ContentBlock as AcpBlock } from "@agentclientprotocol/sdk/unstable";
import type { PlanEntry, ToolCallEvent } from "../../agent/events.ts";
import type { AgentMessage, AssistantPart, CallPart, CallResult, UserMessage } from "../../agent/messages.ts";
import { kindOf } from "../../agent/tools/tool-kind.ts";
import { locationsOf } from "../../agent/tools/tool-locations.ts";
import { titleOf } from "../../agent/tools/tool-title.ts";
import type { Hub } from "../../hub/hub.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Session } from "../../sessions/session.ts";
import { acpBlock } from "./acp-content.ts";
import { shownText } from "./shown-text.ts";
import { ToolCalls } from "./tool-calls.ts";
import type { Updates } from "./updates.ts";
import type { Workspace } from "./workspace.ts";

const PLAN_TOOL = "toolcrib_plan";

export interface Replay {
  readonly hub: Hub;
  readonly session: Session;
  readonly updates: Updates;
  readonly workspace: Workspace;
  /** The calls of the turn under way, which tell of themselves. */
  readonly running: ToolCalls | undefined;
}

export async function replay(messages: readonly AgentMessage[], to: Replay): Promise<void> {
  const { hub, session, updates, workspace, running } = to;
  const rawBytes = hub.config.config.agent.resultBytes;
  const calls = new ToolCalls(updates, { workspace, rawBytes, isPast: true });
  const asked = new Map<string, CallPart>();
  const ended = new Set(
    messages.flatMap((message) => (message.role === "tool" ? message.results : [])).map(({ id }) => id),
  );
  for (const message of messages) {
    if (message.role === "user") {
      for (const content of saidBy(message)) await updates.send({ sessionUpdate: "user_message_chunk", content });
    } else if (message.role === "assistant") {
      for (const part of message.parts) await tellPart(part);
    } else {
      for (const result of message.results) await tellResult(result);
    }
  }
  // A process that was killed leaves calls without a result.
  await calls.end({ cancelled: true });
  await running?.retell(ended);

  async function tellPart(part: AssistantPart): Promise<void> {
    if (part.type === "text") return updates.text(shownText(part.text));
    if (part.type === "thought") return updates.thought(part.text);
    if (part.name === PLAN_TOOL) {
      const entries = planOf(part);
      if (entries.length > 0) await updates.send({ sessionUpdate: "plan", entries });
    }
    if (running !== undefined && !ended.has(part.id)) return;
    asked.set(part.id, part);
    await calls.take({ ...describe(part, hub, session), state: "pending" });
  }

  async function tellResult({ id, content, isError }: CallResult): Promise<void> {
    const part = asked.get(id);
    if (part === undefined) return;
    await calls.take({ ...describe(part, hub, session), state: isError ? "failed" : "done", content });
  }
}

/** What the user typed, where something else was made of it for the model. */
function saidBy(message: UserMessage): AcpBlock[] {
  const said = "said" in message && typeof message.said === "string" ? message.said : undefined;
  if (said === undefined) return message.content.map(acpBlock);
  const others = message.content.filter(({ type }) => type !== "text");
  return [{ type: "text", text: said }, ...others.map(acpBlock)];
}

/** As it was shown when it ran. Of a tool that is not there, or not seen in this mode, its name tells as much as it can. */
function describe({ id, name, input }: CallPart, hub: Hub, session: Session): Omit<ToolCallEvent, "state"> {
  const capability = hub.view(session).tools.find((tool) => tool.name === name);
  const servers = [...session.own.servers(), ...hub.servers()];
  const server =
    capability === undefined
      ? servers.find((one) => name.startsWith(`${one.name}__`) || name.startsWith(`${one.id}__`))
      : servers.find((one) => one.id === capability.origin.source);
  const bareName = capability?.origin.name ?? afterServer(name);
  const definition = capability?.definition ?? { name: bareName, inputSchema: {} };
  const { workspaceDir } = session;
  return {
    type: "tool-call",
    id,
    name,
    title: titleOf({ definition, server: server?.name, workspaceDir }, input),
    kind: kindOf(bareName, definition.annotations),
    server: server?.id ?? null,
    input,
    locations: locationsOf(input, workspaceDir),
  };
}

function planOf({ input }: CallPart): PlanEntry[] {
  const entries = Array.isArray(input["entries"]) ? input["entries"].filter(isJsonObject) : [];
  return entries.flatMap(({ content, priority, status }) =>
    typeof content === "string" ? [{ content, priority: priorityOf(priority), status: statusOf(status) }] : [],
  );
}

function priorityOf(value: unknown): PlanEntry["priority"] {
  return value === "high" || value === "low" ? value : "medium";
}

function statusOf(value: unknown): PlanEntry["status"] {
  return value === "in_progress" || value === "completed" ? value : "pending";
}

/** `read_file` of `files__read_file`. */
function afterServer(name: string): string {
  const at = name.indexOf("__");
  return at === -1 ? name : name.slice(at + 2);
}
