/** The client credentials grant: the program logs in as itself. */
import type { OAuthMetadata } from "@modelcontextprotocol/client";
import type { Clock } from "../../model/clock.ts";
import type { ClientCredentialsSettings } from "../../model/server-spec.ts";
import type { Challenge } from "./challenge.ts";
import { type AuthorizationServer, discover, otherIssuer, sameIssuer } from "./discover.ts";
import { oauthFailure } from "./failures.ts";
import { type Grant, tokensFrom } from "./grant.ts";
import { addressOf, type GrantKey } from "./grant-store.ts";
import { LoginReach } from "./login-reach.ts";
import { oauthFetch, type OAuthFetch } from "./oauth-fetch.ts";
import { scopesToAsk } from "./scopes.ts";
import { loadOAuthSdk, type OAuthSdk } from "./sdk.ts";

interface CredentialsRequest {
  readonly key: GrantKey;
  readonly settings: ClientCredentialsSettings;
  readonly clock: Clock;
  readonly challenge: Challenge | null;
  /** The last one: its issuer is the only one that gets the secret. */
  readonly before: Grant | undefined;
}

export async function obtainToken({ key, settings, clock, challenge, before }: CredentialsRequest): Promise<Grant> {
  const sdk = await loadOAuthSdk();
  const fetchFn = oauthFetch(new LoginReach(new URL(key.url), { named: settings }));
  const at = await authorizationServer(sdk, key.url, settings, challenge, fetchFn);
  if (before !== undefined && settings.issuer === undefined && !sameIssuer(before.issuer, at.issuer)) {
    throw otherIssuer(at.issuer, before.issuer, "the secret was given to");
  }
  const scope = scopesToAsk({
    configured: settings.scopes,
    challenged: challenge?.scope,
    missed: before?.missed,
    at: { ...at, metadata: undefined },
  });
  const { clientId, clientSecret } = settings;
  const provider = new sdk.ClientCredentialsProvider({
    clientId,
    clientSecret,
    scope,
    expectedIssuer: at.issuer,
  });
  try {
    const answer = await sdk.fetchToken(provider, at.issuer, {
      metadata: at.metadata,
      resource: at.resource,
      scope,
      fetchFn,
    });
    return {
      version: 1,
      type: "client-credentials",
      server: key.server,
      url: addressOf(key.url),
      user: key.user,
      issuer: at.issuer,
      resource: at.resource,
      client: { id: clientId, origin: "configured" },
      tokens: tokensFrom(answer, clock, scope),
      asked: askedBy(settings),
      ...(before?.missed === undefined ? {} : { missed: before.missed }),
    };
  } catch (error) {
    throw oauthFailure(sdk, error, at.issuer);
  }
}

/** Two settings that ask for different things differ in this. */
export function askedBy({ scopes, tokenUrl }: ClientCredentialsSettings): string {
  return [...(scopes ?? []), ...(tokenUrl === undefined ? [] : [tokenUrl])].join(" ");
}

async function authorizationServer(
  sdk: OAuthSdk,
  url: string,
  settings: ClientCredentialsSettings,
  challenge: Challenge | null,
  fetchFn: OAuthFetch,
): Promise<AuthorizationServer> {
  const { tokenUrl, issuer } = settings;
  if (tokenUrl === undefined) return discover({ sdk, url, fetchFn, challenge, issuer });
  const endpoint = new URL(tokenUrl);
  const name = issuer ?? endpoint.origin;
  const metadata: OAuthMetadata = {
    issuer: name,
    token_endpoint: endpoint.href,
    authorization_endpoint: endpoint.href,
    response_types_supported: [],
  };
  return { issuer: name, metadata, resource: addressOf(url), scopes: [] };
}
