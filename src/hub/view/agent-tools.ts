/** The catalog as `Tool[]` for an agent loop: names as they are, schemas as the provider takes them, content as a model can read it. */
import type { Emitter } from "../../base/emitter.ts";
import {
  isWrappedWith,
  shortenWrapped,
  type UntrustedMark,
  untrustedMarkOf,
  wrappedModelContent,
} from "../../guard/wrap-untrusted.ts";
import { type CapabilityOrigin, isLocalSource, type ToolCapability } from "../../model/capability.ts";
import { truncateMiddle } from "../../model/content.ts";
import type { AskCallback } from "../../model/decision.ts";
import {
  asToolcribError,
  type ErrorObject,
  errorTextForModel,
  type Outcome,
  ToolcribError,
} from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { CallToolResult, ContentBlock, Progress } from "../../model/protocol.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import { type NormalizedSchema, normalizeSchema, type Provider, PROVIDERS } from "../../schemas/normalize.ts";
import { schemaSize } from "../../schemas/schema-size.ts";
import type { Session } from "../../sessions/session.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import type { ToolsOptions } from "../call/call-context.ts";
import type { HubParts, Wiring } from "../create/wiring.ts";
import type { HubEvents } from "../hub-events.ts";
import { dispatchTarget, type SkillSources } from "../skills/skill-sources.ts";
import { CALL_TOOL, isSearchTool } from "./search-definitions.ts";

/** `details` of what a tool from an MCP server returns; for the program, never for a model. */
export interface McpToolDetails {
  readonly callId: string;
  readonly server: string;
  readonly tool: string;
  /** Present when what came back is untrusted. */
  readonly externalContent?: ExternalContent;
  /** The whole result, when there was one; its texts are wrapped where the guard wraps for agents. */
  readonly result?: CallToolResult;
  readonly error?: ErrorObject;
}

interface ExternalContent {
  readonly untrusted: true;
  readonly source: "mcp";
  readonly server: string;
  readonly tool: string;
  readonly wrapped: boolean;
  readonly findings?: UntrustedMark["findings"];
}

interface AgentToolsOptions {
  readonly provider: Provider;
  readonly session: Session;
  readonly inlineBytes: number;
  readonly serverName: (id: string) => string;
  readonly call: (
    session: Session,
    request: {
      name: string;
      origin: CapabilityOrigin;
      arguments: JsonObject;
      signal: AbortSignal | undefined;
      onProgress: ((progress: Progress) => void) | undefined;
      audience: "agent";
      onAsk: AskCallback | undefined;
    },
  ) => Promise<Outcome<CallToolResult>>;
  readonly onAsk?: ((toolCallId: string) => AskCallback | undefined) | undefined;
  /** The tool whose result a call returns: another one where a tool runs tools. */
  readonly toolBehind: (tool: ToolCapability, args: JsonObject) => ToolCapability;
  /** Gets each tool that this provider cannot take; the tool is left out. */
  readonly onUnusable: (tool: ToolCapability, reason: string) => void;
}

export function agentTools(capabilities: readonly ToolCapability[], options: AgentToolsOptions): Tool[] {
  const tools: Tool[] = [];
  const sizes = new Map<string, number>();
  for (const capability of capabilities) {
    if (options.provider !== "raw" && !isTrustedLocal(capability)) {
      const { source } = capability.origin;
      const nodes = (sizes.get(source) ?? 0) + nodesOf(capability.definition.inputSchema);
      sizes.set(source, nodes);
      if (nodes > MAX_NODES_PER_SOURCE) {
        const reason = `the schemas of its server have more than ${MAX_NODES_PER_SOURCE} values together`;
        options.onUnusable(capability, reason);
        continue;
      }
    }
    const schema = schemaFor(capability, options);
    if (schema !== undefined) tools.push(agentTool(capability, schema, options));
  }
  return tools;
}

/** Of one source, in the order of the list: a model could not be sent more, and making a provider's form of it takes time. */
const MAX_NODES_PER_SOURCE = 100_000;
const countedNodes = new WeakMap<JsonObject, number>();

