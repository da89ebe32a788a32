/** Finds the authorization server of an MCP server: RFC 9728 from the server, RFC 8414 or OIDC from the other. */
import type { AuthorizationServerMetadata } from "@modelcontextprotocol/client";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { addressOf } from "./grants.ts";
import { type OAuthSdk, toOAuthError } from "./login-errors.ts";
import { LoginAddressPolicy, type OAuthFetch, oauthFetch } from "./oauth-fetch.ts";

export interface AuthorizationServer {
  /** As its own metadata says, which was checked against the address that they came from. */
  readonly issuer: string;
  /** Undefined for servers of 2025-03-26 without metadata, which have fixed endpoints. */
  readonly metadata: AuthorizationServerMetadata | undefined;
  /** The RFC 8707 indicator of the MCP server. */
  readonly resource: string;
  /** Scopes that the MCP server says it needs. */
  readonly scopes: readonly string[];
}

interface Discovery {
  readonly sdk: OAuthSdk;
  readonly url: string;
  readonly fetchFn: OAuthFetch;
  readonly challenge?: Challenge | null;
  /** The only one that may be used. */
  readonly issuer?: string | undefined;
}

export async function discoverAuthorizationServer({
  sdk,
  url,
  fetchFn,
  challenge,
  issuer,
}: Discovery): Promise<AuthorizationServer> {
  const address = addressOf(url);
  const resourceMetadata = await sdk
    .discoverOAuthProtectedResourceMetadata(
      address,
      challenge?.resourceMetadata === undefined ? {} : { resourceMetadataUrl: challenge.resourceMetadata },
      fetchFn,
    )
    .catch((error: unknown) => {
      // Servers of 2025-03-26 have none; one that cannot be reached is another matter.
      if (error instanceof TypeError || error instanceof ToolcribError) throw toOAuthError(sdk, error, address);
      return undefined;
    });
  const resource = resourceMetadata?.resource ?? address;
  if (!sdk.checkResourceAllowed({ requestedResource: address, configuredResource: resource })) {
    throw new ToolcribError("unauthorized", `${address} says that its tokens are for another address`, {
      hint: "The server, or a proxy before it, is set up with a wrong public address.",
      details: { status: 401, sent: false },
    });
  }
  const named = resourceMetadata?.authorization_servers ?? [];
  const at = named.find((each) => isSameIssuer(each, issuer)) ?? named[0] ?? new URL("/", address).href;
  const metadata = await readMetadata(sdk, at, fetchFn);
  const found = metadata?.issuer ?? at;
  if (issuer !== undefined && !isSameIssuer(found, issuer))
    throw unexpectedIssuerError(found, issuer, "`auth.issuer` allows");
  return { issuer: found, metadata, resource, scopes: resourceMetadata?.scopes_supported ?? [] };
}

/** The SDK checks that the metadata are of the issuer that was asked. */
export async function readMetadata(
  sdk: OAuthSdk,
  issuer: string,
  fetchFn: OAuthFetch,
): Promise<AuthorizationServerMetadata | undefined> {
  try {
    return await sdk.discoverAuthorizationServerMetadata(issuer, { fetchFn });
  } catch (error) {
    throw toOAuthError(sdk, error, issuer);
  }
}

export function unexpectedIssuerError(found: string, known: string, whose: string): ToolcribError {
  return new ToolcribError("unauthorized", `the server names the authorization server ${found}; ${whose} ${known}`, {
    hint: "Make sure that the server has really moved. If it has, `toolcrib auth logout` and log in again.",
    details: { status: 401, sent: false },
  });
}

export function isSameIssuer(a: string, b: string | undefined): boolean {
  return a.replace(/\/$/, "") === b?.replace(/\/$/, "");
}

/** The login that a server asks for in `WWW-Authenticate`. */
export interface Challenge {
  readonly resourceMetadata?: URL;
  readonly scope?: string;
  readonly error?: string;
}

const PARAMETER = /(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g;

/** Null where no bearer token is asked for. */
export function readChallenge(header: string | undefined): Challenge | null {
  const bearer = header === undefined ? null : /(?:^|,)\s*Bearer\b([^]*)/i.exec(header.slice(0, 8192));
  if (bearer === null) return null;
  const found = new Map<string, string>();
  for (const [, name = "", quoted, plain] of (bearer[1] ?? "").matchAll(PARAMETER)) {
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
  }
  const metadata = URL.parse(found.get("resource_metadata") ?? "");
  const scope = found.get("scope");
  const error = found.get("error");
  return {
    ...(metadata === null ? {} : { resourceMetadata: metadata }),
    ...(scope === undefined || scope === "" ? {} : { scope }),
    ...(error === undefined ? {} : { error }),
  };
}

const MAX_PROBE_MS = 5000;

export async function offersOAuth(url: string, wwwAuthenticate: string | undefined): Promise<boolean> {
  if (readChallenge(wwwAuthenticate)?.resourceMetadata !== undefined) return true;
  const server = new URL(url);
  const fetchFn = oauthFetch(new LoginAddressPolicy(server), AbortSignal.timeout(MAX_PROBE_MS));
  const path = server.pathname.replace(/\/$/, "");
  const places = [
    [`/.well-known/oauth-protected-resource${path}`, "authorization_servers"],
    ["/.well-known/oauth-protected-resource", "authorization_servers"],
    // Servers of 2025-03-26 are their own authorization servers.
    ["/.well-known/oauth-authorization-server", "token_endpoint"],
  ] as const;
  const found = await Promise.all(
    places.map(async ([at, member]) => {
      try {
        const response = await fetchFn(new URL(at, server.origin));
        const metadata: unknown = response.ok ? await response.json() : undefined;
        return isJsonObject(metadata) && metadata[member] !== undefined;
      } catch {
        return false;
      }
    }),
  );
  return found.includes(true);
}
