/** The official SDK, whose OAuth functions are used. Loaded when first needed: it is large, and most servers need none. */
export type OAuthSdk = typeof import("@modelcontextprotocol/client");

export function loadOAuthSdk(): Promise<OAuthSdk> {
  return import("@modelcontextprotocol/client");
}
