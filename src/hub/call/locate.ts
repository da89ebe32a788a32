/** From a public name to the source that has it, and the use in the source's own words. */
import { nearMatches } from "../../base/near-matches.ts";
import type { CatalogReader } from "../../catalog/catalog.ts";
import { NamePattern } from "../../catalog/naming.ts";
import { isOwnScheme } from "../../catalog/public-uris.ts";
import { type ResourceRoute, unlistedRoute } from "../../catalog/snapshot.ts";
import type { Capability, ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { followedTask, NO_DEFINITIONS, type Source, type Use } from "../../model/source.ts";
import type { Policy } from "../../policy/decide.ts";
import { loginNeededError } from "../../secrets/oauth/login-errors.ts";
import { KeptResults, RESULTS_SOURCE } from "../../sessions/kept-results.ts";
import type { SessionSources } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { SKILLS_SOURCE } from "../../skills/offer/offered-skill.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { ServerConnections } from "../servers/server-connections.ts";
import type { AccessControl } from "./access-control.ts";

/** The meaning of a public name: the capability, the source that has it, and the use in that source's own words. */
export interface Target {
  readonly capability: Capability;
  readonly source: Source;
  readonly use: Use;
}

interface Lookup {
  readonly catalog: CatalogReader;
  /** The tool of the session, where factories make tools; `found` is what the catalog has. */
  readonly localTool: (session: Session, name: string, found: ToolCapability | undefined) => ToolCapability | undefined;
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  readonly unavailable: UnavailableServers;
  readonly unlisted: UnlistedResources;
  readonly searchTools?: { target(session: Session, use: Use): Target | undefined } | undefined;
  /** Whether a URI is below a skill of the user's own: then no other source answers for it. */
  readonly isOwnSkillUri: (uri: string) => boolean;
}

/** Undefined if no connected source has it. */
export function locate(lookup: Lookup, session: Session, use: Use): Target | undefined {
  if (use.kind === "resource" && KeptResults.owns(use.uri)) return keptResultsTarget(session, use.uri);
  if (use.kind === "tool" && use.name.startsWith("toolcrib_")) {
    const searchTool = lookup.searchTools?.target(session, use);
    if (searchTool !== undefined) return searchTool;
  }
  const found = find(lookup, session, use);
  const source = found && lookup.catalog.source(found.capability.origin.source);
  return found && source && { capability: found.capability, source, use: found.use };
}

/** For what `locate` did not find: wakes a server that may have it, or says why it cannot be had. */
export async function locateUnavailable(lookup: Lookup, session: Session, use: Use): Promise<Target> {
  const woken = (await lookup.unavailable.wake(session, use)) ? locate(lookup, session, use) : undefined;
  if (woken !== undefined) return woken;
  throw lookup.unavailable.explain(session, use) ?? notFoundError(use, lookup.visibleNames(session, use.kind));
}

function find(
  { catalog, unlisted, isOwnSkillUri: isOfOwnSkill, localTool }: Lookup,
  session: Session,
  use: Use,
): { capability: Capability; use: Use } | undefined {
  switch (use.kind) {
    case "tool": {
      const capability = localTool(session, use.name, catalog.find(use.name));
      return capability && { capability, use: { ...use, name: capability.origin.name } };
    }
    case "prompt": {
      const capability = catalog.findPrompt(use.name);
      return capability && { capability, use: { ...use, name: capability.origin.name } };
    }
    case "resource":
    case "subscribe":
    case "unsubscribe": {
      const found = catalog.findResource(use.uri) ?? unlisted.find(session, use.uri);
      if (found?.capability.origin.source !== SKILLS_SOURCE && isOfOwnSkill(use.uri)) return undefined;
      // The address by which a task is followed, which only its owner may do.
      if (found === undefined || followedTask(found.uri) !== undefined) return undefined;
      return { capability: found.capability, use: { ...use, uri: found.uri } };
    }
    case "completion": {
      const { ref } = use;
      if (ref.type === "ref/prompt") {
        const capability = catalog.findPrompt(ref.name);
        return capability && { capability, use: { ...use, ref: { ...ref, name: capability.origin.name } } };
      }
      const capability = catalog.findTemplate(ref.uri);
      return capability && { capability, use: { ...use, ref: { ...ref, uri: capability.origin.name } } };
    }
  }
}

/** A session's kept results as a Source, so that reading one takes the same path as every other read. */
function keptResultsTarget(session: Session, uri: string): Target {
  const source: Source = {
    id: RESULTS_SOURCE,
    kind: "local",
    definitions: () => NO_DEFINITIONS,
    onChange: () => () => {},
    async run() {
      const result = session.results.read(uri);
      if (result !== undefined) return result;
      throw new ToolcribError("not_found", `The result "${uri}" is not kept, or no longer.`, {
        hint: "Kept results belong to one session and make room for newer ones. Call the tool again.",
      });
    },
  };
  return {
    source,
    use: { kind: "resource", uri },
    capability: {
      kind: "resource",
      name: uri,
      origin: { source: RESULTS_SOURCE, name: uri },
      definition: { uri, name: uri, mimeType: "text/plain" },
      fingerprint: "",
    },
  };
}

export function notFoundError(use: Use, visible: readonly string[]): ToolcribError {
  const { noun, name } = describeUse(use);
  const near = nearMatches(name, visible);
  return new ToolcribError("not_found", `There is no ${noun} "${name}".`, {
    hint: near.length === 0 ? "`toolcrib list` shows what there is." : `Did you mean ${near.join(", ")}?`,
    ...(near.length === 0 ? {} : { details: { nearMatches: near } }),
  });
}

function describeUse(use: Use): { noun: string; name: string } {
  switch (use.kind) {
    case "tool":
      return { noun: "tool", name: use.name };
    case "prompt":
      return { noun: "prompt", name: use.name };
    case "resource":
    case "subscribe":
    case "unsubscribe":
      return { noun: "resource", name: use.uri };
    case "completion":
      return use.ref.type === "ref/prompt"
        ? { noun: "prompt", name: use.ref.name }
        : { noun: "resource template", name: use.ref.uri };
  }
}

interface UnavailableServersOptions {
  readonly config: LoadedConfig;
  readonly connections: ServerConnections;
  readonly policy: Policy;
  readonly sessionSources: SessionSources;
}

/** An unknown name may belong to a server that is not connected: then that server is woken, or its absence is the answer. */
export class UnavailableServers {
  readonly #options: UnavailableServersOptions;
  readonly #patterns: readonly NamePattern[];

  constructor(options: UnavailableServersOptions) {
    this.#options = options;
    const { config } = options;
    const template = config.config.tools.naming;
    this.#patterns = config.servers.map(({ id, toolPrefix }) => new NamePattern(template, id, toolPrefix));
  }

  /** Connects servers that wait to be asked for, and waits for those on their way. False if there are none. */
  async wake(session: Session, use: Use): Promise<boolean> {
    const sleeping = this.#candidates(session, use).filter((connection) =>
      ["idle", "connecting"].includes(connection.info().state),
    );
    await Promise.all(sleeping.map((connection) => connection.connect()));
    return sleeping.length > 0;
  }

  /** `server_unavailable` if a server that this session may see could have it and is down. */
  explain(session: Session, use: Use): ToolcribError | undefined {
    const [down] = this.#candidates(session, use);
    if (down === undefined) return undefined;
    const { id, name, lastError, hint, problem, progress, state, auth } = down.info();
    const isOwnLogin = down.spec.isolation === "user" ? session.user !== undefined : session.owner;
    if (auth?.state === "login_needed" && isOwnLogin)
      return loginNeededError({ server: id, user: down.spec.isolation === "user" ? session.user : undefined });
    const shown = this.#options.sessionSources.get(id) === undefined ? id : name;
    return new ToolcribError(
      "server_unavailable",
      `The server "${shown}" is not connected: ${lastError ?? progress ?? `it is ${state}`}`,
      {
        hint: hint ?? "`toolcrib doctor` checks it.",
        details: { server: id, ...(problem === undefined ? {} : { problem }) },
      },
    );
  }

  /** Servers that are not connected, that may have it, and that the session may see. */
  #candidates(session: Session, use: Use): ServerConnection[] {
    if (use.kind !== "tool" && use.kind !== "prompt") return [];
    const { name, kind } = use;
    const { connections, policy, sessionSources } = this.#options;
    return this.#patterns
      .filter((pattern) => pattern.canProduce(name))
      .flatMap(({ server }) => connections.get(server) ?? [])
      .concat(session.mounted?.whoCouldGive(name) ?? [])
      .filter((connection) => {
        const { state, sleeping } = connection.info();
        // What a sleeping server has is listed.
        return state !== "ready" && state !== "degraded" && sleeping !== true;
      })
      .filter(({ id }) => {
        const subject = { kind, publicName: name, originName: name, server: id, mounted: sessionSources.get(id) };
        return policy.decide(subject, session).verdict !== "deny";
      });
  }
}

