/** Which sessions follow which resource of one server, so that the server hears of the first and the last only. */
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";

interface SubscriptionChange {
  readonly kind: "subscribe" | "unsubscribe";
  readonly uri: string;
}

interface Followed {
  readonly sessions: Set<string>;
  /** While the server is being told; who comes meanwhile shares what becomes of it. */
  telling?: Promise<JsonObject>;
}

type Tell = (uris: string[]) => Promise<JsonObject>;

/** Tells the server what nobody waits for: neither rejects. */
interface Quietly {
  followAgain(news: readonly string[], all: readonly string[]): Promise<void>;
  unfollow(gone: readonly string[], left: readonly string[]): Promise<void>;
}

export class ResourceSubscriptions {
  readonly #followed = new Map<string, Followed>();

  get uris(): string[] {
    return [...this.#followed.keys()];
  }

  /** @param tell Tells the server; called only if the change makes a difference to it. */
  async change({ kind, uri }: SubscriptionChange, session: string, tell: Tell): Promise<JsonObject> {
    if (kind === "subscribe") return this.#subscribe(uri, session, tell);
    return this.#remove(uri, session) ? tell(this.uris) : {};
  }

  /** The session goes on following these. Without a link, the next one begins with them. */
  resume(uris: readonly string[], session: string, link: Quietly | undefined): void {
    const news = uris.filter((uri) => {
      const followed = this.#followed.get(uri);
      if (followed === undefined) this.#followed.set(uri, { sessions: new Set([session]) });
      else followed.sessions.add(session);
      return followed === undefined;
    });
    if (news.length > 0) void link?.followAgain(news, this.uris);
  }

  /** Forgets a session. */
  drop(session: string, link: Quietly | undefined): void {
    const gone = this.uris.filter((uri) => this.#remove(uri, session));
    if (gone.length > 0) void link?.unfollow(gone, this.uris);
  }

  async #subscribe(uri: string, session: string, tell: Tell): Promise<JsonObject> {
    const known = this.#followed.get(uri);
    if (known === undefined) return this.#first(uri, session, tell);
    known.sessions.add(session);
    try {
      return (await known.telling) ?? {};
    } catch (error) {
      // That the first one no longer wants it says nothing about what the server would have answered.
      if (error instanceof ToolcribError && error.code === "cancelled") return this.#subscribe(uri, session, tell);
      throw error;
    }
  }

  async #first(uri: string, session: string, tell: Tell): Promise<JsonObject> {
    const followed: Followed = { sessions: new Set([session]) };
    this.#followed.set(uri, followed);
    try {
      followed.telling = tell(this.uris);
      return await followed.telling;
    } catch (error) {
      // For all who joined: they hear the same error. Meanwhile it may have been given up, and taken up again.
      if (this.#followed.get(uri) === followed) this.#followed.delete(uri);
      throw error;
    } finally {
      delete followed.telling;
    }
  }

  /** True if nobody follows it any more. */
  #remove(uri: string, session: string): boolean {
    const followed = this.#followed.get(uri);
    if (followed === undefined || !followed.sessions.delete(session) || followed.sessions.size > 0) return false;
    return this.#followed.delete(uri);
  }
}
