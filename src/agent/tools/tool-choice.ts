/** The tools that the model is told of in one step, and what a client is told of their calls. */
import type { Hub } from "../../hub/hub.ts";
import { CALL_TOOL, SEARCH_TOOLS } from "../../hub/search-definitions.ts";
import type { AskCallback } from "../../model/ask.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isLocalSource, isSessionLocal } from "../../model/local-source.ts";
import type { Tool } from "../../model/tool.ts";
import type { Session } from "../../sessions/session.ts";
import { SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import type { ToolCallEvent, ToolKind } from "../events.ts";
import type { ChatModel, ModelTool } from "../model/chat-model.ts";
import { type AgentPatterns, narrowToPatterns } from "./agent-rules.ts";
import { checkedTool } from "./checked-tool.ts";
import { followActiveSkills } from "./skill-rules.ts";
import { kindOf } from "./tool-kind.ts";
import { locationsOf } from "./tool-locations.ts";
import { titleOf } from "./tool-title.ts";

export interface AgentTool {
  /** Its `execute` goes through `hub.call`, and gives an error result for arguments that do not fit. */
  readonly tool: Tool;
  readonly model: ModelTool;
  /** Id of its server; null for tools of the hub and of the session itself. */
  readonly server: string | null;
  readonly kind: ToolKind;
  /** At most 100 characters, in one line. */
  title(input: JsonObject): string;
  locations(input: JsonObject): ToolCallEvent["locations"];
}

export interface ToolChoice extends AgentPatterns {
  readonly model: Pick<ChatModel, "provider">;
  /** What the user asked for: above `max` the tools that fit it best are chosen. */
  readonly query: string;
  readonly max: number;
  readonly resultBytes: number;
  readonly onAsk?: ((toolCallId: string) => AskCallback | undefined) | undefined;
}

/** Narrows the session to what the patterns and the active skills leave. */
export function chooseTools(hub: Hub, session: Session, options: ToolChoice): readonly AgentTool[] {
  narrowToPatterns(session, options);
  followActiveSkills(hub, session);
  const own = new Set(session.own.servers().map(({ id }) => id));
  const tools = hub.tools({
    for: options.model.provider,
    session,
    query: options.query,
    max: options.max,
    first: ({ origin }) => isSessionLocal(origin.source) || own.has(origin.source),
    // One tool stands for all skills.
    without: ({ name }) => name.startsWith(SKILL_PREFIX),
    inlineBytes: options.resultBytes,
    onAsk: options.onAsk,
  });
  const known = new Map([...hub.view(session).tools, ...SEARCH_TOOLS].map((tool) => [tool.name, tool]));
  const serverName = serverNames(hub, session);
  return tools.flatMap((tool) => {
    const capability = known.get(tool.name);
    return capability === undefined ? [] : [agentTool(tool, capability, { known, session, serverName, options })];
  });
}

interface Surroundings {
  readonly known: ReadonlyMap<string, ToolCapability>;
  readonly session: Session;
  readonly serverName: (id: string) => string;
  readonly options: ToolChoice;
}

function agentTool(
  tool: Tool,
  capability: ToolCapability,
  { known, session, serverName, options }: Surroundings,
): AgentTool {
  const { definition, origin } = capability;
  const { workspaceDir } = session;
  return {
    tool: checkedTool(tool, options.onAsk),
    model: { name: tool.name, description: tool.description, inputSchema: tool.parameters },
    server: session.brought?.nameOf(origin.source) ?? serverOf(capability),
    kind: kindOf(origin.name, definition.annotations),
    title(input) {
      const used = behind(capability, input, known);
      const id = serverOf(used.capability);
      const server = id === null ? undefined : serverName(id);
      return titleOf({ definition: used.capability.definition, server, workspaceDir }, used.input);
    },
    locations: (input) => locationsOf(behind(capability, input, known).input, workspaceDir),
  };
}

/** What people want to know of a call by `toolcrib_call` is which tool it runs, and on what. */
function behind(
  capability: ToolCapability,
  input: JsonObject,
  known: ReadonlyMap<string, ToolCapability>,
): { readonly capability: ToolCapability; readonly input: JsonObject } {
  const inner = capability.name === CALL_TOOL ? known.get(String(input["name"])) : undefined;
  if (inner === undefined) return { capability, input };
  return { capability: inner, input: isJsonObject(input["arguments"]) ? input["arguments"] : {} };
}

/** Ids with a colon belong to no server. */
function serverOf({ origin: { source } }: ToolCapability): string | null {
  return isLocalSource(source) || source.includes(":") ? null : source;
}

function serverNames(hub: Hub, session: Session): (id: string) => string {
  const names = new Map([...hub.servers(), ...session.own.servers()].map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}
