/** Values of the label `server`: known servers, up to a number; anything else shares a few words, whatever is asked for. */
import { isLocalSource, LOCAL_SOURCE } from "../../model/local-source.ts";

export const MOST_SERVERS = 200;

export class ServerLabels {
  readonly #isServer: (id: string) => boolean;
  readonly #known = new Set<string>();

  constructor(isServer: (id: string) => boolean) {
    this.#isServer = isServer;
  }

  /** @param source Where a call went; null if it got nowhere. */
  of(source: string | null): string {
    if (source === null) return "none";
    if (isLocalSource(source)) return LOCAL_SOURCE;
    if (this.#known.has(source)) return source;
    // The hub's own: skills, search, kept results.
    if (source.includes(":")) return "toolcrib";
    if (this.#known.size >= MOST_SERVERS || !this.#isServer(source)) return "other";
    this.#known.add(source);
    return source;
  }
}
