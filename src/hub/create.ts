/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { Catalog } from "../catalog/catalog.ts";
import { toolcribHome } from "../config/find-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { AskCallback } from "../model/ask.ts";
import { systemClock, type Clock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ElicitationCallback, SamplingCallback } from "../model/session.ts";
import { VERSION } from "../model/version.ts";
import { Limits } from "../policy/limits.ts";
import { OAuth } from "../secrets/oauth/oauth.ts";
import { Redactor } from "../secrets/redactor.ts";
import { Secrets } from "../secrets/secrets.ts";
import { Session } from "../sessions/session.ts";
import { thisMachine } from "../skills/needs/this-machine.ts";
import { AuditLog } from "../telemetry/audit/log.ts";
import type { AuditSink } from "../telemetry/call-record.ts";
import { loadPlugins } from "../tools/plugins.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { ALL_OFFERS } from "../upstream/client-offer.ts";
import { FileEraMemory } from "../upstream/era-memory.ts";
import { PidRecords } from "../upstream/orphans/pid-records.ts";
import { closeOnSignals } from "../upstream/stdio/live-children.ts";
import { type ConfigSource, loadFrom } from "./config-source.ts";
import { DefinitionWatch } from "./definition-watch.ts";
import type { HubEvents } from "./events.ts";
import { FollowedResources } from "./followed-resources.ts";
import type { IdleClient } from "./idle-client.ts";
import { HookChain } from "./hooks.ts";
import { Hub } from "./hub.ts";
import { makeApprovals } from "./make-approvals.ts";
import { MaskedEvents } from "./masked-events.ts";
import { relayCatalog } from "./relay.ts";
import { type Present, Reloader } from "./reload.ts";
import { ServerSet } from "./server-set.ts";
import { dispatcher } from "./skills/dispatch.ts";
import { ServerSkillOffers } from "./skills/server-skill-offers.ts";
import { LiveSkills } from "./skills/live-skills.ts";
import { SkillSources } from "./skills/skill-sources.ts";
import { type LastingParts, trustOf, wire } from "./wiring.ts";

const DEFAULT_WAIT_MS = 10_000;
const WARNINGS_KEPT = 200;

export interface HubOptions {
  /** Instead of `$TOOLCRIB_HOME`, which is `~/.toolcrib` by default. */
  readonly home?: string;
  /** Folder offered to servers as a root; the config's `workspaceDir` by default. */
  readonly workspaceDir?: string;
  /** Answers servers that ask for a completion by a model. Without it they are refused. */
  readonly onSample?: SamplingCallback;
  /** Answers servers that ask the user something. Without it they are refused. */
  readonly onElicit?: ElicitationCallback;
  /** Answers for calls that an `ask` rule holds back, in sessions that have no callback of their own. */
  readonly onAsk?: AskCallback;
  /** False leaves `skills.autoStart` alone, for a hub that is there for one call. */
  readonly skillServers?: boolean;
  /** In-process tools; an empty registry of its own by default. */
  readonly registry?: ToolRegistry;
  /** Closes the hub when aborted. */
  readonly signal?: AbortSignal;
  /**
   * How long to wait for servers, in milliseconds; 10,000 by default, false for not at all, true for as long as they
   * take. Who is late joins when it is ready, and a `catalog` event says so. `hub.settled()` waits later.
   */
  readonly wait?: boolean | number;
  /** Which servers to connect: those with `autoConnect` (default), none, or the named ones. */
  readonly connect?: "auto" | "none" | readonly string[];
  /** Narrows the hub's own session to a role. */
  readonly role?: string;
  /** The door that the hub's own session belongs to. */
  readonly door?: string;
  /** Declares every client capability to servers, for a hub whose callers bring their own; else what the hub's session has. */
  readonly offers?: "all";
  /** Log messages that servers are asked for, from this level on; `info` by default. */
  readonly logLevel?: string;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  /** Learns the hub's secrets, for a program that masks its own output too. */
  readonly redactor?: Redactor;
}

/**
 * Makes a hub and connects its servers.
 *
 *     await using hub = await createHub("claude_desktop_config.json");
 *     const tools = hub.tools({ for: "anthropic" });
 *
 * @param source A path of a config file in any dialect, a config as an object, one already loaded, or nothing: then it is
 * looked for as the command line does.
 */
