/** The one object of a running process. It owns every Source and hands out what they offer. */
import { originalArguments } from "../catalog/overrides.ts";
import type { Capability } from "../model/capability.ts";
import { type Outcome, ToolcribError } from "../model/errors.ts";
import type { LoadedConfig } from "../model/loaded-config.ts";
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "../model/protocol.ts";
import type { Use } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import type { Explanation } from "../policy/decide.ts";
import type { SessionServers } from "../sessions/session-parts.ts";
import type { Session, SessionOptions } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/tool-registry.ts";
import type { Approvals } from "./call/approvals.ts";
import type { HubAudit } from "./audit/hub-audit.ts";
import type { CallRequest, ExplainRequest, PromptRequest, ReadRequest, ToolsOptions } from "./call/call-context.ts";
import type { ConfigSource } from "./reload/config-source.ts";
import type { HubEvents, ReloadReport } from "./hub-events.ts";
import { type HubDeps, HubInternals } from "./hub-internals.ts";
import type { Hooks } from "./call/hooks.ts";
import { locate } from "./call/locate.ts";
import type { HubPins } from "./pins/hub-pins.ts";
import type { Wiring } from "./create/wiring.ts";
import type { ServerRegistry } from "./servers/server-registry.ts";
import type { View } from "./view/view.ts";
import { toolsForAgent } from "./view/agent-tools.ts";
import { HubSkills } from "./skills/hub-skills.ts";

const MAX_UNKNOWN_SCOPES = 100;

export type { CallRequest, PromptRequest, ReadRequest, ToolsOptions } from "./call/call-context.ts";

type OfSession<Request> = Request & { readonly session?: Session };

export class Hub {
  readonly registry: ToolRegistry;
  /** The session of the program that made the hub. */
  readonly session: Session;
  readonly servers: Pick<
    ServerRegistry,
    "settled" | "list" | "get" | "entryOf" | "connect" | "disconnect" | "refresh" | "add" | "update" | "remove" | "test"
  >;
  /** Calls that wait for approval here; the operator's API has those of all nodes of a cluster. */
  readonly approvals: Pick<Approvals, "pending" | "answer">;
  readonly skills: HubSkills;
  readonly pins: HubPins;
  readonly audit: HubAudit;
  /** @internal */
  readonly internals: HubInternals;
  readonly #own: HubDeps;
  readonly #unknownScopes = new Set<string>();
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(own: HubDeps) {
    this.#own = own;
    this.registry = own.parts.registry;
    this.session = own.sessions.own;
    this.servers = own.servers;
    this.approvals = own.parts.approvals;
    this.audit = own.audit;
    this.pins = own.pins;
    this.internals = new HubInternals(own);
    this.skills = new HubSkills({
      sources: own.parts.skills,
      isTrusted: (source) => this.#wiring.path.isTrusted(source),
      session: this.session,
      view: (viewer) => this.view(viewer),
      config: () => this.config,
      imports: own.imports,
      refresh: () => own.reloader.refreshSkills(),
      warn: (message) => own.events.emit("warning", { message }),
    });
    this.#warnOfUnknownScope(this.session);
  }

  /** The current one; another one after a reload. */
  get config(): LoadedConfig {
    return this.#wiring.config;
  }

  on<Name extends keyof HubEvents>(name: Name, listener: (event: HubEvents[Name]) => void): () => void {
    return this.#own.events.on(name, listener);
  }

