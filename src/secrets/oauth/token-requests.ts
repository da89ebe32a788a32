/** Which OAuth client Toolcrib is at an authorization server: a configured one, a metadata document, or registered by itself. */
import type { OAuthClientInformationMixed, OAuthMetadata } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ClientCredentialsSettings, OAuthSettings } from "../../model/server-spec.ts";
import {
  type AuthorizationServer,
  type Challenge,
  discoverAuthorizationServer,
  isSameIssuer,
  readMetadata,
  unexpectedIssuerError,
} from "./authorization-server.ts";
import {
  addressOf,
  type Grant,
  type GrantClient,
  type GrantKey,
  type GrantStore,
  type Tokens,
  tokensFrom,
} from "./grants.ts";
import { loadOAuthSdk, type OAuthSdk, toOAuthError } from "./login-errors.ts";
import { loginFetch, type OAuthFetch } from "./oauth-fetch.ts";

interface ClientRequest {
  readonly sdk: OAuthSdk;
  readonly at: AuthorizationServer;
  readonly settings: OAuthSettings;
  readonly redirectUri: string;
  readonly scope: string | undefined;
  readonly fetchFn: OAuthFetch;
  /** From an earlier login at the same issuer. */
  readonly known: GrantClient | undefined;
}

export async function clientFor(request: ClientRequest): Promise<GrantClient> {
  const { sdk, at, settings, redirectUri, scope, fetchFn, known } = request;
  if (settings.clientId !== undefined) return { id: settings.clientId, origin: "configured", redirectUri };
  if (settings.clientMetadataUrl !== undefined && at.metadata?.client_id_metadata_document_supported === true) {
    if (!sdk.isHttpsUrl(settings.clientMetadataUrl)) {
      throw new ToolcribError("invalid_config", "auth.clientMetadataUrl must be an https address with a path.");
    }
    return { id: settings.clientMetadataUrl, origin: "document", redirectUri };
  }
  // A registration is for one redirect address; with another port it would be refused by most.
  if (known?.origin === "registered" && known.redirectUri === redirectUri) return known;
  if (at.metadata !== undefined && at.metadata.registration_endpoint === undefined) {
    throw new ToolcribError("unauthorized", `${new URL(at.issuer).host} takes no clients that register themselves`, {
      hint: "Register a client there by hand and set `auth.clientId`, and `auth.clientSecret` if it has one.",
      details: { status: 401, sent: false },
    });
  }
  try {
    const registered = await sdk.registerClient(at.issuer, {
      metadata: at.metadata,
      clientMetadata: {
        client_name: "Toolcrib",
        redirect_uris: [redirectUri],
        application_type: new URL(redirectUri).protocol === "https:" ? "web" : "native",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      },
      scope,
      fetchFn,
    });
    return {
      id: registered.client_id,
      secret: registered.client_secret,
      authMethod: registered.token_endpoint_auth_method,
      origin: "registered",
      redirectUri,
    };
  } catch (error) {
    throw toOAuthError(sdk, error, at.issuer);
  }
}

/** In the SDK's words, with the configured secret where there is one. */
export function clientInformation(
  client: GrantClient,
  configuredSecret: string | undefined,
): OAuthClientInformationMixed {
  const secret = client.origin === "configured" ? configuredSecret : client.secret;
  return { client_id: client.id, client_secret: secret, token_endpoint_auth_method: client.authMethod };
}

interface ScopeSources {
  readonly configured: readonly string[] | undefined;
  /** From the server's challenge. */
  readonly challenged: string | undefined;
  /** Scopes that were missing before, with those that were granted. */
  readonly missed?: string | undefined;
  readonly at: AuthorizationServer;
}

/** Configured ones, else those of the challenge, else all that the server names; undefined lets the other side choose. */
export function scopesToAsk({ configured, challenged, missed, at }: ScopeSources): string | undefined {
  const base = configured?.join(" ") ?? challenged ?? at.scopes.join(" ");
  const asked = uniteScopes(base, missed);
  // Without it many servers issue no refresh token, and the user would have to log in every hour.
  const offline = asked !== undefined && at.metadata?.scopes_supported?.includes("offline_access") === true;
  return offline && configured === undefined ? uniteScopes(asked, "offline_access") : asked;
}

export function uniteScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const all = new Set(scopes.flatMap((scope) => (scope ?? "").split(/\s+/)).filter((scope) => scope !== ""));
  return all.size === 0 ? undefined : [...all].join(" ");
}

interface CredentialsRequest {
  readonly key: GrantKey;
  readonly settings: ClientCredentialsSettings;
  readonly clock: Clock;
  readonly challenge: Challenge | null;
  /** The last one: its issuer is the only one that gets the secret. */
  readonly before: Grant | undefined;
}