export async function createHub(source?: ConfigSource, options: HubOptions = {}): Promise<Hub> {
  const env = options.env ?? process.env;
  const clock = options.clock ?? systemClock;
  const home = resolve(options.home ?? toolcribHome(env));
  const place = { env, cwd: process.cwd(), home };
  const loaded = await loadFrom(source, place);

  const redactor = options.redactor ?? new Redactor();
  const events = new MaskedEvents(redactor);
  const warnings = keepWarnings(events);
  const warn = (message: string): void => events.emit("warning", { message });
  const liveSkills = new LiveSkills({
    home,
    clock,
    env,
    warn,
    machine: () => thisMachine(env),
    startsServers: options.skillServers ?? true,
  });
  const config = await liveSkills.prepare(loaded);
  const registry = options.registry ?? new ToolRegistry();
  const plugins = await loadPlugins(config.config.plugins, { baseDir: config.baseDir, registry, warn });

  const session = hubSession(config, options);
  const idle: { client: IdleClient | undefined } = { client: undefined };
  const pids = new PidRecords(join(home, "run"));
  for (const orphan of await pids.reapOrphans()) {
    warn(
      `A process of "${orphan.serverId}" was left over from a hub that died; it ${orphan.gone ? "was ended" : "could not be ended"}.`,
    );
  }
  const secrets = new Secrets({ env, home, clock, redactor, ...config.config.secrets });
  const catalog = new Catalog({ naming: config.config.tools.naming, servers: config.servers });
  const audit = new AuditLog({
    dir: join(home, "audit"),
    maxBytes: config.config.audit.maxBytes,
    keepArguments: config.config.audit.arguments,
    redact: (text) => redactor.mask(text),
    clock,
    onProblem: warn,
  });
  const definitions = new DefinitionWatch({
    config,
    home,
    clock,
    catalog,
    events,
    audit,
    isTrusted: trustOf(config.servers),
    onVisibilityChange: () => {
      present.wiring.views.forget();
      events.emit("visibility", {});
    },
  });
  const serverSkills = new ServerSkillOffers({
    sources: () => parts.skills,
    machine: () => thisMachine(env),
    warn: (message, server) => events.emit("warning", { server, message }),
  });
  const logLevel = { value: options.logLevel ?? "info" };
  const servers = new ServerSet({
    deps: {
      clock,
      env,
      eras: new FileEraMemory(join(home, "cache", "eras.json")),
      pids,
      redactor,
      secrets,
      oauth: new OAuth({ dir: join(home, "auth"), clock, redactor }),
      hubSession: session,
      idleClient: (server, user) => idle.client?.(server, user),
      offers: options.offers === "all" ? ALL_OFFERS : session.client.capabilities,
      clientVersion: VERSION,
      // Connections that are made later take what holds then.
      get logLevel() {
        return logLevel.value;
      },
      get graceMs() {
        return present.wiring.config.config.limits.graceMs;
      },
    },
    catalog,
    events,
    sessions: () => hub.sessions(),
    onReady: (connection) => {
      definitions.checkInstructions(connection.id, connection.instructions());
      serverSkills.renew(connection);
      followed.renew(connection);
    },
    onReplaced: (connection) => {
      reloader.serverReplaced(connection.id);
      serverSkills.renew(connection);
      followed.renew(connection);
    },
  });
  const followed = new FollowedResources({
    originOf: (viewer, uri) => hub.resourceOrigin(viewer, uri),
    connection: (id) => servers.get(id),
    sessions: () => hub.sessions(),
  });
  const dispatch = dispatcher({
    serverOf: (skill) => parts.skills.serverOfSkill(skill),
    session: (id) => hub.sessions().find((each) => each.id === id),
    tools: (viewer) => hub.view(viewer).tools,
    call: (caller, request) => hub.call(caller, request),
  });
  const parts: LastingParts = {
    clock,
    redactor,
    registry,
    catalog,
    servers,
    skills: new SkillSources(catalog, dispatch, (server, uri) =>
      events.emit("resource-updated", { server, uri, originUri: uri }),
    ),
    definitions,
    approvals: makeApprovals(() => present.wiring.config, { clock, events, audit, onAsk: options.onAsk }),
    limits: new Limits(clock, config.config.limits),
    hooks: new HookChain(),
    audit: auditSink(audit, events),
    call: (caller, request) => hub.call(caller, request),
  };
  const present: Present = { wiring: wire(parts, config) };

  // Listens first, so that a definition is looked at before anybody hears of it.
  definitions.start();
  relayCatalog(catalog, events);
  catalog.addSource(registry.source());
  liveSkills.offer(config, parts.skills);
  for (const spec of config.servers) servers.add(spec);

  const isWanted = (spec: ServerSpec): boolean => isChosen(spec, options.connect);
  const waitFor = (connecting: Promise<unknown>): Promise<void> => waitAtMost(connecting, options.wait, clock);
  const reloader = new Reloader({ parts, present, place, events, secrets, plugins, liveSkills, isWanted, waitFor });
  const connecting = async (): Promise<void> => {
    const chosen = servers.list().filter(({ spec }) => isWanted(spec));
    await Promise.all(chosen.map((connection) => connection.connect()));
    await serverSkills.settled();
  };

  const hub = new Hub({
    parts,
    present,
    reloader,
    session,
    followed,
    liveSkills,
    events,
    warnings,
    settled: () => settled,
    setIdleClient(client) {
      idle.client = client;
    },
    setLogLevel(level) {
      logLevel.value = level;
      for (const connection of servers.all()) void connection.setLogLevel(level);
    },
    async release() {
      for (const stop of stops) stop();
      reloader.unloadPlugins();
      await definitions.close();
      audit.close();
      pids.close();
    },
  });
  const stops = [
    events.on("server", ({ info }) => serverSkills.follow(info)),
    events.on("reload", ({ report }) => report.removed.forEach((id) => serverSkills.drop(id))),
    // What was not followed again because it was hidden may be seen now.
    events.on("visibility", () => servers.list().forEach((connection) => followed.renew(connection))),
    registry.on("warning", ({ message }) => warn(message)),
    closeOnAbort(hub, options.signal),
    // A program that does not listen for signals itself must not leave servers behind when it is told to end.
    closeOnSignals(() => hub.close(), { unlessHandled: true }),
  ];
  const settled = waitFor(connecting());
  if (options.wait !== false) await settled;
  return hub;
}

