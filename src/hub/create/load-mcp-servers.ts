/** The one-liner for agent loops that keep a ToolRegistry: MCP servers in, tools in the registry, kept in step. */
import { isDeepStrictEqual } from "node:util";
import type { LoadedConfig } from "../../config/load-config.ts";
import {
  isLocalSource,
  type PromptCapability,
  type ResourceCapability,
  type ToolCapability,
} from "../../model/capability.ts";
import type { ConfigInput } from "../../model/config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { ElicitationCallback, SamplingCallback } from "../../model/source.ts";
import type { Tool } from "../../model/tool.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import { ToolRegistry } from "../../tools/tool-registry.ts";
import { createHub, type HubOptions } from "./create-hub.ts";
import type { Hub, ToolsOptions } from "../hub.ts";

export interface LoadMCPServersOptions extends Pick<HubOptions, "workspaceDir" | "signal" | "home" | "wait"> {
  /** Called with the MCP tools after the set or a definition changed. */
  readonly onToolsChanged?: (tools: Tool[]) => void;
  readonly onSamplingRequest?: SamplingCallback;
  readonly onElicitation?: ElicitationCallback;
  /** The provider whose schema rules the tools in the registry follow; `raw` by default. */
  readonly for?: ToolsOptions["for"];
}

export interface MCPProvider {
  readonly hub: Hub;
  /** Reads all lists again. */
  refresh(): Promise<void>;
  status(): ServerInfo[];
  /** The tools of the MCP servers, without the registry's own. */
  tools(options?: ToolsOptions): Tool[];
  resources(): readonly ResourceCapability[];
  prompts(): readonly PromptCapability[];
  /** Takes the tools out of the registry and ends every server. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
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
  const { onToolsChanged, onSamplingRequest, onElicitation, for: provider = "raw", ...rest } = options;
  const hub = await createHub(config, {
    ...rest,
    registry,
    ...(onSamplingRequest === undefined ? {} : { onSample: onSamplingRequest }),
    ...(onElicitation === undefined ? {} : { onElicit: onElicitation }),
  });

  const fromServers = (choice: ToolsOptions): ReadonlyMap<string, string> => {
    const offered = hub.internals.offered(choice.session ?? hub.session, choice).filter(isOfServer);
    return new Map(offered.map((tool) => [tool.name, tool.fingerprint]));
  };
  const tools = (choice: ToolsOptions = {}): Tool[] => {
    const names = fromServers(choice);
    return hub.tools(choice).filter((tool) => names.has(tool.name));
  };

  const mirrored = new Map<string, { readonly fingerprint: string; readonly remove: () => void }>();
  /** Touches only what changed, so that the registry's own listeners do not hear of tools that stayed the same. */
  const mirror = (): Tool[] => {
    const current = tools({ for: provider });
    const fingerprints = fromServers({});
    for (const [name, { fingerprint, remove }] of mirrored) {
      if (fingerprints.get(name) === fingerprint) continue;
      remove();
      mirrored.delete(name);
    }
    for (const tool of current) {
      if (mirrored.has(tool.name)) continue;
      const remove = registry.register(tool, { origin: "mcp" });
      mirrored.set(tool.name, { fingerprint: fingerprints.get(tool.name) ?? "", remove });
    }
    return current;
  };

  mirror();
  const stops = [
    hub.on("catalog", (change) => {
      if (!change.kinds.includes("tool")) return;
      const current = mirror();
      onToolsChanged?.(current);
    }),
    // Other rules may show or hide tools although no server changed.
    hub.on("visibility", () => {
      const before = [...mirrored.values()];
      const current = mirror();
      if (!isDeepStrictEqual(before, [...mirrored.values()])) onToolsChanged?.(current);
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
    tools,
    resources: () => hub.view(hub.session).resources,
    prompts: () => hub.view(hub.session).prompts,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The search tools stand in for tools of servers. */
function isOfServer({ origin: { source } }: ToolCapability): boolean {
  return !isLocalSource(source) && !source.startsWith(SKILLS_SOURCE);
}
