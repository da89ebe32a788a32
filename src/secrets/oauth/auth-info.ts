import type { AuthInfo } from "../../model/server-state.ts";
import { type Grant, isOver } from "./grant.ts";

/** A login that cannot be renewed by itself is pointed out this long before its end. */
const WARN_MS = 24 * 60 * 60_000;

export function authInfo(type: AuthInfo["type"], grant: Grant | undefined, now: number): AuthInfo {
  const tokens = grant?.tokens;
  // A program gets itself a new token whenever it needs one.
  if (tokens === undefined) return { type, state: type === "oauth" ? "login_needed" : "ok" };
  const { expiresAt } = tokens;
  if (expiresAt === undefined) return { type, state: "ok" };
  const renews = type === "client-credentials" || tokens.refresh !== undefined;
  const state = renews
    ? "ok"
    : isOver(tokens, now)
      ? "login_needed"
      : expiresAt - now < WARN_MS
        ? "expires_soon"
        : "ok";
  return { type, expiresAt: new Date(expiresAt).toISOString(), state };
}