function nodesOf(schema: JsonObject): number {
  let nodes = countedNodes.get(schema);
  if (nodes === undefined) countedNodes.set(schema, (nodes = schemaSize(schema).nodes));
  return nodes;
}

/** Schemas are immutable definitions, so each is normalised once per provider, or found to be unusable. */
const normalised = new WeakMap<JsonObject, Map<Provider, NormalizedSchema | { readonly unusable: string }>>();

function schemaFor(capability: ToolCapability, options: AgentToolsOptions): NormalizedSchema | undefined {
  const { inputSchema } = capability.definition;
  let byProvider = normalised.get(inputSchema);
  if (byProvider === undefined) normalised.set(inputSchema, (byProvider = new Map()));
  let known = byProvider.get(options.provider);
  if (known === undefined) byProvider.set(options.provider, (known = normalisedFor(inputSchema, options.provider)));
  if (!("unusable" in known)) return known;
  options.onUnusable(capability, known.unusable);
  return undefined;
}

function normalisedFor(schema: JsonObject, provider: Provider): NormalizedSchema | { readonly unusable: string } {
  try {
    return normalizeSchema(schema, provider);
  } catch (error) {
    return { unusable: error instanceof Error ? error.message : String(error) };
  }
}

function agentTool(
  capability: ToolCapability,
  { schema, restore }: NormalizedSchema,
  options: AgentToolsOptions,
): Tool {
  const { definition, origin } = capability;
  const local = isTrustedLocal(capability);
  const label = local ? definition.title : `MCP: ${options.serverName(origin.source)}/${origin.name}`;
  return {
    name: capability.name,
    label,
    description: local ? (definition.description ?? "") : describeMcpTool(capability, options),
    parameters: schema,
    annotations: definition.annotations,
    async execute(toolCallId, params, signal, onUpdate) {
      const ran = options.toolBehind(capability, params);
      const outcome = await options.call(options.session, {
        name: capability.name,
        origin,
        arguments: restore(params),
        signal,
        audience: "agent",
        onAsk: options.onAsk?.(toolCallId),
        onProgress:
          onUpdate &&
          ((progress) => onUpdate({ content: [{ type: "text", text: progressText(progress) }], details: progress })),
      });
      return isTrustedLocal(ran) ? localResult(outcome, options) : mcpResult(ran, outcome, options);
    },
  };
}

/** In-process tools, the user's skills, and the search tools. */
function isTrustedLocal(capability: ToolCapability): boolean {
  const { source } = capability.origin;
  return isLocalSource(source) || source === SKILLS_SOURCE || isSearchTool(capability);
}

function describeMcpTool({ definition, origin }: ToolCapability, options: AgentToolsOptions): string {
  const server = options.serverName(origin.source);
  const text =
    definition.description?.trim() || definition.title?.trim() || `Tool ${origin.name} of the server ${server}.`;
  return `[MCP: ${server}] ${text}`;
}

function localResult(outcome: Outcome<CallToolResult>, options: AgentToolsOptions): ToolResult {
  const result = toolResult(outcome, options);
  const details = outcome.result?.["details"] ?? (outcome.ok ? undefined : { error: outcome.error });
  return details === undefined ? result : { ...result, details };
}

function mcpResult(
  { origin }: ToolCapability,
  outcome: Outcome<CallToolResult>,
  options: AgentToolsOptions,
): ToolResult<McpToolDetails> {
  return {
    ...toolResult(outcome, options),
    details: {
      callId: outcome.callId,
      server: origin.source,
      tool: origin.name,
      ...externalContent(outcome.result),
      ...(outcome.result === undefined ? {} : { result: outcome.result }),
      ...(outcome.ok ? {} : { error: outcome.error }),
    },
  };
}

function externalContent(result: CallToolResult | undefined): { externalContent?: ExternalContent } {
  const mark = untrustedMarkOf(result);
  if (mark === undefined) return {};
  const { server, tool, wrapped, findings } = mark;
  const found = findings.length === 0 ? {} : { findings };
  return { externalContent: { untrusted: true, source: "mcp", server, tool, wrapped, ...found } };
}

