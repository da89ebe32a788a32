/** The parts of a hub that doors and commands need and programs do not. */
import { findNearest } from "../base/near-matches.ts";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Snapshot } from "../catalog/snapshot.ts";
import type { Quarantined } from "../catalog/quarantine.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { OutputOf } from "../contract/operations.ts";
import type { CapabilityOrigin, ToolCapability } from "../model/capability.ts";
import { stragglerMs } from "../model/config.ts";
import type { Decision } from "../model/decision.ts";
import type { Outcome, ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { LogMessage } from "../model/protocol.ts";
import type { TaskRequest, Use } from "../model/source.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { Session } from "../sessions/session.ts";
import type { Store } from "../store/store.ts";
import { endsWithin } from "../base/async.ts";
import type { Emitter } from "../base/emitter.ts";
import type { HubActivity } from "./activity/hub-activity.ts";
import type { HubAudit } from "./audit/hub-audit.ts";
import type { CallOptions, CompleteRequest, ReadRequest, ToolsOptions } from "./call/call-context.ts";
import { guardedLog } from "./call/call-result.ts";
import type { Passage } from "./call/passages.ts";
import { notFoundError } from "./call/locate.ts";
import type { Taints } from "./call/taints.ts";
import type { ConnectionSettings } from "./create/build-servers.ts";
import type { HubSessions } from "./create/hub-sessions.ts";
import type { CurrentWiring, HubParts, Wiring } from "./create/wiring.ts";
import type { HubEvents } from "./hub-events.ts";
import type { IdleClient } from "./hub-options.ts";
import type { HubPins } from "./pins/hub-pins.ts";
import type { Pins } from "./pins/pins.ts";
import type { Reloader } from "./reload/reloader.ts";
import type { ConfigChanges } from "./reload/config-changes.ts";
import { watchConfig } from "./reload/watch-config.ts";
import { offersAnything } from "../upstream/known-lists.ts";
import type { ServerLogins } from "./servers/server-logins.ts";
import type { ServerRegistry } from "./servers/server-registry.ts";
import { ToolOverrides } from "./servers/tool-overrides.ts";
import type { SubscriptionRenewal } from "./servers/subscription-renewal.ts";
import type { SkillImports } from "./skills/skill-imports.ts";
import type { UserSkills } from "./skills/user-skills.ts";
import { tokenCosts } from "./view/token-costs.ts";
import { type ServerInstructions, serverInstructions, type View } from "./view/view.ts";

const TASK_KEY_BYTES = 32;

interface ListedOptions {
  readonly ms: number;
  readonly emptyMs: number;
  readonly signal?: AbortSignal;
  /** Resolves when whoever waits has something else to begin with. */
  readonly enough?: Promise<void>;
}

/** The parts that `createHub` has made. */
export interface HubDeps {
  readonly parts: HubParts;
  readonly current: CurrentWiring;
  readonly sessions: HubSessions;
  readonly servers: ServerRegistry;
  readonly logins: ServerLogins;
  readonly connectionSettings: ConnectionSettings;
  readonly reloader: Reloader;
  readonly subscriptions: SubscriptionRenewal;
  readonly userSkills: UserSkills;
  readonly imports: SkillImports;
  readonly pins: HubPins;
  readonly activity: HubActivity;
  readonly audit: HubAudit;
  readonly store: Store | undefined;
  readonly home: string;
  readonly secrets: Secrets;
  readonly events: Emitter<HubEvents>;
  readonly warnings: readonly HubEvents["warning"][];
  /** Runs after everything is closed. */
  readonly release: () => Promise<void>;
}

export class HubInternals {
  /** Sessions, approvals and the last calls, for its operator. */
  readonly activity: HubActivity;
  /** Where it keeps what outlives it; undefined if nowhere. */
  readonly store: Store | undefined;
  readonly sealed: Secrets["sealed"];
  /** Overrides of servers' tools. */
  readonly overrides: ToolOverrides;
  /** Logins at remote servers that are made on the page. */
  readonly logins: ServerLogins;
  readonly #deps: HubDeps;
  readonly #watching = new Set<() => void>();
  #taskKey: Buffer | undefined;

  constructor(deps: HubDeps) {
    this.#deps = deps;
    this.activity = deps.activity;
    this.store = deps.store;
    this.sealed = deps.secrets.sealed;
    this.logins = deps.logins;
    const { current, reloader, servers } = deps;
    this.overrides = new ToolOverrides({ catalog: deps.parts.catalog, current, reloader, servers });
  }

  /** Undefined for a hub that is not a node of one. */
  warn(message: string): void {
    this.#deps.events.emit("warning", { message });
  }

  get cluster(): Cluster | undefined {
    return this.#deps.parts.cluster;
  }

  /** A text of the config, such as a token of `http.auth`, with its references resolved. */
  async resolve(text: string): Promise<string> {
    return (await this.#deps.secrets.resolve(text, { baseDir: this.#deps.current.config.baseDir })).value;
  }

  /**
   * Waits until the servers that connect at the start are listed, as they are or as they were when they last ran. One that is
   * slow or stuck keeps no one from the others: false after `ms`, or while nothing at all is listed after `emptyMs`.
   */
  async listed({ ms, emptyMs, signal, enough }: ListedOptions): Promise<boolean> {
    const { servers, parts, events } = this.#deps;
    const { clock } = parts;
    let isDone = false;
    const all = servers.listed().then(() => (isDone = true));
    if (await endsWithin(all, { ms: Math.min(ms, emptyMs), signal, clock })) return true;
    if (emptyMs <= ms || offersAnything(parts.catalog.snapshot())) return false;
    const { promise: some, resolve } = Promise.withResolvers<void>();
    const stop = events.on("catalog", () => resolve());
    const first = Promise.race(enough === undefined ? [all, some] : [all, some, enough]);
    let hasEnough = false;
    void enough?.then(() => (hasEnough = true));
    const isThere = await endsWithin(first, { ms: emptyMs - ms, signal, clock });
    stop();
    if (isThere && !isDone && !hasEnough)
      await endsWithin(all, { ms: Math.min(ms, stragglerMs(this.#deps.current.config.config.limits)), signal, clock });
    return isDone;
  }

  /** The registry with what only operators ask for. */
  get servers(): Pick<ServerRegistry, "process" | "log"> {
    return this.#deps.servers;
  }

  /** The cost of tools for models, by client. */
  tokenCosts(): OutputOf<"getTokenCosts"> {
    const sessions = this.sessions().filter((session) => session !== this.#deps.sessions.own);
    return tokenCosts(this.catalog().tools, sessions, {
      whole: (session) => this.#wiring.views.of(session).tools,
      offered: (session) => this.#wiring.offered.of(session),
    });
  }

  /** Those that are open, the hub's own first. */
  sessions(): readonly Session[] {
    return this.#deps.sessions.all();
  }

  /** Ends the calls of all sessions; this is what their callers are told. */
  endCalls(why: ToolcribError): void {
    this.#deps.sessions.endCalls(why);
  }

  /** Who shares what was read from strangers, and how a person clears it. */
  get taints(): Taints {
    return this.#deps.sessions.taints;
  }

  /** The texts that the findings of a call are about. */
  passages(callId: string): readonly Passage[] {
    return this.#deps.parts.passages.of(callId);
  }

  /** A log message or another notification of a server that belongs to no call, as clients may see it. */
  guardedLog<Message extends JsonObject>(server: string, message: Message): Message | Promise<Message> {
    const reading = guardedLog(this.#deps.current.wiring.path, server, message);
    return reading instanceof Promise ? reading.then((read) => read.message) : reading.message;
  }

  /** The data of a server's log message, as the hub's own log may have it: the verdict alone where it looks like an attack. */
  async loggedData(server: string, message: LogMessage): Promise<unknown> {
    const { findings } = await guardedLog(this.#deps.current.wiring.path, server, message);
    if (findings.length === 0) return message.data;
    return `[removed by the guard: ${[...new Set(findings.map(({ code }) => code))].join(", ")}]`;
  }

  complete(session: Session, { ref, argument, context, ...options }: CompleteRequest): Promise<Outcome> {
    const use: Use = { kind: "completion", ref, argument, context };
    return this.#deps.current.run(session, use, options);
  }

  async subscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    const outcome = await this.#deps.current.run(session, { kind: "subscribe", uri }, options);
    if (outcome.ok) this.#deps.subscriptions.add(session, uri);
    return outcome;
  }

  unsubscribe(session: Session, { uri, ...options }: ReadRequest): Promise<Outcome> {
    this.#deps.subscriptions.delete(session, uri);
    return this.#deps.current.run(session, { kind: "unsubscribe", uri }, options);
  }

  /** The source that has a resource, listed or not, and its URI there; undefined if the session may not see it. */
  resourceOrigin(session: Session, uri: string): CapabilityOrigin | undefined {
    return this.#deps.current.resourceOrigin(session, uri);
  }

  /** A request about a task that a call of this tool began. */
  task(session: Session, name: string, task: TaskRequest, options: CallOptions): Promise<Outcome> {
    return this.#deps.current.run(session, { kind: "tool", name, arguments: {}, task }, options);
  }

  /** Signs the ids of tasks, so that a caller can use its own after a restart and at any node, and no one else's. */
  taskKey(): Buffer {
    this.#taskKey ??= this.cluster?.keyFor("tasks");
    const file = join(this.#deps.home, "task-key");
    if (this.#taskKey === undefined) {
      try {
        mkdirSync(this.#deps.home, { recursive: true });
        writeFileSync(file, randomBytes(TASK_KEY_BYTES), { flag: "wx", mode: 0o600 });
      } catch {
        // It is there already, or nothing can be kept here.
      }
      try {
        this.#taskKey = readFileSync(file);
      } catch {
        // Nothing can be kept, so ids are good until this hub ends.
      }
      // Another hub may just be writing it, and with an empty one anyone could sign.
      if (this.#taskKey?.length !== TASK_KEY_BYTES) this.#taskKey = randomBytes(TASK_KEY_BYTES);
    }
    return this.#taskKey;
  }

  /** The URI under which a session reads what a source has under another. */
  publicUri(session: Session, source: string, uri: string): string {
    return this.#wiring.pathFor(session).catalog.publicUri(source, uri);
  }

  /**
   * The tools to show to a client: all that the session sees, or above `tools.max` a choice of them and the search tools.
   * Those left out can still be called by name.
   */
  offered(session: Session, options: Omit<ToolsOptions, "session"> = {}): readonly ToolCapability[] {
    return this.#wiring.offered.of(session, options);
  }

  /** Those that the session sees and that fit the query, best first. */
  search(session: Session, query: string, limit: number): ToolCapability[] {
    return this.#wiring.search.find(session, query, limit);
  }

  /** The lists of a client: all that the session sees, and of the tools those that it is offered. */
  lists(session: Session): { readonly view: View; readonly tools: readonly ToolCapability[] } {
    const { views, offered } = this.#wiring;
    const view = views.of(session);
    return { view, tools: offered.of(session, { apps: true }, view) };
  }

  /** Changes of the config by an operator. Loaded on demand: few hubs need it. */
  async changes(): Promise<ConfigChanges> {
    const { ConfigChanges } = await import("./reload/config-changes.ts");
    return new ConfigChanges(this.#deps);
  }

  /** The decision about a tool before a call is made, also about one that the session does not see. */
  access(session: Session, tool: ToolCapability): Decision & { readonly conditional: boolean } {
    const { access } = this.#wiring.path;
    return { ...access.decide(session, tool), conditional: access.isConditional(session, tool) };
  }

  /** Whether a tool of the catalog is there for a session at all, whatever the rules say: a factory may make none for it. */
  existsFor(session: Session, tool: ToolCapability): boolean {
    return this.#wiring.views.localTool(session, tool.name, tool) !== undefined;
  }

  /** Why a tool that is not listed cannot be had: its server is down, or there is none of that name. */
  missing(session: Session, toolName: string): ToolcribError {
    const use: Use = { kind: "tool", name: toolName, arguments: {} };
    const { unavailable, visibleNames } = this.#wiring.path;
    return unavailable.explain(session, use) ?? notFoundError(use, visibleNames(session, "tool"));
  }

  /** Numbers for metrics that are kept nowhere else: calls in progress by source, and audit records that were lost. */
  measures(): { readonly underWay: Iterable<readonly [string, number]>; readonly auditLost: number } {
    return { underWay: this.#deps.parts.limits.inFlight(), auditLost: this.#deps.parts.audit.lost ?? 0 };
  }

  /** The current pins; `hub.pins` is for operators. */
  get pins(): Pins {
    return this.#deps.parts.definitions.pins;
  }

  /** All that servers offer, whatever the rules say about it. */
  catalog(): Snapshot {
    return this.#deps.parts.catalog.snapshot();
  }

  quarantined(): readonly Quarantined[] {
    return this.#deps.parts.catalog.quarantined();
  }

  /** Answers servers that ask without a call in progress; the hub's own callbacks where it returns undefined. */
  setIdleClient(client: IdleClient): void {
    this.#deps.connectionSettings.idleClient = client;
  }

  /** Asks every server, also those that come later, for log messages from this level on. */
  setLogLevel(level: string): void {
    this.#deps.connectionSettings.logLevel = level;
    for (const connection of this.#deps.parts.servers.all()) void connection.setLogLevel(level);
  }

  /** Tells servers that the roots of a client changed; those of the modern era ask each time. */
  rootsChanged(): void {
    for (const connection of this.#deps.parts.servers.list()) void connection.rootsChanged();
  }

  /** The servers' own advice on how to use them, of those of which the session sees anything, in the config's order. */
  instructions(session: Session): ServerInstructions[] {
    return serverInstructions(session, {
      view: this.#wiring.views.of(session),
      connections: [...this.#deps.parts.servers.list(), ...(session.mounted?.connections() ?? [])],
      isOwn: session === this.#deps.sessions.own,
      withholds: (id, text) => this.#deps.parts.definitions.withholdsInstructions(id, text),
    });
  }

  /** The instructions of the views of a session. */
  viewInstructions(session: Session): { readonly name: string; readonly text: string }[] {
    return this.#wiring.shapes.instructionsOf(session);
  }

  /** The reason why a session with this role or view sees nothing, if it is that the config does not name it. */
  unknownScope({
    role,
    view,
    owner = false,
  }: Pick<Session, "role" | "view"> & { owner?: boolean }): string | undefined {
    const { config, servers } = this.#deps.current.config;
    const describe = (kind: "role" | "view", name: string, known: Iterable<string>): string => {
      // The names of others are for the operator.
      const meant = owner ? findNearest(name, known) : undefined;
      const advice = meant === undefined ? "" : ` Did you mean ${JSON.stringify(meant)}?`;
      return `The config has no ${kind} ${JSON.stringify(name.slice(0, 100))}, so this session sees nothing.${advice}`;
    };
    if (role !== undefined && !this.#wiring.path.access.knowsRoleOf({ role }))
      return describe("role", role, [...Object.keys(config.roles), ...servers.flatMap(({ roles = [] }) => roles)]);
    if (view !== undefined && !Object.hasOwn(config.views, view))
      return describe("view", view, Object.keys(config.views));
    return undefined;
  }

  /** Reloads whenever a file of the config changes, until the returned function is called or the hub closes. */
  watch(): () => void {
    const stop = watchConfig({ ...this.#deps, clock: this.#deps.parts.clock });
    this.#watching.add(stop);
    return () => {
      this.#watching.delete(stop);
      stop();
    };
  }

  stopWatching(): void {
    for (const stop of this.#watching) stop();
  }

  get #wiring(): Wiring {
    return this.#deps.current.wiring;
  }
}
