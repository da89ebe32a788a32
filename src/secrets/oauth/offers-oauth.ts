/** Whether a server that refused us for want of a token tells where one is to be had. Needs no SDK. */
import { isJsonObject } from "../../model/json.ts";
import { readChallenge } from "./challenge.ts";
import { LoginReach } from "./login-reach.ts";
import { oauthFetch } from "./oauth-fetch.ts";

const TIMEOUT_MS = 5000;

export async function offersOAuth(url: string, wwwAuthenticate: string | undefined): Promise<boolean> {
  if (readChallenge(wwwAuthenticate)?.resourceMetadata !== undefined) return true;
  const server = new URL(url);
  const fetchFn = oauthFetch(new LoginReach(server), AbortSignal.timeout(TIMEOUT_MS));
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
