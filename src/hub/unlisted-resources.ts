/** MCP does not promise that a resource which a result links to is listed, so a URI that nobody lists may be readable. */
import type { CatalogReader } from "../catalog/catalog-reader.ts";
import { isOwnScheme } from "../catalog/public-uris.ts";
import { type ResourceRoute, unlistedRoute } from "../catalog/snapshot.ts";
import type { Capability } from "../model/capability.ts";
import type { Session } from "../sessions/session.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";

interface UnlistedResourcesOptions {
  readonly catalogOf: (session: Session) => CatalogReader;
  readonly servers: () => readonly ServerConnection[];
  readonly shows: (session: Session, capability: Capability) => boolean;
}

export class UnlistedResources {
  readonly #options: UnlistedResourcesOptions;

  constructor(options: UnlistedResourcesOptions) {
    this.#options = options;
  }

  /**
   * For a URI that is not in the catalog: the server that gave the session a link to it, else the only one with resources
   * that the session may see. Of several nobody can tell which is meant.
   */
  find(session: Session, uri: string): ResourceRoute | undefined {
    if (isOwnScheme(uri)) return undefined;
    const { catalogOf, servers, shows } = this.#options;
    const linked = session.links.sourceOf(uri);
    if (linked !== undefined && catalogOf(session).source(linked) !== undefined) return unlistedRoute(linked, uri, uri);
    const able = [...servers(), ...(session.brought?.connections() ?? [])]
      .filter(hasResources)
      .map(({ id }) => unlistedRoute(id, uri, uri));
    const visible = able.filter(({ capability }) => shows(session, capability));
    // If all are denied it is denied, and an operator learns by which rule.
    const [only, another] = visible.length > 0 ? visible : able;
    return another === undefined ? only : undefined;
  }
}

function hasResources(connection: ServerConnection): boolean {
  const { resources, templates } = connection.definitions();
  return resources.length + templates.length > 0 || connection.info().capabilities["resources"] !== undefined;
}
