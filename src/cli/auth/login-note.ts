import type { ServerInfo } from "../../model/server-state.ts";
import { loginCommand } from "../../secrets/oauth/failures.ts";

/** What to say of a login before it ends and cannot be renewed; a login that is over already is the server's failure. */
export function loginNote({ id, auth }: ServerInfo): { readonly message: string; readonly hint: string } | undefined {
  if (auth?.state !== "expires_soon" || auth.expiresAt === undefined) return undefined;
  const command = loginCommand(id);
  return { message: `the login ends at ${auth.expiresAt}; renew it: ${command}`, hint: `Run ${command} before that.` };
}
