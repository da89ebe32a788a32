/** The parts of a hub that follow from its config. They are made together, and made anew when the config changes. */
import type { Catalog } from "../catalog/catalog.ts";
import type { CatalogReader } from "../catalog/catalog-reader.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Clock } from "../model/clock.ts";
import { isSessionLocal } from "../model/local-source.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { ToolClasses } from "../policy/classes.ts";
import type { Limits } from "../policy/limits.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { OwnSource, OwnSources } from "../sessions/own/own-sources.ts";
import type { Session } from "../sessions/session.ts";
import { serverSkills, SKILLS_SOURCE } from "../skills/offer/offered-skill.ts";
import type { AuditSink } from "../telemetry/call-record.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import { AbsentServers } from "./absent-servers.ts";
import type { Approvals } from "./approvals.ts";
import type { CallPath } from "./call-path.ts";
import type { DefinitionWatch } from "./definition-watch.ts";
import { Gate } from "./gate.ts";
import type { HookChain } from "./hooks.ts";
import { RESULTS_SOURCE } from "./kept-results-source.ts";
import { OfferedTools } from "./offered-tools.ts";
import { aliases, policyOf } from "./rules.ts";
import { SEARCH_SOURCE } from "./search-definitions.ts";
import { SearchTools, type SearchToolsOptions } from "./search-tools.ts";
import type { ServerSet } from "./server-set.ts";
import type { SkillSources } from "./skills/skill-sources.ts";
import { ToolSearch } from "./tool-search.ts";
import { UnlistedResources } from "./unlisted-resources.ts";
import { type View, Views } from "./view.ts";

/** What lives as long as the hub, whatever the config says. */
export interface LastingParts {
  readonly clock: Clock;
  /** Undefined for a hub that is no node of one. */
  readonly cluster: Cluster | undefined;
  readonly redactor: Redactor;
  readonly registry: ToolRegistry;
  readonly catalog: Catalog;
  readonly servers: ServerSet;
  /** What sessions brought. */
  readonly ownSources: OwnSources;
  readonly skills: SkillSources;
  readonly definitions: DefinitionWatch;
  readonly approvals: Approvals;
  readonly limits: Limits;
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

export function wire(parts: LastingParts, config: LoadedConfig): Wiring {
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
  const policy = policyOf(config);
  const brought = (source: string): OwnSource | undefined => ownSources.get(source);
  const catalogOf = (session: Session): CatalogReader => session.brought?.reader ?? catalog;
  const tagsOf = tagsBySource(config.servers);
  const gate = new Gate({
    policy,
    classes: new ToolClasses(guard.classes),
    taint: guard.taint,
    tagsOf,
    aliasOf: aliases(config),
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
    absent: new AbsentServers({ config, connection: (id) => servers.get(id), policy, brought }),
    unlisted: new UnlistedResources({
      catalogOf,
      servers: () => servers.list(),
      shows: (viewer, capability) => gate.shows(viewer, capability),
    }),
    isOfOwnSkill: (uri) => skills.isOfOwnSkill(uri),
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
    isTrusted: trustOf(config.servers, (id) => servers.get(id)?.spec),
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
export function trustOf(
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
  return (source) => sources.has(source) || isSessionLocal(source);
}
