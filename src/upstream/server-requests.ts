/** Who answers when a server asks something: the client whose call is in flight, or nobody. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND } from "../model/rpc.ts";
import type { ClientSide } from "../model/session.ts";
import { refusal } from "./rpc-error.ts";

/** Has one client answer one request of a server. What it throws carries the JSON-RPC error for the server. */
export async function answerServer(
  server: string,
  client: ClientSide,
  method: string,
  params: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  switch (method) {
    case "roots/list":
      // The server may have been told of roots for the sake of other clients; this one has none.
      return client.listRoots === undefined ? { roots: [] } : client.listRoots({ server, signal });
    case "sampling/createMessage":
      if (client.sample === undefined) throw unanswered(method, "onSample");
      return client.sample(params, { server, signal });
    case "elicitation/create":
      if (client.elicit === undefined) throw unanswered(method, "onElicit");
      if (params["mode"] === "url" && !takesUrls(client)) {
        throw refusal(INVALID_PARAMS, "Elicitation by url is not supported here; only forms are.");
      }
      return client.elicit(params, { server, signal });
    default:
      throw refusal(METHOD_NOT_FOUND, `Toolcrib does not know the method ${method}.`);
  }
}

function takesUrls({ capabilities }: ClientSide): boolean {
  const { elicitation } = capabilities;
  return isJsonObject(elicitation) && elicitation["url"] !== undefined;
}

function unanswered(method: string, option: string): ToolcribError {
  return refusal(
    METHOD_NOT_FOUND,
    `Nobody here answers ${method}: the caller's client cannot, and the session has no ${option} callback.`,
    `Use a client that answers ${method}; in a program, give ${option}.`,
  );
}

/**
 * A legacy server's request names no call of ours. The stream it came on may; otherwise the one client with calls in
 * flight is meant. Between several there is no telling, and a guess could hand one user's data to another.
 */
export function clientFor(
  related: ClientSide | undefined,
  callers: readonly ClientSide[],
  hubClient: ClientSide,
): ClientSide {
  if (related !== undefined) return related;
  if (callers.length > 1) {
    throw refusal(
      INVALID_REQUEST,
      `${callers.length} sessions share this connection and have calls in flight, so it is unclear which one is asked. ` +
        `Set isolation: "session" for this server.`,
    );
  }
  return callers[0] ?? hubClient;
}