function hubSession(config: LoadedConfig, options: HubOptions): Session {
  const fromConfig = config.config.workspaceDir;
  const workspaceDir = options.workspaceDir ?? (fromConfig && resolve(config.baseDir, fromConfig));
  return new Session({
    owner: true,
    door: options.door ?? "library",
    ...(workspaceDir === undefined ? {} : { workspaceDir }),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  });
}

/** Warnings begin before anybody can listen, so the last of them are kept. */
function keepWarnings(events: Emitter<HubEvents>): readonly HubEvents["warning"][] {
  const kept: HubEvents["warning"][] = [];
  events.on("warning", (warning) => {
    kept.push(warning);
    if (kept.length > WARNINGS_KEPT) kept.shift();
  });
  return kept;
}

function auditSink(audit: AuditLog, events: Emitter<HubEvents>): AuditSink {
  return {
    begin: (record, sent) => audit.begin(record, sent),
    withhold: (callId) => audit.withhold(callId),
    write(record, sent) {
      events.emit("call", record);
      audit.write(record, sent);
    },
  };
}

/** Not to wait at the start is no reason to wait for ever later. */
async function waitAtMost(connecting: Promise<unknown>, wait: HubOptions["wait"], clock: Clock): Promise<void> {
  if (wait === true) return void (await connecting);
  let stop = (): void => {};
  const over = new Promise<void>((done) => {
    stop = clock.after(typeof wait === "number" ? wait : DEFAULT_WAIT_MS, done);
  });
  await Promise.race([connecting, over]);
  stop();
}

function isChosen({ id, enabled, autoConnect }: ServerSpec, connect: HubOptions["connect"] = "auto"): boolean {
  if (connect === "none") return false;
  return connect === "auto" ? enabled && autoConnect : connect.includes(id);
}

function closeOnAbort(hub: Hub, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const close = (): void => void hub.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return () => signal.removeEventListener("abort", close);
}
