/**
 * fetch for everything that is asked of authorization servers: with a time limit, a size limit, no redirects, and connections
 * only to where a login may lead. On node:http, because the built-in fetch offers no way to check the address that it connects to.
 */
import { lookup as systemLookup } from "node:dns";
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import {
  ADDRESS_KIND_TEXT,
  type AddressKind,
  addressKind,
  bareHost,
  filteredLookup,
  isLoopback,
  isThisMachine,
  literalAddress,
  type LookUpAll,
} from "../../base/network-address.ts";
import { ToolcribError } from "../../model/errors.ts";
import { readBytes } from "../../base/read-bytes.ts";

export type OAuthFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 1024 * 1024;
const NO_BODY = new Set([204, 205, 304]);

/** @param named The addresses that the config names for this server. */
export function loginFetch(serverUrl: string, named: NamedAddresses | undefined): OAuthFetch {
  return oauthFetch(new LoginAddressPolicy(new URL(serverUrl), { named }));
}

export function oauthFetch(reach: LoginAddressPolicy, signal?: AbortSignal): OAuthFetch {
  return async (url, init) => {
    const target = new URL(url);
    const lookup = await reach.admit(target);
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signals = [timeout, ...(signal === undefined ? [] : [signal]), ...(init?.signal ? [init.signal] : [])];
    const request = new Request(target, { ...init, signal: AbortSignal.any(signals) });
    const answer = await send(request, target, lookup);
    try {
      const tooLarge = (): Error =>
        new ToolcribError("unauthorized", `${target.host} answers with more than a login needs`);
      const body = await readBytes(answer, MAX_BYTES, tooLarge);
      const { statusCode: status = 0, statusMessage: statusText = "" } = answer;
      return new Response(NO_BODY.has(status) ? null : body, { status, statusText, headers: headersOf(answer) });
    } catch (error) {
      throw failure(error, request.signal);
    }
  };
}

async function send(request: Request, target: URL, lookup: LookupFunction): Promise<IncomingMessage> {
  const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
  const { method, signal } = request;
  const headers = {
    accept: "*/*",
    "user-agent": "toolcrib",
    ...Object.fromEntries(request.headers),
    ...(body === undefined ? {} : { "content-length": body.byteLength }),
  };
  const http = process.getBuiltinModule(target.protocol === "https:" ? "node:https" : "node:http");
  return new Promise((resolve, reject) => {
    // A connection of its own: a kept one may have been made without a check of its address.
    const sent = http.request(target, { method, headers, lookup, signal, agent: false }, resolve);
    sent.on("error", (error) => reject(failure(error, signal)));
    sent.end(body);
  });
}

/** In the form of fetch errors, which the SDK and our own messages rely on. */
function failure(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ToolcribError) return error;
  return signal.aborted ? signal.reason : new TypeError("fetch failed", { cause: error });
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}

/** Where the MCP server is. Whoever runs it can reach as much without us. */
type ServerLocation = "machine" | "private" | "public";

/** Addresses that the config itself names. */
export interface NamedAddresses {
  readonly issuer?: string | undefined;
  readonly tokenUrl?: string | undefined;
}

interface LoginAddressOptions {
  readonly named?: NamedAddresses | undefined;
  readonly lookup?: LookUpAll | undefined;
}

/**
 * Where a login may lead. An MCP server names the address of its metadata, these name an authorization server, and that one
 * its endpoints: without limits a remote server could have us ask around in this machine and this network.
 */
export class LoginAddressPolicy {
  readonly #server: URL;
  readonly #lookup: LookUpAll;
  /** With their ports, as `URL.host` has them. */
  readonly #named: ReadonlySet<string>;
  #place: Promise<ServerLocation> | undefined;

  /** @param server The MCP server on whose word addresses are asked. */
  constructor(server: URL, { named = {}, lookup = systemLookup }: LoginAddressOptions = {}) {
    this.#server = server;
    this.#lookup = lookup;
    const hosts = [named.issuer, named.tokenUrl].map((address) => URL.parse(address ?? "")?.host);
    this.#named = new Set([server.host, ...hosts.filter((host) => host !== undefined)]);
  }

  /** Rejects for an address that must not be asked; returns the look-up for the connection, which checks names. */
  async admit(url: URL): Promise<LookupFunction> {
    assertSecure(url);
    if (this.#named.has(url.host)) return filteredLookup(() => undefined, this.#lookup);
    const place = await (this.#place ??= this.#findPlace());
    const judge = (address: string): ToolcribError | undefined =>
      isReachableFrom(place, address) ? undefined : this.#refusal(url, addressKind(address));
    const address = literalAddress(url);
    const refused = address === undefined ? undefined : judge(address);
    if (refused !== undefined) throw refused;
    return filteredLookup(judge, this.#lookup);
  }

  /**
   * A name counts as this machine only if it says so, since the owner of a name can point it here; and as private only if
   * all its addresses are.
   */
  async #findPlace(): Promise<ServerLocation> {
    const written = literalAddress(this.#server);
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
    const why = `it is ${ADDRESS_KIND_TEXT[kind]}, which ${this.#server.host} may not lead to`;
    return new ToolcribError("unauthorized", `${url.host} is not asked for a login: ${why}`, {
      hint: "If the login is really there, name it as `auth.issuer` of the server.",
      details: { sent: false },
    });
  }
}

function isReachableFrom(place: ServerLocation, address: string): boolean {
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
