/** The authorization code flow with PKCE: a person logs in with a browser, and the tokens are kept. */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { OAuthSettings } from "../../model/server-spec.ts";
import type { Redactor } from "../redactor.ts";
import { type Challenge, readChallenge } from "./challenge.ts";
import { clientFor, clientInformation } from "./client.ts";
import { type AuthorizationServer, discover, otherIssuer, sameIssuer } from "./discover.ts";
import { oauthFailure, printable } from "./failures.ts";
import { type Grant, type GrantClient, tokensFrom } from "./grant.ts";
import { addressOf, type GrantKey, type GrantStore } from "./grant-store.ts";
import { LoginReach } from "./login-reach.ts";
import { LoopbackRedirect } from "./loopback-redirect.ts";
import { oauthFetch, type OAuthFetch } from "./oauth-fetch.ts";
import { scopesToAsk } from "./scopes.ts";
import { loadOAuthSdk, type OAuthSdk } from "./sdk.ts";

const TIMEOUT_MS = 5 * 60_000;

export interface LoginRequest {
  readonly key: GrantKey;
  /** With references resolved. */
  readonly settings: OAuthSettings;
  readonly store: GrantStore;
  readonly clock: Clock;
  readonly redactor: Redactor;
  /** Gets the person to this address, which is https or on this machine. */
  readonly onAuthorize: (url: URL) => void;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** Resolves when the tokens are stored. */
export async function login(request: LoginRequest): Promise<Grant> {
  const { key, settings, store, signal } = request;
  const sdk = await loadOAuthSdk();
  const reach = new LoginReach(new URL(key.url), { named: settings });
  const fetchFn = oauthFetch(reach, signal);
  const challenge = await askForChallenge(key.url, fetchFn);
  const at = await discover({ sdk, url: key.url, fetchFn, challenge, issuer: settings.issuer });
  const before = await store.read(key);
  const known = before !== undefined && sameIssuer(before.issuer, at.issuer) ? before : undefined;
  // A client registered by hand belongs to one authorization server; its secret must not be shown to whoever is named next.
  if (before !== undefined && known === undefined && settings.clientId !== undefined && settings.issuer === undefined) {
    throw otherIssuer(at.issuer, before.issuer, "the last login was at");
  }
  const redirect = await openRedirect(settings.redirectPort, known?.client);
  try {
    const scope = scopesToAsk({
      configured: settings.scopes,
      challenged: challenge?.scope,
      missed: known?.missed,
      at,
    });
    const common = { sdk, at, settings, fetchFn, scope, redirectUri: redirect.uri };
    const client = await clientFor({ ...common, known: known?.client });
    const answer = await authorize(request, { ...common, client, redirect, reach });
    for (const secret of [answer.access_token, answer.refresh_token])
      if (secret) request.redactor.addCredential(secret);
    const grant: Grant = {
      version: 1,
      type: "oauth",
      server: key.server,
      url: addressOf(key.url),
      user: key.user,
      issuer: at.issuer,
      resource: at.resource,
      client,
      tokens: tokensFrom(answer, request.clock, scope),
      asked: scope,
    };
    await store.locked(key, () => store.write(grant));
    return grant;
  } finally {
    await redirect.close();
  }
}

interface Flow {
  readonly sdk: OAuthSdk;
  readonly at: AuthorizationServer;
  readonly settings: OAuthSettings;
  readonly fetchFn: OAuthFetch;
  readonly scope: string | undefined;
  readonly client: GrantClient;
  readonly redirect: LoopbackRedirect;
  readonly reach: LoginReach;
}

async function authorize(request: LoginRequest, flow: Flow): ReturnType<OAuthSdk["exchangeAuthorization"]> {
  const { sdk, at, scope, client, redirect, fetchFn } = flow;
  const metadata = at.metadata === undefined ? {} : { metadata: at.metadata };
  const information = clientInformation(client, flow.settings.clientSecret);
  const state = randomBytes(32).toString("base64url");
  try {
    const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(at.issuer, {
      ...metadata,
      clientInformation: information,
      redirectUrl: redirect.uri,
      ...(scope === undefined ? {} : { scope }),
      state,
      resource: at.resource,
    });
    // It goes to the program that opens addresses, which would open a file or start a program just as well.
    await flow.reach.admit(authorizationUrl);
    const { timeoutMs = TIMEOUT_MS, signal } = request;
    const waiting = redirect.wait({ state, timeoutMs, signal });
    request.onAuthorize(authorizationUrl);
    const params = await waiting;
    const iss = params.get("iss") ?? undefined;
    sdk.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: at.metadata?.issuer,
      issParameterSupported: at.metadata?.authorization_response_iss_parameter_supported === true,
    });
    const code = params.get("code");
    if (code === null) throw refusal(params.get("error"));
    request.redactor.addCredential(code);
    return await sdk.exchangeAuthorization(at.issuer, {
      ...metadata,
      clientInformation: information,
      authorizationCode: code,
      ...(iss === undefined ? {} : { iss }),
      codeVerifier,
      redirectUri: redirect.uri,
      resource: at.resource,
      fetchFn,
    });
  } catch (error) {
    throw oauthFailure(sdk, error, at.issuer);
  }
}

/** The same port as last time where it can be had, so that the registration of last time still holds. */
async function openRedirect(port: number | undefined, known: GrantClient | undefined): Promise<LoopbackRedirect> {
  if (port !== undefined || known?.redirectUri === undefined) return LoopbackRedirect.open(port);
  return LoopbackRedirect.open(Number(new URL(known.redirectUri).port)).catch(() => LoopbackRedirect.open(undefined));
}

/** A request that changes nothing, to be told which login is wanted. Servers without the header are found otherwise. */
async function askForChallenge(url: string, fetchFn: OAuthFetch): Promise<Challenge | null> {
  const response = await fetchFn(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "ping" }),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  return response?.status === 401 ? readChallenge(response.headers.get("www-authenticate") ?? undefined) : null;
}

function refusal(error: string | null): ToolcribError {
  const said = error === null ? "" : `: ${printable(error)}`;
  return new ToolcribError("unauthorized", `The login was refused${said}.`, {
    hint: error === "access_denied" ? "Start it again and agree to it in the browser." : undefined,
  });
}
