/** The one object of a running process. It owns every Source and hands out what they offer. */
import type { Quarantined } from "../catalog/quarantine.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { ServerDetail } from "../contract/server-schemas.ts";
import type { AskAnswer, AskRequest } from "../model/decision.ts";
import type { CapabilityOrigin, ToolCapability } from "../model/capability.ts";
import type { Emitter } from "../base/emitter.ts";
import { type Outcome, ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { LoadedConfig } from "../model/loaded-config.ts";
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "../model/protocol.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import type { Explanation } from "../policy/decide.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { SessionServers } from "../sessions/session-parts.ts";
import type { Session, SessionOptions } from "../sessions/session.ts";
import type { Store } from "../store/store.ts";
import type { ToolRegistry } from "../tools/tool-registry.ts";
import type { HubActivity } from "./activity/hub-activity.ts";
import type { Answerer } from "./call/approvals.ts";
import type { HubAudit } from "./audit/hub-audit.ts";
import type { CallRequest, CompleteRequest, PromptRequest, ReadRequest, ToolsOptions } from "./call/call-context.ts";
import type { ConfigSource } from "./reload/config-source.ts";
import type { HubEvents } from "./hub-events.ts";
import type { SubscriptionRenewal } from "./servers/subscription-renewal.ts";
import type { Hooks } from "./call/hooks.ts";
import type { IdleClient } from "./hub-options.ts";
import { notFoundError } from "./call/locate.ts";
import type { ConnectionSettings } from "./create/build-servers.ts";
import type { HubSessions } from "./create/hub-sessions.ts";
import type { HubPins } from "./pins/hub-pins.ts";
import type { Reloader } from "./reload/reloader.ts";
import type { ReloadReport } from "./reload/reload-report.ts";
import { type ServerInstructions, serverInstructions, type View } from "./view/view.ts";
import type { CurrentWiring, HubParts, Wiring } from "./create/wiring.ts";
import type { ChangeOptions, ServerRegistry } from "./servers/server-registry.ts";
import type { TestedServer } from "./servers/test-server.ts";
import { toolsForAgent } from "./view/agent-tools.ts";
import { HubSkills } from "./skills/hub-skills.ts";
import type { UserSkills } from "./skills/user-skills.ts";
import type { SkillImports } from "./skills/skill-imports.ts";
import { watchConfig } from "./reload/watch-config.ts";

export type { CallRequest, CompleteRequest, PromptRequest, ReadRequest, ToolsOptions } from "./call/call-context.ts";

/** The parts that `createHub` has made. */
export interface HubDeps {
  readonly parts: HubParts;
  readonly current: CurrentWiring;
  readonly sessions: HubSessions;
  readonly servers: ServerRegistry;
  readonly connectionSettings: ConnectionSettings;
  readonly reloader: Reloader;
  readonly subscriptions: SubscriptionRenewal;
  readonly userSkills: UserSkills;
  readonly imports: SkillImports;
  readonly pins: HubPins;
  readonly activity: HubActivity;
  readonly audit: HubAudit;
  readonly store: Store | undefined;
  readonly secrets: Secrets;
  readonly events: Emitter<HubEvents>;
  readonly warnings: readonly HubEvents["warning"][];
  readonly settled: () => Promise<void>;
  /** Runs after everything is closed. */
  readonly release: () => Promise<void>;
}

export class Hub {
  readonly registry: ToolRegistry;
  /** The session of the program that made the hub. */
  readonly session: Session;
  readonly skills: HubSkills;
  readonly pins: HubPins;
  /** Sessions, approvals and the last calls, for its operator. */
  readonly activity: HubActivity;
  readonly audit: HubAudit;
  /** Where it keeps what outlives it; undefined if nowhere. */
  readonly store: Store | undefined;
  readonly sealed: Secrets["sealed"];
  readonly #own: HubDeps;
  readonly #parts: HubParts;
  readonly #following = new Set<() => void>();
  #closed: Promise<void> | undefined;

  constructor(own: HubDeps) {
    this.#own = own;
    this.#parts = own.parts;
    this.registry = own.parts.registry;
    this.session = own.sessions.own;
    this.activity = own.activity;
    this.audit = own.audit;
    this.store = own.store;
    this.sealed = own.secrets.sealed;
    this.pins = own.pins;
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
  }

  /** The current one; another one after a reload. */
  get config(): LoadedConfig {
    return this.#wiring.config;
  }

  /** Undefined for a hub that is not a node of one. */
  get cluster(): Cluster | undefined {
    return this.#parts.cluster;
  }

  on<Name extends keyof HubEvents>(name: Name, listener: (event: HubEvents[Name]) => void): () => void {
    return this.#own.events.on(name, listener);
  }

  /** A text of the config, such as a token of `http.auth`, with its references resolved. */
  async resolve(text: string): Promise<string> {
    return (await this.#own.secrets.resolve(text, { baseDir: this.config.baseDir })).value;
  }

  /** The last warnings, those from before `createHub` resolved included. The config's own are in `config.warnings`. */
  warnings(): readonly HubEvents["warning"][] {
    return [...this.#own.warnings];
  }

  /** Resolves when the servers that connect by themselves were ready or had failed once, or took too long. */
  settled(): Promise<void> {
    return this.#own.settled();
  }

  /** Those that are open, the hub's own first. */
  sessions(): readonly Session[] {
    return this.#own.sessions.all();
  }

  /** With `servers` it waits, no longer than `sessions.wait`, until they are ready or have failed. */
  openSession(options: SessionOptions & { readonly servers: SessionServers }): Promise<Session>;
  openSession(options?: SessionOptions): Session;
  openSession(options: SessionOptions = {}): Session | Promise<Session> {
    if (this.#closed !== undefined) throw new ToolcribError("server_unavailable", "The hub is closed.");
    const session = this.#own.sessions.open(options);
    return options.servers === undefined ? session : session.own.mount(options.servers).then(() => session);
  }

  call(session: Session, request: CallRequest): Promise<Outcome<CallToolResult>> {
    return this.#own.current.callTool(session, request);
  }

  read(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome<ReadResourceResult>> {
    return this.#own.current.run(session, { kind: "resource", uri }, options) as Promise<Outcome<ReadResourceResult>>;
  }

  prompt(
    session: Session,
    { name, arguments: args = {}, ...options }: PromptRequest,
  ): Promise<Outcome<GetPromptResult>> {
    return this.#own.current.run(session, { kind: "prompt", name, arguments: args }, options) as Promise<
      Outcome<GetPromptResult>
    >;
  }

  complete(session: Session, { ref, argument, context, ...options }: CompleteRequest): Promise<Outcome> {
    const use: Use = { kind: "completion", ref, argument, context };
    return this.#own.current.run(session, use, options);
  }

  async subscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    const outcome = await this.#own.current.run(session, { kind: "subscribe", uri }, options);
    if (outcome.ok) this.#own.subscriptions.add(session, uri);
    return outcome;
  }

  unsubscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    this.#own.subscriptions.delete(session, uri);
    return this.#own.current.run(session, { kind: "unsubscribe", uri }, options);
  }

  /** The source that has a resource, listed or not, and its URI there; undefined if the session may not see it. */
  resourceOrigin(session: Session, uri: string): CapabilityOrigin | undefined {
    return this.#own.current.resourceOrigin(session, uri);
  }

  /** The capabilities that a session may see. The same object until the catalog changes, or a `visibility` event. */
  view(session: Session): View {
    return this.#wiring.views.of(session);
  }

  /**
   * The tools to show to a client: all that the session sees, or above `tools.max` a choice of them and the search tools.
   * Those left out can still be called by name.
   */
  offered(session: Session, options: Omit<ToolsOptions, "session"> = {}): readonly ToolCapability[] {
    return this.#wiring.offered.of(session, options);
  }

  /** The offered tools for an agent loop. A snapshot: take it again after a `catalog` event. */
  tools(options: ToolsOptions = {}): Tool[] {
    return toolsForAgent(options, {
      own: this.session,
      parts: this.#parts,
      wiring: this.#wiring,
      events: this.#own.events,
      call: (caller, request) => this.call(caller, request),
    });
  }

  /** Why a session may or may not use a tool, prompt or resource; undefined if there is none of that name. */
  explain(session: Session, name: string): Explanation | undefined {
    const { path } = this.#wiring;
    const catalog = path.catalogOf(session);
    const capability =
      path.searchTools?.target(session, { kind: "tool", name, arguments: {} })?.capability ??
      catalog.find(name) ??
      catalog.findPrompt(name) ??
      catalog.findResource(name)?.capability;
    return capability && path.access.explain(session, capability, name);
  }

  /** Why a tool that is not listed cannot be had: its server is down, or there is none of that name. */
  missing(session: Session, toolName: string): ToolcribError {
    const use: Use = { kind: "tool", name: toolName, arguments: {} };
    const { unavailable, visibleNames } = this.#wiring.path;
    return unavailable.explain(session, use) ?? notFoundError(use, visibleNames(session, "tool"));
  }

  /** Calls that wait for approval here; `activity` has those of all nodes of a cluster. */
  asked(): AskRequest[] {
    return this.#parts.approvals.pending();
  }

  /** Answers a waiting call; the audit log has who did. False if it no longer waits. */
  answer(id: string, answer: AskAnswer, by?: Answerer): boolean {
    return this.#parts.approvals.answer(id, answer, by);
  }

  /** Numbers for metrics that are kept nowhere else: calls in progress by source, and audit records that were lost. */
  measures(): { readonly underWay: Iterable<readonly [string, number]>; readonly auditLost: number } {
    return { underWay: this.#parts.limits.inFlight(), auditLost: this.#parts.audit.lost ?? 0 };
  }

  quarantined(): readonly Quarantined[] {
    return this.#parts.catalog.quarantined();
  }

  servers(): ServerInfo[] {
    return this.#own.servers.infos();
  }

  /** One of them, with its entry, its last words and its history; undefined if there is none of that id. */
  server(id: string): Promise<ServerDetail | undefined> {
    return this.#own.servers.detail(id);
  }

  /**
   * Resolves when the server is ready or the attempt has failed; the info says which.
   * @param user Of a server with `isolation: "user"`: whose connection is meant; the hub owner's own by default.
   */
  connect(id: string, { user }: { readonly user?: string } = {}): Promise<ServerInfo> {
    return this.#own.servers.connect(id, user);
  }

  disconnect(id: string): Promise<ServerInfo> {
    return this.#own.servers.disconnect(id);
  }

  /** Reads the lists of one server again, or of all. */
  refresh(id?: string): Promise<void> {
    return this.#own.servers.refresh(id);
  }

  /**
   * Adds a server, in the words of any dialect, and keeps it in the store; without one it lives as long as the hub. Resolves
   * like `reload`, when it is ready, has failed, or takes too long. A plain secret is refused unless `secrets.keep` is set.
   *
   *     await hub.addServer("files", { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] });
   */
  addServer(id: string, config: JsonObject): Promise<ServerInfo> {
    return this.#own.servers.add(id, config);
  }

  /** Changes parts of an added server's entry: null takes a key out, `env`, `headers` and the like go key by key. */
  updateServer(id: string, updates: JsonObject, options?: ChangeOptions): Promise<ServerInfo> {
    return this.#own.servers.update(id, updates, options);
  }

  /** Removes an added server; one that a file names is a `conflict` that says which. */
  removeServer(id: string, options?: ChangeOptions): Promise<void> {
    return this.#own.servers.remove(id, options);
  }

  /** Connects once with an entry that is not saved, apart from everything else, and says what came of it. */
  testServer(id: string | undefined, config: JsonObject, signal?: AbortSignal): Promise<TestedServer> {
    return this.#own.servers.test(id, config, signal);
  }

  /** Adds hooks to the call path; the returned function takes them out. */
  use(hooks: Hooks): () => void {
    return this.#parts.hooks.use(hooks);
  }

  /**
   * Loads the config again, from where it came or from elsewhere, and takes over what changed: other servers are not
   * touched, calls in progress finish with what they began with. Rejects, and changes nothing, if it does not load.
   */
  reload(source?: ConfigSource): Promise<ReloadReport> {
    return this.#own.reloader.reload(source);
  }

  /** Reloads whenever a file of the config changes, until the returned function is called or the hub closes. */
  watch(): () => void {
    const stop = watchConfig({ ...this.#own, clock: this.#parts.clock });
    this.#following.add(stop);
    return () => {
      this.#following.delete(stop);
      stop();
    };
  }

  /** Answers servers that ask without a call in progress; the hub's own callbacks where it returns undefined. */
  setIdleClient(client: IdleClient): void {
    this.#own.connectionSettings.idleClient = client;
  }

  /** Asks every server, also those that come later, for log messages from this level on. */
  setLogLevel(level: string): void {
    this.#own.connectionSettings.logLevel = level;
    for (const connection of this.#parts.servers.all()) void connection.setLogLevel(level);
  }

  /** Tells servers that the roots of a client changed; those of the modern era ask each time. */
  rootsChanged(): void {
    for (const connection of this.#parts.servers.list()) void connection.rootsChanged();
  }

  /** The servers' own advice on how to use them, of those of which the session sees anything, in the config's order. */
  instructions(session: Session): ServerInstructions[] {
    return serverInstructions(session, {
      view: this.view(session),
      connections: [...this.#parts.servers.list(), ...(session.mounted?.connections() ?? [])],
      isOwn: session === this.session,
      withholds: (id, text) => this.#parts.definitions.withholdsInstructions(id, text),
    });
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
    for (const stop of this.#following) stop();
    this.#own.reloader.stop();
    await Promise.all([this.#own.sessions.close(), this.#parts.servers.close()]);
    this.#parts.catalog.close();
    await this.#own.release();
    this.#own.events.clear();
  }

  get #wiring(): Wiring {
    return this.#own.current.wiring;
  }
}
