/** What the hub is called as an OAuth resource: the metadata that says so (RFC 9728), and which audiences mean it. */
import type { ResourceServerSettings } from "../../../model/http-config.ts";

export const METADATA_PATH = "/.well-known/oauth-protected-resource";

/** @param base Address of the hub as the client knows it, without a slash at its end. */
export function resourceMetadata(base: string, path: string, settings: ResourceServerSettings): object {
  return {
    resource: base + path,
    authorization_servers: [settings.issuer],
    scopes_supported: scopeNames(settings, ["read", "call"]),
    bearer_methods_supported: ["header"],
    resource_name: "Toolcrib",
  };
}

/** The scopes to ask the authorization server for. */
export function scopeNames(
  settings: ResourceServerSettings,
  scopes: readonly (keyof ResourceServerSettings["scopes"])[],
): string[] {
  return scopes.flatMap((scope) => {
    const name = settings.scopes[scope];
    return typeof name === "string" ? [name] : [];
  });
}

/**
 * Whether a token for this audience is meant for us. The addresses are fixed and never taken from the Host header: a
 * client that could choose it could make a token for somebody else fit.
 */
export function isAudience(audience: string, bases: readonly string[], paths: readonly string[]): boolean {
  const url = URL.parse(audience);
  if (url === null || url.search !== "" || url.hash !== "") return false;
  const path = url.pathname.replace(/\/$/, "");
  return bases.some((base) => {
    const own = new URL(base);
    const prefix = own.pathname.replace(/\/$/, "");
    if (own.origin !== url.origin || !path.startsWith(prefix)) return false;
    const rest = path.slice(prefix.length);
    return rest === "" || paths.some((each) => rest === each || rest.startsWith(`${each}/`));
  });
}
