/** Which sessions follow which resource of one server, so that the server hears of the first and the last only. */
export class ResourceSubscriptions {
  readonly #sessions = new Map<string, Set<string>>();

  get uris(): string[] {
    return [...this.#sessions.keys()];
  }

  /** True if nobody followed it before. */
  add(uri: string, session: string): boolean {
    const sessions = this.#sessions.get(uri);
    if (sessions === undefined) this.#sessions.set(uri, new Set([session]));
    else sessions.add(session);
    return sessions === undefined;
  }

  /** True if nobody follows it any more. */
  remove(uri: string, session: string): boolean {
    const sessions = this.#sessions.get(uri);
    if (sessions === undefined || !sessions.delete(session) || sessions.size > 0) return false;
    return this.#sessions.delete(uri);
  }
}
