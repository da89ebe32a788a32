/** The one object of a running process. It owns every Source and hands out what they offer. */
import type { Catalog } from "../catalog/catalog.ts";
import type { Quarantined } from "../catalog/quarantine.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { AskAnswer, AskRequest } from "../model/ask.ts";
import type { ToolCapability } from "../model/capability.ts";
import { Emitter } from "../model/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "../model/protocol.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import type { Explanation } from "../policy/decide.ts";
import { type Provider, PROVIDERS } from "../schemas/normalize.ts";
import { Session, type SessionOptions } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";
import { agentTools } from "./agent-tools.ts";
import { runCall } from "./call.ts";
import type { CallOptions, CallPath } from "./call-path.ts";
import type { HubEvents } from "./events.ts";
import type { Hooks } from "./hooks.ts";
import { notFound } from "./locate.ts";
import type { OfferedTools } from "./offered-tools.ts";
import { CALL_TOOL, isSearchTool } from "./search-definitions.ts";
import type { View, Views } from "./view.ts";

export interface CallRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: JsonObject;
}

export interface ReadRequest extends CallOptions {
  readonly uri: string;
}

export interface PromptRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

type Completion = Extract<Use, { kind: "completion" }>;

export interface CompleteRequest extends CallOptions {
  readonly ref: Completion["ref"];
  readonly argument: Completion["argument"];
  readonly context?: JsonObject;
}

export interface ToolsOptions {
  /** The model provider whose schema rules apply; `raw` (the default) leaves schemas and content untouched. */
  readonly for?: Provider;
  /** Whose view it is and who calls; the hub's own session if absent. */
  readonly session?: Session;
  /** What the agent is about to do, such as its prompt: above `tools.max` the tools that fit it best are offered. */
  readonly query?: string;
}

/** What `createHub` has wired. */
export interface HubParts {
  readonly config: LoadedConfig;
  readonly registry: ToolRegistry;
  readonly session: Session;
  readonly catalog: Catalog;
  readonly connections: ReadonlyMap<string, ServerConnection>;
  readonly path: CallPath;
  readonly views: Views;
  readonly offered: OfferedTools;
  readonly events: Emitter<HubEvents>;
  readonly warnings: readonly HubEvents["warning"][];
  /** Runs after everything is closed. */
  readonly release: () => Promise<void>;
}

export class Hub {
  readonly config: LoadedConfig;
  readonly registry: ToolRegistry;
  /** The session of the program that made the hub. */
  readonly session: Session;
  readonly #parts: HubParts;
  readonly #sessions = new Set<Session>();
  #closed: Promise<void> | undefined;

  constructor(parts: HubParts) {
    this.#parts = parts;
    this.config = parts.config;
    this.registry = parts.registry;
    this.session = parts.session;
  }

  on<Name extends keyof HubEvents>(name: Name, listener: (event: HubEvents[Name]) => void): () => void {
    return this.#parts.events.on(name, listener);
  }

