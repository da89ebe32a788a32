/** One use of a refresh token. The caller makes sure that nobody else uses it at the same time. */
import type { Clock } from "../../model/clock.ts";
import type { OAuthSettings } from "../../model/server-spec.ts";
import { clientInformation } from "./client.ts";
import { readMetadata } from "./discover.ts";
import { oauthFailure } from "./failures.ts";
import { type Grant, type Tokens, tokensFrom } from "./grant.ts";
import { LoginReach } from "./login-reach.ts";
import { oauthFetch } from "./oauth-fetch.ts";
import { loadOAuthSdk } from "./sdk.ts";

export type Refreshed =
  | { readonly kind: "renewed"; readonly tokens: Tokens }
  /** Over for good: somebody has to log in. `client`: not even the client is known there any more. */
  | { readonly kind: "refused"; readonly what: "tokens" | "client" };

/** Rejects where it may work another time. Asks only the issuer that the token is from. */
export async function refresh(grant: Grant, token: string, settings: OAuthSettings, clock: Clock): Promise<Refreshed> {
  const sdk = await loadOAuthSdk();
  const fetchFn = oauthFetch(new LoginReach(new URL(grant.url), { named: settings }));
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
    throw oauthFailure(sdk, error, grant.issuer);
  }
}
