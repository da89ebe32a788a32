/** What to do about a failed call: whether the link must be made anew, and whether the call may run once more. */
import { ToolcribError } from "../model/errors.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import { rpcOf } from "./rpc-error.ts";

interface FailedCall {
  readonly use: Use;
  readonly tool: ToolDefinition | undefined;
  readonly transport: TransportKind;
  readonly restart: ServerSpec["restart"];
}

export interface Remedy {
  readonly reconnect: boolean;
  readonly retry: boolean;
}

const NONE: Remedy = { reconnect: false, retry: false };

export function remedyFor(error: unknown, { use, tool, transport, restart }: FailedCall): Remedy {
  if (!(error instanceof ToolcribError)) return NONE;
  if (error.code === "timeout") return { reconnect: restart !== false && restart.onTimeout, retry: false };
  // A server that answers 404 for the session did not run the call: the wire then says that it was not sent.
  const safe = error.details?.["sent"] === false || isRepeatable(use, tool);
  if (isSessionLost(error)) return { reconnect: true, retry: safe };
  const lostOnTheWay = error.code === "server_unavailable" && rpcOf(error) === undefined;
  return { reconnect: false, retry: transport !== "stdio" && lostOnTheWay && safe };
}

/** The server is there, but does not know our HTTP session any more. */
export function isSessionLost(error: unknown): boolean {
  return error instanceof ToolcribError && error.details?.["sessionLost"] === true;
}

/** Whether nothing reaches the server any more, so that it is worth finding out how it is. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ToolcribError && error.code === "server_unavailable" && error.details?.["sent"] === false;
}

/** Whether a use may be run twice without harm, as far as the server tells. */
function isRepeatable(use: Use, tool: ToolDefinition | undefined): boolean {
  if (use.kind !== "tool") return true;
  const hints = tool?.annotations;
  return hints?.readOnlyHint === true || hints?.idempotentHint === true;
}