/** The client credentials grant: the program logs in as itself. */
export async function requestClientToken({
  key,
  settings,
  clock,
  challenge,
  before,
}: CredentialsRequest): Promise<Grant & { readonly tokens: Tokens }> {
  const sdk = await loadOAuthSdk();
  const fetchFn = loginFetch(key.url, settings);
  const at = await authorizationServer(sdk, key.url, settings, challenge, fetchFn);
  if (before !== undefined && settings.issuer === undefined && !isSameIssuer(before.issuer, at.issuer)) {
    throw unexpectedIssuerError(at.issuer, before.issuer, "the secret was given to");
  }
  const scope = scopesToAsk({
    configured: settings.scopes,
    challenged: challenge?.scope,
    missed: before?.missed,
    at: { ...at, metadata: undefined },
  });
  const { clientId, clientSecret } = settings;
  const provider = new sdk.ClientCredentialsProvider({ clientId, clientSecret, scope, expectedIssuer: at.issuer });
  try {
    const { metadata, resource } = at;
    const answer = await sdk.fetchToken(provider, at.issuer, { metadata, resource, scope, fetchFn });
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
      asked: requestedBy(settings),
      missed: before?.missed,
    };
  } catch (error) {
    throw toOAuthError(sdk, error, at.issuer);
  }
}

/** Two settings that ask for different things differ in this. */
export function requestedBy({ scopes, tokenUrl }: ClientCredentialsSettings): string {
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
  if (tokenUrl === undefined) return discoverAuthorizationServer({ sdk, url, fetchFn, challenge, issuer });
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

type Refreshed =
  | { readonly kind: "renewed"; readonly tokens: Tokens }
  /** Final: a new login is needed. `client`: the client itself is no longer known there. */
  | { readonly kind: "refused"; readonly what: "tokens" | "client" };

/** Rejects where it may work another time. Asks only the issuer that the token is from. */
export async function refreshTokens(
  grant: Grant,
  token: string,
  settings: OAuthSettings,
  clock: Clock,
): Promise<Refreshed> {
  const sdk = await loadOAuthSdk();
  const fetchFn = loginFetch(grant.url, settings);
  const metadata = await readMetadata(sdk, grant.issuer, fetchFn);
  try {
    const answer = await sdk.refreshAuthorization(grant.issuer, {
      metadata,
      clientInformation: clientInformation(grant.client, settings.clientSecret),
      refreshToken: token,
      resource: grant.resource,
      fetchFn,
    });
    return { kind: "renewed", tokens: tokensFrom(answer, clock, grant.tokens?.scope) };
  } catch (error) {
    if (error instanceof sdk.OAuthError) {
      if (error.code === "invalid_client" || error.code === "unauthorized_client")
        return { kind: "refused", what: "client" };
      if (error.code === "invalid_grant") return { kind: "refused", what: "tokens" };
    }
    throw toOAuthError(sdk, error, grant.issuer);
  }
}

interface LogoutResult {
  /** False if there was no login. */
  readonly removed: boolean;
  /** unsupported: the authorization server has no such endpoint. failed: it may still honour the tokens. */
  readonly revoked: "yes" | "unsupported" | "failed" | "nothing";
}

/** Ends a login: tokens are revoked where that can be done (RFC 7009), and forgotten in any case. */
export async function logout(key: GrantKey, store: GrantStore, settings?: OAuthSettings): Promise<LogoutResult> {
  // Under the lock, so that a refresh of another process does not bring back what is being removed.
  return store.locked(key, async () => {
    const grant = await store.read(key);
    const revoked =
      grant?.tokens === undefined ? "nothing" : await revoke(grant, settings).catch(() => "failed" as const);
    await store.remove(key);
    return { removed: grant !== undefined, revoked };
  });
}

async function revoke(grant: Grant, settings: OAuthSettings | undefined): Promise<LogoutResult["revoked"]> {
  const sdk = await loadOAuthSdk();
  const fetchFn = loginFetch(grant.url, settings);
  const metadata = await readMetadata(sdk, grant.issuer, fetchFn);
  const endpoint =
    metadata !== undefined && "revocation_endpoint" in metadata ? metadata.revocation_endpoint : undefined;
  if (typeof endpoint !== "string" || grant.tokens === undefined) return "unsupported";
  const client = clientInformation(grant.client, settings?.clientSecret);
  const { refresh, access } = grant.tokens;
  // The refresh token first: with it goes, at most servers, every access token made from it.
  const tokens = [...(refresh === undefined ? [] : [["refresh_token", refresh]]), ["access_token", access]];
  for (const [hint = "", token = ""] of tokens) {
    const body = new URLSearchParams({ token, token_type_hint: hint });
    const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
    if (client.client_secret === undefined || client.client_secret === "") body.set("client_id", client.client_id);
    else {
      const basic = Buffer.from(`${client.client_id}:${client.client_secret}`).toString("base64");
      headers.set("authorization", `Basic ${basic}`);
    }
    const response = await fetchFn(endpoint, { method: "POST", headers, body });
    if (!response.ok) return "failed";
  }
  return "yes";
}
