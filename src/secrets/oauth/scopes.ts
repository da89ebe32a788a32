/** Which scopes to ask for. */
import type { AuthorizationServer } from "./discover.ts";

interface ScopeSources {
  readonly configured: readonly string[] | undefined;
  /** From the server's challenge. */
  readonly challenged: string | undefined;
  /** What the server missed before, with what it had. */
  readonly missed?: string | undefined;
  readonly at: AuthorizationServer;
}

/** Configured ones, else those of the challenge, else all that the server names; undefined lets the other side choose. */
export function scopesToAsk({ configured, challenged, missed, at }: ScopeSources): string | undefined {
  const base = configured?.join(" ") ?? challenged ?? at.scopes.join(" ");
  const asked = unite(base, missed);
  // Without it many give no refresh token, and somebody would have to log in every hour.
  const offline = asked !== undefined && at.metadata?.scopes_supported?.includes("offline_access") === true;
  return offline && configured === undefined ? unite(asked, "offline_access") : asked;
}

export function unite(...scopes: readonly (string | undefined)[]): string | undefined {
  const all = new Set(scopes.flatMap((scope) => (scope ?? "").split(/\s+/)).filter((scope) => scope !== ""));
  return all.size === 0 ? undefined : [...all].join(" ");
}
