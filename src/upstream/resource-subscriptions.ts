/** Which sessions follow which resource of one server, so that the server hears of the first and the last only. */
import type { JsonObject } from "../model/json.ts";

interface SubscriptionChange {
  readonly kind: "subscribe" | "unsubscribe";
  readonly uri: string;
}

export class ResourceSubscriptions {
  readonly #sessions = new Map<string, Set<string>>();

  get uris(): string[] {
    return [...this.#sessions.keys()];
  }

  /** @param tell Tells the server; called only if the change makes a difference to it. */
  async change(
    { kind, uri }: SubscriptionChange,
    session: string,
    tell: (uris: string[]) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const isNews = kind === "subscribe" ? this.#add(uri, session) : this.#remove(uri, session);
    if (!isNews) return {};
    try {
      return await tell(this.uris);
    } catch (error) {
      if (kind === "subscribe") this.#remove(uri, session);
      throw error;
    }
  }

  /** Forgets a session; the URIs that nobody follows any more are returned. */
  drop(session: string): string[] {
    return this.uris.filter((uri) => this.#remove(uri, session));
  }

  /** True if nobody followed it before. */
  #add(uri: string, session: string): boolean {
    const sessions = this.#sessions.get(uri);
    if (sessions === undefined) this.#sessions.set(uri, new Set([session]));
    else sessions.add(session);
    return sessions === undefined;
  }

  /** True if nobody follows it any more. */
  #remove(uri: string, session: string): boolean {
    const sessions = this.#sessions.get(uri);
    if (sessions === undefined || !sessions.delete(session) || sessions.size > 0) return false;
    return this.#sessions.delete(uri);
  }
}
