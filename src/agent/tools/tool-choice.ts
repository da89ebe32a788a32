/** The tools that the model is given in one step, and how their calls are shown to a client. */
import type { Hub } from "../../hub/hub.ts";
import { CALL_TOOL, SEARCH_TOOLS } from "../../hub/view/search-definitions.ts";
import type { View } from "../../hub/view/view.ts";
import { isLocalSource, isSessionLocalSource, type ToolCapability } from "../../model/capability.ts";
import type { AskCallback } from "../../model/decision.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { errorToolResult, type Tool, type ToolResult } from "../../model/tool.ts";
import type { Session } from "../../sessions/session.ts";
import { isSkillsSource } from "../../skills/offer/offered-skill.ts";
import type { ToolCallEvent, ToolKind } from "../agent-options.ts";
import { checkModelArguments } from "../../tools/check-arguments.ts";
import type { ChatModel, ModelTool } from "../model/chat-model.ts";
import { askScope } from "./built-in-tools.ts";
import { type AgentPatterns, applyActiveSkillRules, applyToolPatterns } from "./session-rules.ts";
import { toolCallLocations, toolCallTitle, toolKind } from "./tool-facts.ts";

export interface AgentTool {
  /** Its `execute` goes through `hub.call`, and returns an error result for invalid arguments. */
  readonly tool: Tool;
  readonly model: ModelTool;
  /** Id of its server; null for tools of the hub and of the session itself. */
  readonly server: string | null;
  readonly kind: ToolKind;
  /** At most 100 characters, in one line. */
  title(input: JsonObject): string;
  locations(input: JsonObject): ToolCallEvent["locations"];
}

export interface ToolChoiceOptions extends AgentPatterns {
  readonly model: Pick<ChatModel, "provider">;
  /** The user's request: above `max`, the tools that fit it best are chosen. */
  readonly query: string;
  readonly max: number;
  readonly resultBytes: number;
  readonly onAsk?: (toolCallId: string) => AskCallback | undefined;
  /** Called when the arguments of a call are valid and the hub is about to decide on it. */
  readonly onChecked?: (toolCallId: string) => void;
}

/** Narrows the session to what the patterns and the active skills leave. */
export function chooseTools(hub: Hub, session: Session, options: ToolChoiceOptions): readonly AgentTool[] {
  applyToolPatterns(session, options);
  applyActiveSkillRules(hub, session);
  const own = new Set(session.own.servers().map(({ id }) => id));
  const tools = hub.tools({
    for: options.model.provider,
    session,
    query: options.query,
    max: options.max,
    first: ({ origin }) => isSessionLocalSource(origin.source) || own.has(origin.source),
    // One tool represents all skills.
    without: ({ origin }) => isSkillsSource(origin.source),
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

interface AgentToolContext {
  readonly known: ReadonlyMap<string, ToolCapability>;
  readonly session: Session;
  readonly serverName: (id: string) => string;
  readonly options: ToolChoiceOptions;
}

function agentTool(
  tool: Tool,
  capability: ToolCapability,
  { known, session, serverName, options }: AgentToolContext,
): AgentTool {
  const { definition, origin } = capability;
  const { workspaceDir } = session;
  return {
    tool: withArgumentCheck(tool, options),
    model: { name: tool.name, description: tool.description, inputSchema: tool.parameters },
    server: session.mounted?.nameOf(origin.source) ?? serverOf(capability),
    kind: toolKind(origin.name, definition.annotations),
    title(input) {
      const used = calledTool(capability, input, known);
      const id = serverOf(used.capability);
      const server = id === null ? undefined : serverName(id);
      return toolCallTitle({ definition: used.capability.definition, server, workspaceDir }, used.input);
    },
    locations: (input) => toolCallLocations(calledTool(capability, input, known).input, workspaceDir),
  };
}

/** The tool behind a call of `toolcrib_call`, and its arguments: that is what people want to see. */
function calledTool(
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
  const names = new Map([...hub.servers.list(), ...session.own.servers()].map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}

type ChoiceOptions = Parameters<typeof chooseTools>[2];

/**
 * The tools that the model is given. The list stays the same until the view of the session changes: providers cache a
 * request up to its first difference, and tools come first in it.
 */
export class ToolList {
  readonly #hub: Hub;
  readonly #session: Session;
  readonly #options: ChoiceOptions;
  #view: View | undefined;
  #tools: readonly AgentTool[] = [];

  constructor(hub: Hub, session: Session, options: ChoiceOptions) {
    this.#hub = hub;
    this.#session = session;
    this.#options = options;
  }

  /** The tools for the next step. */
  choose(): readonly AgentTool[] {
    if (this.#hub.view(this.#session) === this.#view) return this.#tools;
    this.#tools = chooseTools(this.#hub, this.#session, this.#options);
    // After the choice, which narrows the session to what the agent includes.
    this.#view = this.#hub.view(this.#session);
    return this.#tools;
  }

  /** Among those of the last choice. */
  find(name: string): AgentTool | undefined {
    return this.#tools.find(({ model }) => model.name === name);
  }

  /** The error for a model that requested a tool that it was not given. */
  missing(name: string): ToolcribError {
    const isThere = this.#hub.view(this.#session).tools.some((tool) => tool.name === name);
    if (!isThere) return this.#hub.internals.missing(this.#session, name);
    return new ToolcribError("not_found", `The tool ${name} is not in your list.`, {
      hint: "Use one of the tools that you were given. Search tools, if there are any, reach the others.",
    });
  }
}

/** The tool with its arguments checked against the schema that the model was given; problems become an error result. */
function withArgumentCheck(tool: Tool, { onAsk, onChecked }: ToolChoiceOptions): Tool {
  return {
    ...tool,
    async execute(toolCallId, params, signal, onUpdate) {
      const problem = await problemOf(tool, params);
      if (problem !== undefined) return problem;
      onChecked?.(toolCallId);
      return askScope.run(onAsk?.(toolCallId), () => tool.execute(toolCallId, params, signal, onUpdate));
    },
  };
}

async function problemOf(tool: Tool, params: JsonObject): Promise<ToolResult | undefined> {
  try {
    await checkModelArguments(tool, params);
    return undefined;
  } catch (thrown) {
    return errorToolResult(asToolcribError(thrown).toObject());
  }
}
