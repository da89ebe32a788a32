/**
 * Where a login may lead. An MCP server names the address of its metadata, these name an authorization server, and that one
 * its endpoints: without limits a remote server could have us ask around in this machine and this network.
 */
import { lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { ADDRESS_WORDS, type AddressKind, addressKind, isThisMachine } from "../../base/address-kind.ts";
import { bareHost, judgedLookup, type LookUpAll, writtenAddress } from "../../base/judged-lookup.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../model/loopback.ts";

/** Where the MCP server is. Whoever runs it can reach as much without us. */
type Place = "machine" | "private" | "public";

/** What the config itself names. */
export interface NamedAddresses {
  readonly issuer?: string | undefined;
  readonly tokenUrl?: string | undefined;
}

export interface LoginReachOptions {
  readonly named?: NamedAddresses | undefined;
  readonly lookup?: LookUpAll | undefined;
}

export class LoginReach {
  readonly #server: URL;
  readonly #lookup: LookUpAll;
  /** With their ports, as `URL.host` has them. */
  readonly #named: ReadonlySet<string>;
  #place: Promise<Place> | undefined;

  /** @param server The MCP server on whose word addresses are asked. */
  constructor(server: URL, { named = {}, lookup = systemLookup }: LoginReachOptions = {}) {
    this.#server = server;
    this.#lookup = lookup;
    const hosts = [named.issuer, named.tokenUrl].map((address) => URL.parse(address ?? "")?.host);
    this.#named = new Set([server.host, ...hosts.filter((host) => host !== undefined)]);
  }

  /** Rejects for an address that must not be asked; gives the look-up for the connection, by which names are judged. */
  async admit(url: URL): Promise<LookupFunction> {
    assertSecure(url);
    if (this.#named.has(url.host)) return judgedLookup(() => undefined, this.#lookup);
    const place = await (this.#place ??= this.#findPlace());
    const judge = (address: string): ToolcribError | undefined =>
      isOpenFrom(place, address) ? undefined : this.#refusal(url, addressKind(address));
    const address = writtenAddress(url);
    const refused = address === undefined ? undefined : judge(address);
    if (refused !== undefined) throw refused;
    return judgedLookup(judge, this.#lookup);
  }

  /**
   * A name counts as this machine only if it says so, since whoever owns a name can let it lead here; and as private only if
   * all its addresses are.
   */
  async #findPlace(): Promise<Place> {
    const written = writtenAddress(this.#server);
    if (written !== undefined) {
      if (isThisMachine(written)) return "machine";
      return addressKind(written) === "private" ? "private" : "public";
    }
    const host = bareHost(this.#server.hostname);
    const addresses = await new Promise<string[]>((resolve) => {
      this.#lookup(host, { all: true }, (error, found) => resolve(error ? [] : found.map(({ address }) => address)));
    });
    const isPrivate = addresses.length > 0 && addresses.every((address) => addressKind(address) === "private");
    return isPrivate ? "private" : "public";
  }

  #refusal(url: URL, kind: AddressKind): ToolcribError {
    const why = `it is ${ADDRESS_WORDS[kind]}, which ${this.#server.host} may not lead to`;
    return new ToolcribError("unauthorized", `${url.host} is not asked for a login: ${why}`, {
      hint: "If the login is really there, name it as `auth.issuer` of the server.",
      details: { sent: false },
    });
  }
}

function isOpenFrom(place: Place, address: string): boolean {
  if (isThisMachine(address)) return place === "machine";
  const kind = addressKind(address);
  return kind === "public" || (kind === "private" && place !== "public");
}

function assertSecure(url: URL): void {
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname))) return;
  throw new ToolcribError("unauthorized", `${url.protocol}//${url.host} is not asked for a login: it must be https`, {
    hint: "The server, or the authorization server that it names, is set up with a wrong address.",
    details: { sent: false },
  });
}
