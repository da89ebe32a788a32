/** From a public name to the source that has it, and the use in the source's own words. */
import type { CatalogReader } from "../catalog/catalog-reader.ts";
import { nearMatches } from "../catalog/near-matches.ts";
import type { Capability } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Use } from "../model/source.ts";
import { KeptResults } from "../sessions/kept-results.ts";
import type { Session } from "../sessions/session.ts";
import { SKILLS_SOURCE } from "../skills/offer/offered-skill.ts";
import type { AbsentServers } from "./absent-servers.ts";
import { keptResultsTarget } from "./kept-results-source.ts";
import type { SearchTools } from "./search-tools.ts";
import type { Target } from "./target.ts";
import type { UnlistedResources } from "./unlisted-resources.ts";

interface Lookup {
  readonly catalogOf: (session: Session) => CatalogReader;
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  readonly absent: AbsentServers;
  readonly unlisted: UnlistedResources;
  readonly searchTools?: SearchTools | undefined;
  /** Whether a URI stands below a skill of the user's own: then nobody else answers for it. */
  readonly isOfOwnSkill: (uri: string) => boolean;
}

/** Undefined if nobody who is up has it. */
export function locate(lookup: Lookup, session: Session, use: Use): Target | undefined {
  if (use.kind === "resource" && KeptResults.owns(use.uri)) return keptResultsTarget(session, use.uri);
  const own = lookup.searchTools?.target(session, use);
  if (own !== undefined) return own;
  const catalog = lookup.catalogOf(session);
  const found = find(lookup, catalog, session, use);
  const source = found && catalog.source(found.capability.origin.source);
  return found && source && { capability: found.capability, source, use: found.use };
}

/** For what `locate` did not find: wakes a server that may have it, or says why it cannot be had. */
export async function locateAbsent(lookup: Lookup, session: Session, use: Use): Promise<Target> {
  const woken = (await lookup.absent.wake(session, use)) ? locate(lookup, session, use) : undefined;
  if (woken !== undefined) return woken;
  throw lookup.absent.explain(session, use) ?? notFound(use, lookup.visibleNames(session, use.kind));
}

function find(
  { unlisted, isOfOwnSkill }: Lookup,
  catalog: CatalogReader,
  session: Session,
  use: Use,
): { capability: Capability; use: Use } | undefined {
  switch (use.kind) {
    case "tool": {
      const capability = catalog.find(use.name);
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
      return found && { capability: found.capability, use: { ...use, uri: found.uri } };
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

export function notFound(use: Use, visible: readonly string[]): ToolcribError {
  const { noun, name } = wanted(use);
  const near = nearMatches(name, visible);
  return new ToolcribError("not_found", `There is no ${noun} "${name}".`, {
    hint: near.length === 0 ? "`toolcrib list` shows what there is." : `Did you mean ${near.join(", ")}?`,
    ...(near.length === 0 ? {} : { details: { nearMatches: near } }),
  });
}

function wanted(use: Use): { noun: string; name: string } {
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
