/** The parts of a hub that follow from its config. They are made together, and again when the config changes. */
import type { Clock } from "../../base/clock.ts";
import type { Catalog, CatalogReader } from "../../catalog/catalog.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { type CapabilityOrigin, isSessionLocalSource } from "../../model/capability.ts";
import type { Outcome } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { CallToolResult } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Use } from "../../model/source.ts";
import type { CallLimits } from "../../policy/call-limits.ts";
import type { CallCounts } from "../../policy/rule-conditions.ts";
import { ToolClasses } from "../../policy/pattern.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { MountedParts } from "../../sessions/mounted-parts.ts";
import type { SessionSources } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { isSkillsSource, serverSkills, SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import type { AuditSink } from "../../telemetry/call-record.ts";
import type { Tracing } from "../../telemetry/tracing.ts";
import type { ToolRegistry } from "../../tools/tool-registry.ts";
import { AccessControl } from "../call/access-control.ts";
import type { Approvals } from "../call/approvals.ts";
import type { Taints } from "../call/taints.ts";
import type { Passages } from "../call/passages.ts";
import type { CallOptions, CallPath, CallRequest } from "../call/call-context.ts";
import { runCall } from "../call/call-pipeline.ts";
import { RESULTS_SOURCE } from "../../sessions/kept-results.ts";
import { replacedToolNames, buildPolicy } from "../call/config-policy.ts";
import type { HookChain } from "../call/hooks.ts";
import { ServerFiles } from "../call/server-files.ts";
import { locate, UnavailableServers, UnlistedResources } from "../call/locate.ts";
import type { Detectors } from "../detect/detectors.ts";
import type { DefinitionWatch } from "../pins/definition-watch.ts";
import type { ServerConnections } from "../servers/server-connections.ts";
import type { ServerLogins } from "../servers/server-logins.ts";
import type { SkillSources } from "../skills/skill-sources.ts";
import { OfferedTools } from "../view/offered-tools.ts";
import { SEARCH_SOURCE } from "../view/search-definitions.ts";
import { SearchTools, type SearchToolsOptions, ToolSearch } from "../view/search-tools.ts";
import { SessionShapes } from "../view/session-shapes.ts";
import { type View, Views } from "../view/view.ts";
import { serverIdentity } from "./server-identity.ts";

/** Parts that live as long as the hub, whatever the config says. */
export interface HubParts {
  readonly clock: Clock;
  /** Undefined for a hub that is not a node of one. */
  readonly cluster: Cluster | undefined;
  readonly redactor: Redactor;
  readonly registry: ToolRegistry;
  readonly catalog: Catalog;
  readonly servers: ServerConnections;
  /** The sources that sessions mounted. */
  readonly sessionSources: SessionSources;
  readonly skills: SkillSources;
  readonly definitions: DefinitionWatch;
  readonly approvals: Approvals;
  readonly taints: Taints;
  readonly limits: CallLimits;
  readonly counts: CallCounts;
  readonly logins: ServerLogins;
  /** The variables and the folder of the hub. */
  readonly place: { readonly env: NodeJS.ProcessEnv; readonly home: string };
  readonly hooks: HookChain;
  readonly detectors: Detectors;
  readonly passages: Passages;
  readonly audit: AuditSink;
  readonly tracing: Tracing;
  readonly secrets: Secrets;
  readonly warn: (source: string, message: string) => void;
  readonly call: SearchToolsOptions["call"];
  /** Sessions that were offered the search tools although the config has no `tools.max`. */
  readonly searching: WeakSet<Session>;
}

/** The wiring of the current config, and what parts of a hub ask of it while it is being made and later. */
export class CurrentWiring {
  #config: LoadedConfig;
  #wiring: Wiring | undefined;

  /** @param config Counts until there is a wiring. */
  constructor(config: LoadedConfig) {
    this.#config = config;
  }

  get config(): LoadedConfig {
    return this.#config;
  }

  get wiring(): Wiring {
    if (this.#wiring === undefined) throw new Error("The hub is not wired yet.");
    return this.#wiring;
  }

  /** Replaced as a whole: a call in progress goes on with the one that it began with. */
  replace(wiring: Wiring): void {
    this.#wiring = wiring;
    this.#config = wiring.config;
  }

  view(session: Session): View {
    return this.wiring.views.of(session);
  }

  run(session: Session, use: Use, options: CallOptions): Promise<Outcome> {
    return runCall(this.wiring.pathFor(session), session, use, options);
  }

  callTool(
    session: Session,
    { name, arguments: args = {}, ...options }: CallRequest,
  ): Promise<Outcome<CallToolResult>> {
    // `outcomeOf` sees to it that the result of a tool call has content.
    return this.run(session, { kind: "tool", name, arguments: args }, options) as Promise<Outcome<CallToolResult>>;
  }

  /** The source that has a resource, listed or not, and its URI there; undefined if the session may not see it. */
  resourceOrigin(session: Session, uri: string): CapabilityOrigin | undefined {
    const path = this.wiring.pathFor(session);
    const target = locate(path, session, { kind: "resource", uri });
    if (target?.use.kind !== "resource" || !path.access.shows(session, target.capability, uri)) return undefined;
    return { source: target.source.id, name: target.use.uri };
  }
}

/** Immutable. Who began with one goes on with it, also when there is a newer one. */
export interface Wiring {
  readonly config: LoadedConfig;
  /** Of sessions that brought nothing. */
  readonly path: CallPath;
  /** The path of a session: its own servers and tools come after the hub's, and its secrets are masked in its calls only. */
  readonly pathFor: (session: Session) => CallPath;
  readonly views: Views;
  readonly shapes: SessionShapes;
  readonly search: ToolSearch;
  readonly offered: OfferedTools;
}

export function wireHub(parts: HubParts, config: LoadedConfig): Wiring {
  const { clock, redactor, registry, catalog, servers, sessionSources, skills, definitions } = parts;
  const { approvals, taints, limits, hooks, audit, tracing, call, searching } = parts;
  const { guard, limits: limitValues, secrets, tools } = config.config;
  const policy = buildPolicy(config);
  const catalogOf = (session: Session): CatalogReader => session.mounted?.reader ?? catalog;
  const tagsOf = tagsBySource(config.servers);
  const isTrusted = trustedSources(config.servers, (id) => servers.get(id)?.spec);
  const shapes = new SessionShapes(config, catalog, parts.warn);
  const replacedName = replacedToolNames(config);
  const access = new AccessControl({
    policy,
    actorOf: (session) => shapes.actorOf(session),
    classes: new ToolClasses(guard.classes),
    taint: guard.taint,
    tagsOf,
    aliasOf: (source, name) => (isSkillsSource(source) ? name : replacedName(source, name)),
    isOwnerOnly: ({ source, name }) => (sessionSources.get(source) ?? registry).isOwnerOnly(name),
    mounted: (source) => sessionSources.get(source),
    skillOf: ({ source, name }) => (source === SKILLS_SOURCE ? skills.skillOf(source, name)?.facts.name : undefined),
    serverOf: (source) => skills.serverOf(source) ?? source,
    identityOf: (source) => {
      const connection = servers.get(source) ?? sessionSources.get(source)?.connection;
      return connection && serverIdentity(connection.spec, connection.info().serverName);
    },
    isTrusted,
    files: new ServerFiles({
      ...parts.place,
      specOf: (source) => (servers.get(source) ?? sessionSources.get(source)?.connection)?.spec,
    }),
    counts: parts.counts,
    clock,
    objections: definitions.objections,
  });
  const views = new Views(catalog, access, shapes, registry);
  const search = new ToolSearch({ catalog, views, tagsOf });
  const isThere = (session: Session): boolean => tools.max !== undefined || searching.has(session);
  const path: CallPath = {
    ...{ clock, catalog, access, approvals, taints, limits, limitValues, hooks, guard, audit, tracing },
    unavailable: new UnavailableServers({ config, connections: servers, policy, sessionSources }),
    unlisted: new UnlistedResources({ catalogOf, connections: servers, access }),
    searchTools: new SearchTools({ search, views, call, isThere }),
    isOwnSkillUri: (uri) => skills.isOwnSkillUri(uri),
    localTool: (caller, name, found) => views.localTool(caller, name, found),
    visibleNames: (caller, kind) => views.names(caller, kind),
    ...parts.detectors.readersOf(config),
    passages: parts.passages,
    isTrusted,
    displayName: (source) => source,
    loginLink: (session, server) => parts.logins.link(session, server),
    loginAsked: (id, session, server) => parts.logins.asked(id, session, server),
    resolve: async (text, { user, server }) => {
      const baseDir = config.servers.find(({ id }) => id === server)?.baseDir ?? config.baseDir;
      return (await parts.secrets.resolve(text, { baseDir, user })).value;
    },
    mask: redactor.maskAll,
    maskResult: secrets.maskResults ? redactor.maskContent : (result) => result,
  };
  const sessionPaths = new WeakMap<MountedParts, SessionPath>();
  const mountedPath = ({ mounted }: Session): CallPath => {
    if (mounted === undefined) return path;
    const { redactor: own, reader = catalog } = mounted;
    const masks = own.hasValues;
    const known = sessionPaths.get(mounted);
    if (known?.path.catalog === reader && known.masks === masks) return known.path;
    const displayName = (source: string): string => sessionSources.get(source)?.name ?? source;
    const made: CallPath = {
      ...path,
      catalog: reader,
      displayName,
      ...(masks && {
        mask: own.maskAll,
        // Detectors that are elsewhere get none of the session's secrets.
        scan: (texts, options) => path.scan(texts, { ...options, mask: own.maskContent }),
        maskResult: secrets.maskResults ? own.maskContent : path.maskResult,
        audit: maskedSink(audit, own.maskAll),
      }),
    };
    sessionPaths.set(mounted, { path: made, masks });
    return made;
  };
  const shapedPaths = new WeakMap<CatalogReader, { readonly of: CallPath; readonly path: CallPath }>();
  const pathFor = (session: Session): CallPath => {
    const plain = mountedPath(session);
    const reader = shapes.readerOf(session, plain.catalog);
    if (reader === plain.catalog) return plain;
    const known = shapedPaths.get(reader);
    if (known?.of === plain) return known.path;
    const shaped: CallPath = { ...plain, catalog: reader };
    shapedPaths.set(reader, { of: plain, path: shaped });
    return shaped;
  };
  const onSearchOffered = (session: Session): void => void searching.add(session);
  return {
    config,
    path,
    pathFor,
    views,
    shapes,
    search,
    offered: new OfferedTools({ max: tools.max, views, search, access, onSearchOffered }),
  };
}

function tagsBySource(servers: readonly ServerSpec[]): (source: string) => readonly string[] {
  const tags = new Map(servers.map((spec) => [spec.id, spec.tags ?? []]));
  return (source) => tags.get(source) ?? [];
}

/**
 * In-process tools, also a session's, the hub's own and the user's skills are trusted. A server is trusted, and with it its
 * skills, only if its entry says so. While a server with another entry still serves under the id, that entry must say so too.
 */
export function trustedSources(
  servers: readonly ServerSpec[],
  serving: (id: string) => ServerSpec | undefined = () => undefined,
): (source: string) => boolean {
  const isTrusted = (spec: ServerSpec): boolean =>
    spec.trust === "trusted" && (serving(spec.id) ?? spec).trust === "trusted";
  const trusted = servers.filter(isTrusted).map((spec) => spec.id);
  const untrusted = new Set(servers.map((spec) => spec.id).filter((id) => !trusted.includes(id)));
  const sources = new Set([
    "local",
    SKILLS_SOURCE,
    SEARCH_SOURCE,
    RESULTS_SOURCE,
    ...trusted,
    ...trusted.map(serverSkills),
  ]);
  return (source) => sources.has(source) || (!untrusted.has(source) && isSessionLocalSource(source));
}

interface SessionPath {
  readonly path: CallPath;
  /** Whether the session brought secrets. */
  readonly masks: boolean;
}

function maskedSink(sink: AuditSink, mask: <Value>(value: Value) => Value): AuditSink {
  return {
    begin: (record, content) => sink.begin?.(mask(record), mask(content)),
    keepsResults: (source) => sink.keepsResults?.(source) ?? false,
    withhold: (callId) => sink.withhold?.(callId),
    write: (record, content) => sink.write(mask(record), mask(content)),
    get lost() {
      return sink.lost ?? 0;
    },
  };
}
