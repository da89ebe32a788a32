/** Which sessions follow which resources: a connection that takes over knows nothing of the one before. */
import type { CapabilityOrigin } from "../../model/capability.ts";
import type { Session } from "../../sessions/session.ts";
import type { HubSessions } from "../create/hub-sessions.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";

interface SubscriptionRenewalOptions {
  /** Who has a resource, listed or not, and what its URI is there; undefined if the session may not see it now. */
  readonly originOf: (session: Session, uri: string) => CapabilityOrigin | undefined;
  /** The one that serves under an id. */
  readonly connection: (id: string) => ServerConnection | undefined;
  readonly sessions: HubSessions;
}

export class SubscriptionRenewal {
  readonly #options: SubscriptionRenewalOptions;
  /** By public URI, with the server that has the subscription. */
  readonly #servers = new WeakMap<Session, Map<string, string>>();

  constructor(options: SubscriptionRenewalOptions) {
    this.#options = options;
  }

  /** Its source has accepted the subscription. */
  add(session: Session, uri: string): void {
    const { originOf, connection } = this.#options;
    const server = originOf(session, uri)?.source;
    if (server === undefined || session.closed) return;
    let servers = this.#servers.get(session);
    if (servers === undefined) this.#servers.set(session, (servers = new Map()));
    servers.set(uri, server);
    // Another connection may have taken over meanwhile.
    const serving = connection(server);
    if (serving !== undefined) this.#resume(session, serving);
  }

  delete(session: Session, uri: string): void {
    this.#servers.get(session)?.delete(uri);
  }

  /**
   * To be called when a server is ready, and when another connection serves: sessions go on following there what they
   * followed at this server. They were admitted when they began, so this is not a call of theirs; what they may no longer see
   * is left out.
   */
  renew(connection: ServerConnection): void {
    if (this.#options.connection(connection.id) !== connection) return;
    for (const session of this.#options.sessions.all()) this.#resume(session, connection);
  }

  #resume(session: Session, connection: ServerConnection): void {
    const uris = [...(this.#servers.get(session) ?? [])].flatMap(([uri, server]) => {
      const origin = server === connection.id ? this.#options.originOf(session, uri) : undefined;
      return origin?.source === server ? [origin.name] : [];
    });
    if (uris.length > 0) connection.resume(session, uris);
  }
}
