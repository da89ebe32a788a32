/**
 * Public URIs of resources and templates: a server's own, unless two servers share one. Then one of them owns it
 * (a server with bare names first, then the smaller id) and each other server's is put under `toolcrib://servers/<id>/`.
 * A URI that a server does not list, and that would lead to another server, is put there too.
 * Nobody can know beforehand which URIs a server will offer, so a URI may move once, when the owner first offers it;
 * from then on the claim is remembered, and a server that goes down and comes back moves nothing.
 */
import { SERVER_URI } from "../policy/canonical-uri.ts";
import type { NamedServer } from "./naming.ts";

/** In any spelling: a WHATWG parser ignores leading blanks and line breaks. */
const OWN_SCHEME = /^[\s\0-\x20]*toolcrib:/i;

interface Offered {
  /** The source's own URI. */
  readonly name: string;
}

export class PublicUris {
  readonly #isTaken: (uri: string) => boolean;
  #rank: ReadonlyMap<string, string> = new Map();
  /** Which sources offer or have offered a URI. */
  readonly #claims = new Map<string, Set<string>>();
  readonly #offered = new Map<string, readonly Offered[]>();
  #revision = 0;

  /** @param isTaken Whether the hub has a URI, where these are of a session's servers. */
  constructor(servers: readonly NamedServer[], isTaken: (uri: string) => boolean = () => false) {
    this.#isTaken = isTaken;
    this.rank(servers);
  }

  /** The URIs of the hub may have changed. */
  renew(): void {
    this.#revision += 1;
  }

  /** Other servers, or other prefixes: a URI that is shared may get another owner. */
  rank(servers: readonly NamedServer[]): void {
    const rankOf = ({ toolPrefix, fromProject }: NamedServer): number =>
      fromProject === true ? 2 : toolPrefix === "" ? 0 : 1;
    this.#rank = new Map(servers.map((server) => [server.id, `${rankOf(server)}${server.id}`]));
    this.#revision += 1;
  }

  /** Changes whenever a public URI may have changed. */
  get revision(): number {
    return this.#revision;
  }

  /** Notes what a source offers now; what it offered before and does not any more is free again. */
  offer(source: string, offered: readonly Offered[]): void {
    const before = this.#offered.get(source);
    if (before === offered || (before === undefined && offered.length === 0)) return;
    this.forget(source);
    this.#offered.set(source, offered);
    this.#revision += 1;
    for (const { name: uri } of offered) {
      const claims = this.#claims.get(uri);
      if (claims === undefined) this.#claims.set(uri, new Set([source]));
      else claims.add(source);
    }
  }

  /** For a source that is gone for good. */
  forget(source: string): void {
    const offered = this.#offered.get(source);
    if (offered === undefined) return;
    for (const { name: uri } of offered) {
      const claims = this.#claims.get(uri);
      claims?.delete(source);
      if (claims?.size === 0) this.#claims.delete(uri);
    }
    this.#offered.delete(source);
    this.#revision += 1;
  }

  publicUri(source: string, uri: string): string {
    // Our own scheme is ours alone: a server must not pass off a resource as a session's stored result.
    const isPlain = !isOwnScheme(uri) && !this.#isTaken(uri) && this.#owner(uri, source) === source;
    return isPlain ? uri : mappedUri(source, uri);
  }

  #owner(uri: string, fallback: string): string {
    let owner = fallback;
    for (const claimant of this.#claims.get(uri) ?? []) {
      if (this.#rankOf(claimant) < this.#rankOf(owner)) owner = claimant;
    }
    return owner;
  }

  #rankOf(source: string): string {
    // No server's id has a colon: those are sources of the hub itself, whose URIs no server takes over.
    return this.#rank.get(source) ?? (source.includes(":") ? "0" : `1${source}`);
  }
}

export function isOwnScheme(uri: string): boolean {
  return OWN_SCHEME.test(uri.replace(/[\t\n\r]+/g, ""));
}

/** The form that names the source. A template keeps its meaning behind the prefix, which contains no expression. */
export function mappedUri(source: string, uri: string): string {
  return `toolcrib://servers/${encodeURIComponent(source)}/${uri}`;
}

/** Undefined for a URI that is not in that form, as `mappedUri` writes it: one URI must not have two spellings. */
export function splitMappedUri(uri: string): { readonly source: string; readonly uri: string } | undefined {
  const [prefix = "", id = ""] = SERVER_URI.exec(uri) ?? [];
  if (prefix === "") return undefined;
  const split = { source: decoded(id), uri: uri.slice(prefix.length) };
  return mappedUri(split.source, split.uri) === uri ? split : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