function toolResult(outcome: Outcome<CallToolResult>, options: AgentToolsOptions): ToolResult<never> {
  if (!outcome.ok && outcome.result === undefined) {
    return { content: [{ type: "text", text: errorTextForModel(outcome.error) }], isError: true };
  }
  // An ok outcome always has its result; the check above leaves only failures that have one.
  const result = outcome.result ?? { content: [] };
  return { content: contentFor(result, outcome.callId, options), ...(outcome.ok ? {} : { isError: true }) };
}

function contentFor(result: CallToolResult, callId: string, options: AgentToolsOptions): ContentBlock[] {
  if (options.provider === "raw") return result.content;
  const boundary = untrustedMarkOf(result)?.boundary;
  return wrappedModelContent(result).map((block, index) => truncated(block, boundary, `${callId}-${index}`, options));
}

/** Long text is cut in its middle, and kept whole for the session. The cut is inside the boundary, never across it. */
function truncated(
  block: ContentBlock,
  boundary: string | undefined,
  id: string,
  { inlineBytes, session }: AgentToolsOptions,
): ContentBlock {
  const text = block["text"];
  if (block.type !== "text" || typeof text !== "string" || Buffer.byteLength(text) <= inlineBytes) return block;
  const uri = session.results.keep(id, text);
  const note = `\n[... cut here; the whole text is the resource ${uri} ...]\n`;
  const isWrapped = boundary !== undefined && isWrappedWith(text, boundary);
  return {
    ...block,
    text: isWrapped ? shortenWrapped(text, inlineBytes, note) : truncateMiddle(text, inlineBytes, note),
  };
}

function progressText({ progress, total, message }: Progress): string {
  if (typeof message === "string") return message;
  return typeof total === "number" ? `${progress} of ${total}` : `${progress}`;
}

interface HubToolsParts {
  /** The hub's own session. */
  readonly own: Session;
  readonly parts: HubParts;
  readonly wiring: Wiring;
  readonly events: Emitter<HubEvents>;
  readonly call: AgentToolsOptions["call"];
}

/** The tools of a hub for an agent loop, as a model provider takes them. */
export function toolsForAgent(options: ToolsOptions, { own, parts, wiring, events, call }: HubToolsParts): Tool[] {
  const session = options.session ?? own;
  if (options.for !== undefined && !PROVIDERS.includes(options.for)) {
    throw new ToolcribError("invalid_arguments", `There is no provider "${options.for}".`, {
      hint: `Providers: ${PROVIDERS.join(", ")}.`,
    });
  }
  return agentTools(wiring.offered.of(session, options), {
    provider: options.for ?? "raw",
    session,
    inlineBytes: options.inlineBytes ?? wiring.config.config.limits.inlineBytes,
    onAsk: options.onAsk,
    serverName: (id) => parts.servers.get(id)?.spec.name ?? parts.sessionSources.get(id)?.name ?? id,
    call,
    toolBehind: (tool, args) => dispatchedTool(tool, args, wiring.views.of(session).tools, parts.skills),
    onUnusable: (tool, reason) =>
      events.emit("warning", {
        server: tool.origin.source,
        message: `The tool ${tool.name} is left out: ${reason}`,
      }),
  });
}

/** The tool whose result a call of `tool` returns: mostly itself, else the one that it runs, and as untrusted as that. */
function dispatchedTool(
  tool: ToolCapability,
  args: JsonObject,
  visible: readonly ToolCapability[],
  skills: SkillSources,
): ToolCapability {
  if (isSearchTool(tool)) {
    const named = tool.name === CALL_TOOL ? visible.find(({ name }) => name === args["name"]) : undefined;
    return named === undefined ? tool : dispatchedTool(named, {}, visible, skills);
  }
  const skill = skills.skillOf(tool.origin.source, tool.origin.name);
  if (skill?.facts.dispatch === undefined) return tool;
  try {
    return dispatchTarget(skill, visible, skills.serverOfSkill(skill));
  } catch (error) {
    if (asToolcribError(error).code === "not_found") return tool;
    throw error;
  }
}