interface UnlistedResourcesOptions {
  readonly catalogOf: (session: Session) => CatalogReader;
  readonly connections: ServerConnections;
  readonly access: AccessControl;
}

/** MCP does not promise that a resource which a result links to is listed, so an unlisted URI may be readable. */
export class UnlistedResources {
  readonly #options: UnlistedResourcesOptions;

  constructor(options: UnlistedResourcesOptions) {
    this.#options = options;
  }

  /**
   * For a URI that is not in the catalog: the server that gave the session a link to it, else the only one with resources
   * that the session may see. Of several it is unknown which is meant.
   */
  find(session: Session, uri: string): ResourceRoute | undefined {
    if (isOwnScheme(uri)) return undefined;
    const { catalogOf, connections, access } = this.#options;
    const linked = session.links.sourceOf(uri);
    if (linked !== undefined && catalogOf(session).source(linked) !== undefined) return unlistedRoute(linked, uri, uri);
    const able = [...connections.list(), ...(session.mounted?.connections() ?? [])]
      .filter(hasResources)
      .map(({ id }) => unlistedRoute(id, uri, uri));
    const visible = able.filter(({ capability }) => access.shows(session, capability));
    // If all are denied it is denied, and an operator learns by which rule.
    const [only, another] = visible.length > 0 ? visible : able;
    return another === undefined ? only : undefined;
  }
}

function hasResources(connection: ServerConnection): boolean {
  const { resources, templates } = connection.definitions();
  return resources.length + templates.length > 0 || connection.info().capabilities["resources"] !== undefined;
}
