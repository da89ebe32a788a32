/** Finds the authorization server of an MCP server: RFC 9728 from the server, RFC 8414 or OIDC from the other. */
import type { AuthorizationServerMetadata } from "@modelcontextprotocol/client";
import { ToolcribError } from "../../model/errors.ts";
import type { Challenge } from "./challenge.ts";
import { oauthFailure } from "./failures.ts";
import { addressOf } from "./grant-store.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import type { OAuthSdk } from "./sdk.ts";

export interface AuthorizationServer {
  /** As its own metadata says, which was checked against the address that they came from. */
  readonly issuer: string;
  /** Undefined for servers of 2025-03-26 without metadata, which have fixed endpoints. */
  readonly metadata: AuthorizationServerMetadata | undefined;
  /** The RFC 8707 indicator of the MCP server. */
  readonly resource: string;
  /** What the MCP server says it needs. */
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

export async function discover({ sdk, url, fetchFn, challenge, issuer }: Discovery): Promise<AuthorizationServer> {
  const address = addressOf(url);
  const resourceMetadata = await sdk
    .discoverOAuthProtectedResourceMetadata(
      address,
      challenge?.resourceMetadata === undefined ? {} : { resourceMetadataUrl: challenge.resourceMetadata },
      fetchFn,
    )
    .catch((error: unknown) => {
      // Servers of 2025-03-26 have none; one that cannot be reached is another matter.
      if (error instanceof TypeError || error instanceof ToolcribError) throw oauthFailure(sdk, error, address);
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
  const at = named.find((each) => sameIssuer(each, issuer)) ?? named[0] ?? new URL("/", address).href;
  const metadata = await readMetadata(sdk, at, fetchFn);
  const found = metadata?.issuer ?? at;
  if (issuer !== undefined && !sameIssuer(found, issuer)) throw otherIssuer(found, issuer, "`auth.issuer` allows");
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
    throw oauthFailure(sdk, error, issuer);
  }
}

export function otherIssuer(found: string, known: string, whose: string): ToolcribError {
  return new ToolcribError("unauthorized", `the server names the authorization server ${found}; ${whose} ${known}`, {
    hint: "Make sure that the server has really moved. If it has, `toolcrib auth logout` and log in again.",
    details: { status: 401, sent: false },
  });
}

export function sameIssuer(a: string, b: string | undefined): boolean {
  return a.replace(/\/$/, "") === b?.replace(/\/$/, "");
}
