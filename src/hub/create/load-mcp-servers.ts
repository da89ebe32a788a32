/** The one-liner for agent loops that keep a ToolRegistry: MCP servers in, tools in the registry, kept in step. */
import { isDeepStrictEqual } from "node:util";
import {
  isLocalSource,
  type PromptCapability,
  type ResourceCapability,
  type ToolCapability,
} from "../../model/capability.ts";
import type { ConfigInput } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { ElicitationCallback, SamplingCallback } from "../../model/source.ts";
import type { Tool } from "../../model/tool.ts";
import { normalizeSchema, type Provider } from "../../schemas/normalize.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import { ToolRegistry } from "../../tools/tool-registry.ts";
import { createHub, type HubOptions } from "./create-hub.ts";
import type { Hub, ToolsOptions } from "../hub.ts";

export interface LoadMCPServersOptions extends Pick<HubOptions, "workspaceDir" | "signal" | "home" | "wait"> {
  /**
   * Called with the MCP tools after the set or a definition changed, once for each server whose tools did. Without an id where
   * rules changed what is visible, of whichever server.
   */
  readonly onToolsChanged?: (tools: Tool[], serverId?: string) => void;
  readonly onSamplingRequest?: SamplingCallback;
  readonly onElicitation?: ElicitationCallback;
  /** The provider whose schema rules all tools in the registry follow, the program's own included; `any` by default. */
  readonly for?: ToolsOptions["for"];
}

export interface MCPProvider {
  readonly hub: Hub;
  /** Reads all lists again. */
  refresh(): Promise<void>;
  status(): ServerInfo[];
  /** The same by id. */
  statusById(): Readonly<Record<string, ServerInfo>>;
  /** The tools of the MCP servers, without the registry's own. */
  tools(options?: ToolsOptions): Tool[];
  resources(): readonly ResourceCapability[];
  prompts(): readonly PromptCapability[];
  /** Takes the tools out of the registry and ends every server. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Mirrored {
  readonly server: string;
  readonly fingerprint: string;
  readonly remove: () => void;
}

/**
 *     const registry = new ToolRegistry();
 *     const mcp = await loadMCPServers("claude_desktop_config.json", registry);
 *     agent.run({ tools: registry.list() });
 */
export async function loadMCPServers(
  config: string | ConfigInput | LoadedConfig,
  registry: ToolRegistry = new ToolRegistry(),
  options: LoadMCPServersOptions = {},
): Promise<MCPProvider> {
  const { onToolsChanged, onSamplingRequest, onElicitation, for: provider = "any", ...rest } = options;
  // Programs in JavaScript leave it out and pass the options in its place.
  if (typeof registry?.register !== "function") {
    throw new ToolcribError("invalid_arguments", "The second argument of loadMCPServers is not a ToolRegistry.", {
      hint: "Pass a ToolRegistry, or undefined for a new one. Options are the third argument.",
    });
  }
  const hub = await createHub(config, {
    ...rest,
    registry,
    ...(onSamplingRequest === undefined ? {} : { onSample: onSamplingRequest }),
    ...(onElicitation === undefined ? {} : { onElicit: onElicitation }),
  });

  const fromServers = (choice: ToolsOptions): ReadonlyMap<string, ToolCapability> => {
    const offered = hub.internals.offered(choice.session ?? hub.session, choice).filter(isOfServer);
    return new Map(offered.map((tool) => [tool.name, tool]));
  };
  const tools = (choice: ToolsOptions = {}): Tool[] => {
    const names = fromServers(choice);
    return hub.tools({ for: provider, ...choice }).filter((tool) => names.has(tool.name));
  };

  const mirrored = new Map<string, Mirrored>();
  /** Touches only what changed, so that the registry's own listeners do not hear of tools that stayed the same. */
  const mirror = (): { readonly current: Tool[]; readonly servers: ReadonlySet<string> } => {
    const current = tools();
    const offered = fromServers({});
    const servers = new Set<string>();
    for (const [name, { server, fingerprint, remove }] of mirrored) {
      const now = offered.get(name);
      if (now?.fingerprint === fingerprint && now.origin.source === server) continue;
      remove();
      mirrored.delete(name);
      servers.add(server);
    }
    for (const tool of current) {
      const { origin, fingerprint = "" } = offered.get(tool.name) ?? {};
      if (mirrored.has(tool.name) || origin === undefined) continue;
      const remove = registry.register(tool, { origin: "mcp" });
      mirrored.set(tool.name, { server: origin.source, fingerprint, remove });
      servers.add(origin.source);
    }
    return { current, servers };
  };

  try {
    mirror();
  } catch (error) {
    // The caller gets no provider to close, and servers would keep its process from ending.
    await hub.close();
    throw error;
  }
  const stops = [
    registry.presentLocal(normalizer(provider)),
    hub.on("catalog", (change) => {
      if (!change.kinds.includes("tool")) return;
      const { current, servers } = mirror();
      if (servers.size === 0) onToolsChanged?.(current);
      for (const server of servers) onToolsChanged?.(current, server);
    }),
    // Other rules may show or hide tools although no server changed.
    hub.on("visibility", () => {
      const { current, servers } = mirror();
      if (servers.size > 0) onToolsChanged?.(current);
    }),
  ];
  const close = async (): Promise<void> => {
    for (const stop of stops) stop();
    await hub.close();
    for (const { remove } of mirrored.values()) remove();
    mirrored.clear();
  };

  return {
    hub,
    refresh: () => hub.servers.refresh(),
    status: () => hub.servers.list(),
    statusById: () => Object.fromEntries(hub.servers.list().map((info) => [info.id, info])),
    tools,
    resources: () => hub.view(hub.session).resources,
    prompts: () => hub.view(hub.session).prompts,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The same tool in the form of a provider; unchanged if it has none there. */
function normalizer(provider: Provider): (tool: Tool) => Tool {
  const known = new WeakMap<Tool, Tool>();
  return (tool) => {
    let shown = known.get(tool);
    if (shown === undefined) known.set(tool, (shown = normalizedTool(tool, provider)));
    return shown;
  };
}

function normalizedTool(tool: Tool, provider: Provider): Tool {
  try {
    const { schema, restore } = normalizeSchema(tool.parameters, provider);
    if (isDeepStrictEqual(schema, tool.parameters)) return tool;
    const execute: Tool["execute"] = (id, params, ...rest) => tool.execute(id, restore(params), ...rest);
    return { ...tool, parameters: schema, execute };
  } catch {
    return tool;
  }
}

/** The search tools stand in for tools of servers. */
function isOfServer({ origin: { source } }: ToolCapability): boolean {
  return !isLocalSource(source) && !source.startsWith(SKILLS_SOURCE);
}
