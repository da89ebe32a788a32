/** The login that a remote server is used with, if any, and what to say where one is missing. */
import { ToolcribError } from "../model/errors.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { loginNeeded } from "../secrets/oauth/failures.ts";
import { offersOAuth } from "../secrets/oauth/offers-oauth.ts";
import type { ResolvedSpec } from "../secrets/resolve-spec.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { WireCredentials } from "./http/authorized-client.ts";

export async function credentialsFor(
  spec: ServerSpec,
  resolved: ResolvedSpec,
  deps: ConnectionDeps,
): Promise<WireCredentials | undefined> {
  if (resolved.url === undefined || deps.oauth === undefined || hasOwnCredentials(spec, resolved)) return undefined;
  const { auth } = resolved;
  const settings = auth?.type === "oauth" || auth?.type === "client-credentials" ? auth : undefined;
  return deps.oauth.credentialsFor({ server: spec.id, url: resolved.url, user: deps.user }, settings);
}

/** A server that nobody set up a login for may still want one; its refusal then says how to get it. */
export async function withLoginAdvice(
  error: unknown,
  spec: ServerSpec,
  resolved: ResolvedSpec,
  deps: ConnectionDeps,
): Promise<unknown> {
  if (!(error instanceof ToolcribError) || error.details?.["status"] !== 401) return error;
  if (resolved.url === undefined || hasOwnCredentials(spec, resolved)) return error;
  // Nobody logs in to what a client brought, and it must not have us ask around.
  if (deps.reach !== undefined) return error;
  const challenge = error.details["challenge"];
  if (!(await offersOAuth(resolved.url, typeof challenge === "string" ? challenge : undefined))) return error;
  const key = { server: spec.id, url: resolved.url, user: deps.user };
  deps.oauth?.awaitLogin(key);
  return loginNeeded(key);
}

/** A token or key of the config: it is used as it is, and a refusal is about it. */
function hasOwnCredentials(spec: ServerSpec, { headers }: ResolvedSpec): boolean {
  if (spec.auth?.type === "oauth" || spec.auth?.type === "client-credentials") return false;
  return spec.auth !== undefined || Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}
