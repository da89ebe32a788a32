/** Errors of logins, with what to do next. Nothing that an authorization server sent is trusted. */
import { ToolcribError } from "../../model/errors.ts";
import type { GrantKey } from "./grants.ts";

/** The reason in the state of a server without a login. */
export function loginNeededError({ server, user }: Omit<GrantKey, "url">, why?: string): ToolcribError {
  const command = loginCommand(server, user);
  return new ToolcribError("unauthorized", `login needed: ${command}${why === undefined ? "" : ` (${why})`}`, {
    hint: `Run ${command}; a running hub uses the login from its next call on.`,
    details: { status: 401, sent: false, loginNeeded: true, server },
  });
}

export function isLoginNeeded(error: unknown): boolean {
  return error instanceof ToolcribError && error.details?.["loginNeeded"] === true;
}

export function loginCommand(server: string, user?: string): string {
  const quote = (word: string): string => (/^[\w.@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  return `toolcrib auth login ${quote(server)}${user === undefined ? "" : ` --user ${quote(user)}`}`;
}

/** Anything that the SDK or fetch threw. `issuer` is where it came from. */
export function toOAuthError(sdk: OAuthSdk, thrown: unknown, issuer: string): ToolcribError {
  if (thrown instanceof ToolcribError) return thrown;
  const from = URL.parse(issuer)?.host ?? "the authorization server";
  const refused = (text: string, hint?: string): ToolcribError =>
    new ToolcribError("unauthorized", text, { hint, details: { status: 401, sent: false } });
  if (thrown instanceof sdk.IssuerMismatchError) {
    return refused(
      `the answer is not from the authorization server that was asked (${from})`,
      "Do not go on: try again.",
    );
  }
  if (thrown instanceof sdk.RegistrationRejectedError) {
    const hint = "Register a client there by hand and set `auth.clientId`.";
    return refused(`${from} does not let Toolcrib register itself (HTTP ${thrown.status})`, hint);
  }
  if (thrown instanceof sdk.OAuthError && thrown.code !== "server_error") {
    return refused(`${from} refused: ${printable(thrown.code)}`, hintFor(thrown.code));
  }
  // fetch wraps what happened on the network; everything else is a response that no authorization server should send.
  const isTimeout = thrown instanceof DOMException && /^(?:Timeout|Abort)Error$/.test(thrown.name);
  if (thrown instanceof TypeError || isTimeout) {
    return new ToolcribError("server_unavailable", `the authorization server ${from} cannot be reached`, {
      hint: "Check the network; then try again.",
      details: { sent: false },
    });
  }
  return new ToolcribError("server_unavailable", `the authorization server ${from} sent an unusable response`, {
    hint: "Try again later, or ask its operator.",
    details: { sent: false },
  });
}

function hintFor(code: string): string | undefined {
  if (code === "invalid_client" || code === "unauthorized_client")
    return "Check `auth.clientId` and `auth.clientSecret`.";
  if (code === "invalid_scope") return "Check `auth.scopes`.";
  return undefined;
}

/** A code of RFC 6749, or anything else that was received. */
export function printable(code: string): string {
  return code.replace(/[^\x20-\x7e]/g, "?").slice(0, 80);
}

/** The official SDK, whose OAuth functions are used. Loaded when first needed: it is large, and most servers need none. */
export type OAuthSdk = typeof import("@modelcontextprotocol/client");

export function loadOAuthSdk(): Promise<OAuthSdk> {
  return import("@modelcontextprotocol/client");
}