  /** The last warnings, those from before `createHub` resolved included. The config's own are in `config.warnings`. */
  warnings(): readonly HubEvents["warning"][] {
    return [...this.#parts.warnings];
  }

  openSession(options: SessionOptions = {}): Session {
    if (this.#closed !== undefined) throw new ToolcribError("server_unavailable", "The hub is closed.");
    const parts = this.#parts;
    const session = new Session(options, (closed) => {
      this.#sessions.delete(closed);
      parts.path.limits.forget(closed.id);
      this.registry.forgetContext(closed.id);
      for (const connection of parts.connections.values()) connection.endSession(closed.id);
    });
    this.#sessions.add(session);
    for (const connection of parts.connections.values()) connection.startSession?.(session);
    return session;
  }

  call(session: Session, { name, arguments: args = {}, ...options }: CallRequest): Promise<Outcome<CallToolResult>> {
    // `conclude` sees to it that the result of a tool call has content.
    return this.#run(session, { kind: "tool", name, arguments: args }, options) as Promise<Outcome<CallToolResult>>;
  }

  read(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome<ReadResourceResult>> {
    return this.#run(session, { kind: "resource", uri }, options) as Promise<Outcome<ReadResourceResult>>;
  }

  prompt(
    session: Session,
    { name, arguments: args = {}, ...options }: PromptRequest,
  ): Promise<Outcome<GetPromptResult>> {
    return this.#run(session, { kind: "prompt", name, arguments: args }, options) as Promise<Outcome<GetPromptResult>>;
  }

  complete(session: Session, { ref, argument, context, ...options }: CompleteRequest): Promise<Outcome> {
    const use: Use = { kind: "completion", ref, argument, ...(context === undefined ? {} : { context }) };
    return this.#run(session, use, options);
  }

  subscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    return this.#run(session, { kind: "subscribe", uri }, options);
  }

  unsubscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    return this.#run(session, { kind: "unsubscribe", uri }, options);
  }

  /** What a session may see. The same object until the catalog changes. */
  view(session: Session): View {
    return this.#parts.views.of(session);
  }

  /**
   * The tools to show to a client: all that the session sees, or above `tools.max` a choice of them and the search tools.
   * Those left out can still be called by name.
   */
  offered(session: Session, options: { readonly query?: string } = {}): readonly ToolCapability[] {
    return this.#parts.offered.of(session, options.query);
  }

  /** The offered tools for an agent loop. A snapshot: take it again after a `catalog` event. */
  tools(options: ToolsOptions = {}): Tool[] {
    const session = options.session ?? this.session;
    if (options.for !== undefined && !PROVIDERS.includes(options.for)) {
      throw new ToolcribError("invalid_arguments", `There is no provider "${options.for}".`, {
        hint: `Providers: ${PROVIDERS.join(", ")}.`,
      });
    }
    return agentTools(this.offered(session, options), {
      provider: options.for ?? "raw",
      session,
      inlineBytes: this.config.config.limits.inlineBytes,
      serverName: (id) => this.#parts.connections.get(id)?.spec.name ?? id,
      call: (caller, request) => this.call(caller, request),
      toolBehind: (tool, args) => this.#toolBehind(session, tool, args),
      onUnusable: (tool, reason) =>
        this.#parts.events.emit("warning", {
          server: tool.origin.source,
          message: `The tool ${tool.name} is left out: ${reason}`,
        }),
    });
  }

  /** Why a session may or may not use a tool, prompt or resource; undefined if there is none of that name. */
  explain(session: Session, name: string): Explanation | undefined {
    const { catalog, path } = this.#parts;
    const capability =
      path.searchTools?.target(session, { kind: "tool", name, arguments: {} })?.capability ??
      catalog.find(name) ??
      catalog.findPrompt(name) ??
      catalog.findResource(name)?.capability;
    return capability && path.gate.explain(session, capability, name);
  }

  /** Why a tool that is not listed cannot be had: its server is down, or there is none of that name. */
  missing(session: Session, toolName: string): ToolcribError {
    const use: Use = { kind: "tool", name: toolName, arguments: {} };
    const { absent, visibleNames } = this.#parts.path;
    return absent.explain(session, use) ?? notFound(use, visibleNames(session, "tool"));
  }

  /** Calls that wait for a yes. */
  asked(): AskRequest[] {
    return this.#parts.path.approvals.pending();
  }

  /** Answers a waiting call. False if it no longer waits. */
  answer(id: string, answer: AskAnswer): boolean {
    return this.#parts.path.approvals.answer(id, answer);
  }

  quarantined(): readonly Quarantined[] {
    return this.#parts.catalog.quarantined();
  }

  servers(): ServerInfo[] {
    return [...this.#parts.connections.values()].map((connection) => connection.info());
  }

  /**
   * Resolves when the server is ready or the attempt has failed; the info says which.
   * @param user Of a server with `isolation: "user"`: whose connection is meant; the hub owner's own by default.
   */
  async connect(id: string, { user }: { readonly user?: string } = {}): Promise<ServerInfo> {
    const connection = this.#connection(id);
    if (user !== undefined && connection.connectUser !== undefined) return connection.connectUser(user);
    await connection.connect();
    return connection.info();
  }

  async disconnect(id: string): Promise<ServerInfo> {
    const connection = this.#connection(id);
    await connection.disconnect();
    return connection.info();
  }

  /** Reads the lists of one server again, or of all. */
  async refresh(id?: string): Promise<void> {
    const connections = id === undefined ? [...this.#parts.connections.values()] : [this.#connection(id)];
    await Promise.all(connections.map((connection) => connection.refresh()));
  }

  /** Adds hooks to the call path; the returned function takes them out. */
  use(hooks: Hooks): () => void {
    return this.#parts.path.hooks.use(hooks);
  }

  /** Ends every session, call, server and child process. Safe to call twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    for (const session of [this.session, ...this.#sessions]) session.close();
    await Promise.all([...this.#parts.connections.values()].map((connection) => connection.close()));
    this.#parts.catalog.close();
    await this.#parts.release();
    this.#parts.events.clear();
  }

  /** Results of `toolcrib_call` are results of the tool that it ran, and as untrusted. */
  #toolBehind(session: Session, tool: ToolCapability, args: JsonObject): ToolCapability {
    if (!isSearchTool(tool) || tool.name !== CALL_TOOL) return tool;
    return this.view(session).tools.find(({ name }) => name === args["name"]) ?? tool;
  }

  #run(session: Session, use: Use, options: CallOptions): Promise<Outcome> {
    return runCall(this.#parts.path, session, use, options);
  }

  #connection(id: string): ServerConnection {
    const connection = this.#parts.connections.get(id);
    if (connection !== undefined) return connection;
    const known = [...this.#parts.connections.keys()].join(", ") || "none";
    throw new ToolcribError("not_found", `There is no server "${id}".`, { hint: `Known servers: ${known}.` });
  }
}