  /** With `servers` it waits, no longer than `sessions.wait`, until they are ready or have failed. */
  openSession(options: SessionOptions & { readonly servers: SessionServers }): Promise<Session>;
  openSession(options?: SessionOptions): Session;
  openSession(options: SessionOptions = {}): Session | Promise<Session> {
    if (this.#closed !== undefined) throw new ToolcribError("server_unavailable", "The hub is closed.");
    const session = this.#own.sessions.open(options);
    this.#warnOfUnknownScope(session);
    return options.servers === undefined ? session : session.own.mount(options.servers).then(() => session);
  }

  /** Once for each, and not for whatever many a caller may think of. */
  #warnOfUnknownScope(session: Session): void {
    const reason = this.internals.unknownScope(session);
    if (reason === undefined || this.#unknownScopes.has(reason) || this.#unknownScopes.size >= MAX_UNKNOWN_SCOPES)
      return;
    this.#unknownScopes.add(reason);
    this.internals.warn(reason);
  }

  /**
   * Runs a tool. It never throws; the outcome says how it ended.
   *
   *     const outcome = await hub.call({ name: "files__read_text_file", arguments: { path: "a.txt" } });
   *
   * @param request `session` is who calls; the hub's own session by default.
   */
  call(request: OfSession<CallRequest>): Promise<Outcome<CallToolResult>> {
    const { session = this.session, name, arguments: args = {} } = request;
    // The result of a tool call always has content.
    return this.#own.current.run(session, { kind: "tool", name, arguments: args }, request) as Promise<
      Outcome<CallToolResult>
    >;
  }

  read({ session = this.session, uri, ...options }: OfSession<ReadRequest>): Promise<Outcome<ReadResourceResult>> {
    return this.#own.current.run(session, { kind: "resource", uri }, options) as Promise<Outcome<ReadResourceResult>>;
  }

  prompt({
    session = this.session,
    name,
    arguments: args,
    ...options
  }: OfSession<PromptRequest>): Promise<Outcome<GetPromptResult>> {
    return this.#own.current.run(session, { kind: "prompt", name, arguments: args }, options) as Promise<
      Outcome<GetPromptResult>
    >;
  }

  /** The last warnings, those from before `createHub` resolved included. The config's own are in `config.warnings`. */
  warnings(): readonly HubEvents["warning"][] {
    return [...this.#own.warnings];
  }

  /** The capabilities that a session may see. The same object until the catalog changes, or a `visibility` event. */
  view(session: Session): View {
    return this.#wiring.views.of(session);
  }

  /** The offered tools for an agent loop. A snapshot: take it again after a `catalog` event. */
  tools(options: ToolsOptions = {}): Tool[] {
    return toolsForAgent(options, {
      own: this.session,
      parts: this.#own.parts,
      wiring: this.#wiring,
      events: this.#own.events,
      call: (session, request) => this.call({ ...request, session }),
    });
  }

  /**
   * Why a session may or may not use a tool, prompt or resource; undefined if there is none of that name. For one call, which is
   * not made, rules on arguments and with conditions are decided as well.
   */
  explain(name: string, session?: Session): Explanation | undefined;
  explain(call: ExplainRequest): Promise<Explanation | undefined>;
  explain(
    asked: string | ExplainRequest,
    session = this.session,
  ): Explanation | undefined | Promise<Explanation | undefined> {
    if (typeof asked !== "string") return this.#explainCall(asked);
    const path = this.#wiring.pathFor(session);
    const capability = this.#capability(asked, session);
    return capability && path.access.explain(session, capability, asked);
  }

  async #explainCall({ name, session = this.session, ...call }: ExplainRequest): Promise<Explanation | undefined> {
    const path = this.#wiring.pathFor(session);
    const { access } = path;
    const capability = this.#capability(name, session);
    if (capability === undefined) return undefined;
    const { arguments: args = {}, client = session.clientInfo?.name, ...given } = call;
    const asked: Use =
      capability.kind === "tool"
        ? { kind: "tool", name, arguments: args }
        : capability.kind === "prompt"
          ? // A prompt's arguments are texts; what is not one is in doubt.
            { kind: "prompt", name, arguments: args as Record<string, string> }
          : { kind: "resource", uri: name };
    const resolve: Parameters<typeof originalArguments>[2] = (text, level) =>
      path.resolve(text, { user: session.user, server: level === "server" ? capability.origin.source : undefined });
    const located = locate(path, session, asked)?.use ?? asked;
    // Rules look at what the server would receive.
    const use: Use =
      located.kind === "tool" && capability.kind === "tool"
        ? { ...located, arguments: { ...(await originalArguments(capability, located.arguments, resolve)) } }
        : located;
    const facts = await access.facts(session, capability, name, { use, client, ...given });
    return access.explain(session, capability, name, "arguments" in use ? use.arguments : undefined, facts);
  }

  #capability(name: string, session: Session): Capability | undefined {
    const { catalog, searchTools, localTool } = this.#wiring.pathFor(session);
    return (
      searchTools?.target(session, { kind: "tool", name, arguments: {} })?.capability ??
      localTool(session, name, catalog.find(name)) ??
      catalog.findPrompt(name) ??
      catalog.findResource(name)?.capability
    );
  }

  /** Adds hooks to the call path; the returned function takes them out. */
  use(hooks: Hooks): () => void {
    return this.#own.parts.hooks.use(hooks);
  }

  /**
   * Loads the config again, from where it came or from elsewhere, and takes over what changed: other servers are not
   * touched, calls in progress finish with what they began with. Rejects, and changes nothing, if it does not load.
   */
  reload(source?: ConfigSource): Promise<ReloadReport> {
    return this.#own.reloader.reload(source);
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
    this.internals.stopWatching();
    this.#own.reloader.stop();
    await Promise.all([this.#own.sessions.close(), this.#own.parts.servers.close()]);
    this.#own.parts.catalog.close();
    await this.#own.release();
    this.#own.events.clear();
  }

  get #wiring(): Wiring {
    return this.#own.current.wiring;
  }
}
