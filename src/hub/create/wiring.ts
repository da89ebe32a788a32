/** The parts of a hub that follow from its config. They are made together, and made anew when the config changes. */
import type { Clock } from "../../base/clock.ts";
import type { Catalog, CatalogReader } from "../../catalog/catalog.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { isSessionLocalSource } from "../../model/capability.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { CallLimits } from "../../policy/call-limits.ts";
import { ToolClasses } from "../../policy/pattern.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { MountedParts } from "../../sessions/mounted-parts.ts";
import type { SessionSource, SessionSources } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { serverSkills, SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import type { AuditSink } from "../../telemetry/call-record.ts";
import type { Tracing } from "../../telemetry/tracing.ts";
import type { ToolRegistry } from "../../tools/tool-registry.ts";
import { AccessControl } from "../call/access-control.ts";
import type { Approvals } from "../call/approvals.ts";
import type { CallPath } from "../call/call-context.ts";
import { RESULTS_SOURCE } from "../call/call-target.ts";
import { replacedToolNames, buildPolicy } from "../call/config-policy.ts";
import type { HookChain } from "../call/hooks.ts";
import { UnavailableServers, UnlistedResources } from "../call/locate.ts";
import type { DefinitionWatch } from "../pins/definition-watch.ts";
import type { ServerConnections } from "../servers/server-connections.ts";
import type { SkillSources } from "../skills/skill-sources.ts";
import { OfferedTools } from "../view/offered-tools.ts";
import { SEARCH_SOURCE } from "../view/search-definitions.ts";
import { SearchTools, type SearchToolsOptions, ToolSearch } from "../view/search-tools.ts";
import { type View, Views } from "../view/view.ts";

/** What lives as long as the hub, whatever the config says. */
export interface HubParts {
  readonly clock: Clock;
  /** Undefined for a hub that is no node of one. */
  readonly cluster: Cluster | undefined;
  readonly redactor: Redactor;
  readonly registry: ToolRegistry;
  readonly catalog: Catalog;
  readonly servers: ServerConnections;
  /** What sessions brought. */
  readonly ownSources: SessionSources;
  readonly skills: SkillSources;
  readonly definitions: DefinitionWatch;
  readonly approvals: Approvals;
  readonly limits: CallLimits;
  readonly hooks: HookChain;
  readonly audit: AuditSink;
  readonly tracing: Tracing;
  readonly call: SearchToolsOptions["call"];
  /** Sessions that were offered the search tools although the config has no `tools.max`. */
  readonly searching: WeakSet<Session>;
}

/** Immutable. Who began with one goes on with it, also when there is a newer one. */
export interface Wiring {
  readonly config: LoadedConfig;
  readonly path: CallPath;
  readonly views: Views;
  readonly offered: OfferedTools;
}

export function wireHub(parts: HubParts, config: LoadedConfig): Wiring {
  const {
    clock,
    redactor,
    registry,
    catalog,
    servers,
    ownSources,
    skills,
    definitions,
    approvals,
    limits,
    hooks,
    audit,
    call,
  } = parts;
  const { guard, limits: limitValues, secrets, tools } = config.config;
  const policy = buildPolicy(config);
  const brought = (source: string): SessionSource | undefined => ownSources.get(source);
  const catalogOf = (session: Session): CatalogReader => session.brought?.reader ?? catalog;
  const tagsOf = tagsBySource(config.servers);
  const gate = new AccessControl({
    policy,
    classes: new ToolClasses(guard.classes),
    taint: guard.taint,
    tagsOf,
    aliasOf: replacedToolNames(config),
    isOwnerOnly: ({ source, name }) => (ownSources.get(source) ?? registry).isOwnerOnly(name),
    brought,
    skillOf: ({ source, name }) => (source === SKILLS_SOURCE ? skills.skillOf(source, name)?.facts.name : undefined),
    serverOf: (source) => skills.serverOf(source) ?? source,
    objections: definitions.objections,
  });
  const views = new Views(catalog, gate);
  const view = (viewer: Session): View => views.of(viewer);
  const search = new ToolSearch({ catalog, view, tagsOf });
  const path: CallPath = {
    clock,
    catalogOf,
    absent: new UnavailableServers({ config, connection: (id) => servers.get(id), policy, brought }),
    unlisted: new UnlistedResources({
      catalogOf,
      servers: () => servers.list(),
      shows: (viewer, capability) => gate.shows(viewer, capability),
    }),
    isOwnSkillUri: (uri) => skills.isOwnSkillUri(uri),
    visibleNames: (caller, kind) => views.names(caller, kind),
    searchTools: new SearchTools({
      search,
      view,
      call,
      isThere: (session) => tools.max !== undefined || parts.searching.has(session),
    }),
    gate,
    approvals,
    limits,
    limitValues,
    hooks,
    guard,
    isTrusted: trustedSources(config.servers, (id) => servers.get(id)?.spec),
    calledName: (source) => brought(source)?.name ?? source,
    mask: redactor.maskAll,
    maskResult: secrets.maskResults ? redactor.maskContent : (result) => result,
    audit,
    tracing: parts.tracing,
  };
  const offered = new OfferedTools({
    max: tools.max,
    view,
    search,
    shows: (viewer, tool) => gate.shows(viewer, tool),
    onSearchOffered: (session) => parts.searching.add(session),
  });
  return { config, path, views, offered };
}

function tagsBySource(servers: readonly ServerSpec[]): (source: string) => readonly string[] {
  const tags = new Map(servers.map((spec) => [spec.id, spec.tags ?? []]));
  return (source) => tags.get(source) ?? [];
}

/**
 * In-process tools, also a session's, the hub's own and the user's skills are trusted; a server is trusted, and with it its skills, only if its entry says so. While a server with
 * another entry still serves under the id, that entry must say so as well.
 */
export function trustedSources(
  servers: readonly ServerSpec[],
  serving: (id: string) => ServerSpec | undefined = () => undefined,
): (source: string) => boolean {
  const trusted = servers
    .filter((spec) => spec.trust === "trusted" && (serving(spec.id) ?? spec).trust === "trusted")
    .map((spec) => spec.id);
  const sources = new Set([
    "local",
    SKILLS_SOURCE,
    SEARCH_SOURCE,
    RESULTS_SOURCE,
    ...trusted,
    ...trusted.map(serverSkills),
  ]);
  return (source) => sources.has(source) || isSessionLocalSource(source);
}

/** The call path of a session that brought secrets with its servers: they are masked in its own calls, and only there. */

const paths = new WeakMap<MountedParts, { readonly of: CallPath; readonly path: CallPath }>();

export function callPathFor({ path, config }: Wiring, { brought }: Session): CallPath {
  if (brought === undefined || !brought.redactor.hasValues) return path;
  const known = paths.get(brought);
  if (known?.of === path) return known.path;
  const { redactor } = brought;
  const made: CallPath = {
    ...path,
    mask: redactor.maskAll,
    maskResult: config.config.secrets.maskResults ? redactor.maskContent : path.maskResult,
    audit: maskedSink(path.audit, redactor.maskAll),
  };
  paths.set(brought, { of: path, path: made });
  return made;
}

function maskedSink(sink: AuditSink, mask: <Value>(value: Value) => Value): AuditSink {
  return {
    begin: (record, sent) => sink.begin?.(mask(record), mask(sent)),
    withhold: (callId) => sink.withhold?.(callId),
    write: (record, sent) => sink.write(mask(record), mask(sent)),
    get lost() {
      return sink.lost ?? 0;
    },
  };
}
