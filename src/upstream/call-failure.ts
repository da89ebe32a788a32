import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import { loginNeeded } from "../secrets/oauth/failures.ts";
import { rpcOf } from "./rpc-error.ts";

/** Why a call cannot even be tried in this state. Who lacks a login is told so in our own words, fit for anyone to see. */
export function unavailable({ id, auth }: ServerInfo, state: ServerState, user?: string): ToolcribError {
  if (auth?.state === "login_needed") return loginNeeded({ server: id, user });
  const hint = "hint" in state ? state.hint : HINTS[state.kind];
  const reason = "reason" in state ? `: ${state.reason}` : "";
  return new ToolcribError("server_unavailable", `Server ${JSON.stringify(id)} is ${state.kind}${reason}`, {
    hint,
    details: { server: id, state: state.kind, sent: false },
  });
}

/** For a call that came after the server was taken out of service. */
export function removed(id: string): ToolcribError {
  return new ToolcribError("server_unavailable", `Server ${JSON.stringify(id)} was removed or replaced.`, {
    hint: "List the tools again.",
    details: { server: id, sent: false },
  });
}

const HINTS: Partial<Record<ServerState["kind"], string>> = {
  disabled: "Enable it in the config.",
  restarting: "It is being restarted; try again shortly.",
  failed: "`toolcrib doctor` says more; connect it again after mending it.",
};

/**
 * A failed call as its caller sees it. What the server itself answered stays as it came; what Toolcrib says of the
 * server gets the server's name and loses secrets, because it may quote the server's stderr.
 */
export function maskError(thrown: unknown, id: string, mask: (text: string) => string): ToolcribError {
  const error = asToolcribError(thrown);
  if (rpcOf(error) !== undefined) return error;
  const { code, details } = error;
  const isNamed = code !== "server_unavailable" || details?.["server"] === id;
  const message = isNamed ? error.message : `Server ${JSON.stringify(id)}: ${error.message}`;
  const hint = error.hint === undefined ? undefined : mask(error.hint);
  return new ToolcribError(code, mask(message), { hint, details, cause: error });
}
