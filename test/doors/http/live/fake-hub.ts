/** A hub in which a test makes things happen, and sockets and streams to it. */
import { tmpdir } from "node:os";
import type { FeedHub } from "../../../../src/doors/http/live/event-sources.ts";
import { loadConfigFrom } from "../../../../src/hub/reload/config-source.ts";
import type { HubEvents } from "../../../../src/hub/hub-events.ts";
import type { View } from "../../../../src/hub/view/view.ts";
import type { Caller, Scope } from "../../../../src/model/caller.ts";
import type { ToolCapability } from "../../../../src/model/capability.ts";
import { Emitter } from "../../../../src/base/emitter.ts";
import type { LoadedConfig } from "../../../../src/model/loaded-config.ts";
import type { ServerInfo } from "../../../../src/model/server-state.ts";
import { Session, type SessionOptions } from "../../../../src/sessions/session.ts";

export class StagedHub extends Emitter<HubEvents> implements FeedHub {
  readonly session = new Session();
  readonly opened: Session[] = [];
  readonly infos = new Map<string, ServerInfo>();
  readonly #views = new Map<string, View>();
  config: LoadedConfig;
  tools: ToolCapability[] = [];
  /** Names that a role does not see. */
  hidden: Readonly<Record<string, readonly string[]>> = {};
  readonly pins = { stateOf: () => "same" as const };

  constructor(config: LoadedConfig) {
    super();
    this.config = config;
    for (const { id } of config.servers) this.infos.set(id, serverInfo(id));
  }

  readonly servers = { list: (): ServerInfo[] => [...this.infos.values()] };
  readonly internals = {
    sessions: (): readonly Session[] => [this.session, ...this.opened.filter(({ closed }) => !closed)],
  };

  view({ role }: Session): View {
    const key = role ?? "";
    let view = this.#views.get(key);
    if (view === undefined) {
      const tools = this.tools.filter(({ name }) => this.hidden[key]?.includes(name) !== true);
      this.#views.set(key, (view = { version: 1, tools, resources: [], templates: [], prompts: [] }));
    }
    return view;
  }

  openSession(options: SessionOptions): Session {
    const session = new Session(options);
    this.opened.push(session);
    return session;
  }

  offer(tools: ToolCapability[]): void {
    this.tools = tools;
    this.#views.clear();
    this.emit("catalog", { version: 2, added: [], removed: [], changed: [], kinds: ["tool"] });
  }

  become(id: string, state: ServerInfo["state"], given: Partial<ServerInfo> = {}): void {
    const previous = this.infos.get(id)?.state ?? "idle";
    const info = serverInfo(id, { state, ...given });
    this.infos.set(id, info);
    this.emit("server", { info, previous });
  }

  reload(config: LoadedConfig, changed: readonly string[] = []): void {
    this.config = config;
    const ids = new Set(config.servers.map(({ id }) => id));
    for (const id of this.infos.keys()) if (!ids.has(id)) this.infos.delete(id);
    for (const id of ids) if (!this.infos.has(id)) this.infos.set(id, serverInfo(id));
    this.emit("reload", {
      report: { added: [], removed: [], changed, kept: [], settings: [], needsRestart: [] },
    });
  }
}

export function configOf(config: object): Promise<LoadedConfig> {
  return loadConfigFrom(config, { env: {}, cwd: process.cwd(), home: tmpdir() });
}

export const entry = { command: "true", enabled: false };

export async function stagedHub(config: object = { mcpServers: { files: entry } }): Promise<StagedHub> {
  return new StagedHub(await configOf(config));
}

export function serverInfo(id: string, given: Partial<ServerInfo> = {}): ServerInfo {
  return {
    id,
    name: id,
    transport: "stdio",
    state: "idle",
    status: "disconnected",
    capabilities: {},
    toolCount: 0,
    serverName: null,
    serverVersion: null,
    lastError: null,
    connectedAt: null,
    origin: { file: "toolcrib.json", dialect: "toolcrib" },
    tags: [],
    era: null,
    protocolVersion: null,
    warnings: [],
    ...given,
  };
}

export function tool(source: string, name: string, description = `${name} of ${source}`): ToolCapability {
  return {
    kind: "tool",
    name: `${source}__${name}`,
    origin: { source, name },
    definition: { name, description, inputSchema: { type: "object" } },
    fingerprint: `${source}/${name}/${description}`,
  };
}

export function callerWith(scopes: readonly Scope[], given: Partial<Caller> = {}): Caller {
  return { key: "somebody", owner: false, scopes: new Set(scopes), ...given };
}

export const operator = callerWith(["read", "call", "approve", "admin"], { owner: true });
