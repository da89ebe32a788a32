/** Ends a login: tokens are revoked where that can be done (RFC 7009), and forgotten in any case. */
import type { OAuthSettings } from "../../model/server-spec.ts";
import { clientInformation } from "./client.ts";
import { readMetadata } from "./discover.ts";
import type { Grant } from "./grant.ts";
import type { GrantKey, GrantStore } from "./grant-store.ts";
import { LoginReach } from "./login-reach.ts";
import { oauthFetch } from "./oauth-fetch.ts";
import { loadOAuthSdk } from "./sdk.ts";

export interface LogoutResult {
  /** False if nobody was logged in. */
  readonly removed: boolean;
  /** unsupported: the authorization server has no such endpoint. failed: it may still honour the tokens. */
  readonly revoked: "yes" | "unsupported" | "failed" | "nothing";
}

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
  const fetchFn = oauthFetch(new LoginReach(new URL(grant.url), { named: settings }));
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
