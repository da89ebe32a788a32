/** Who answers when a server asks something: the session whose call is in flight, or nobody. */
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { SessionContext } from "../model/session.ts";
import { INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, refusal } from "./rpc-error.ts";

/** Answers one request of a server for one session. What it throws carries the JSON-RPC error for the server. */
export async function answerServer(
  server: string,
  session: SessionContext,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  switch (method) {
    case "roots/list":
      return { roots: [...session.roots] };
    case "sampling/createMessage":
      if (session.onSample === undefined) throw noCallback(method, "onSample");
      return session.onSample(params, { server, signal });
    case "elicitation/create":
      if (session.onElicit === undefined) throw noCallback(method, "onElicit");
      if (params["mode"] === "url") {
        throw refusal(INVALID_PARAMS, "Elicitation by url is not supported here; only forms are.");
      }
      return session.onElicit(params, { server, signal });
    default:
      throw refusal(METHOD_NOT_FOUND, `Toolcrib does not know the method ${method}.`);
  }
}

function noCallback(method: string, option: string): ToolcribError {
  return refusal(
    METHOD_NOT_FOUND,
    `Nobody here answers ${method}: the session has no ${option} callback.`,
    `Give ${option}.`,
  );
}

/**
 * A legacy server's request names no call of ours. The stream it came on may; otherwise the one session with calls in
 * flight is meant. Between several there is no telling, and a guess could hand one user's data to another.
 */
export function sessionFor(
  related: SessionContext | undefined,
  callers: readonly SessionContext[],
  hubSession: SessionContext,
): SessionContext {
  if (related !== undefined) return related;
  if (callers.length > 1) {
    throw refusal(
      INVALID_REQUEST,
      `${callers.length} sessions share this connection and have calls in flight, so it is unclear which one is asked. ` +
        `Set isolation: "session" for this server.`,
    );
  }
  return callers[0] ?? hubSession;
}
