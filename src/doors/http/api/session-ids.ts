/** Ids of sessions that callers of REST opened, in a cluster: each is at one node. */
import type { OperationName } from "../../../contract/operations.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { CHECK_BEFORE_RETRY, OUTCOME_UNKNOWN, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { HttpExchange } from "../http-exchange.ts";
import type { Operations } from "./run-operation.ts";

interface SessionReference {
  readonly id: string;
  readonly key: "session" | "sessionId" | "parent";
}

/** Lets the node answer at which the named session or login is; undefined if it has. */
export async function toOwner(
  ids: RoutableIds | undefined,
  exchange: HttpExchange,
  operation: OperationName,
  input: JsonObject,
): Promise<JsonObject | undefined> {
  if (operation !== "finishLogin") return toLocalSession(ids, exchange, operation, input);
  const { query } = input;
  const state = new URLSearchParams(typeof query === "string" ? query : "").get("state") ?? "";
  const place = await ids?.find("login", state);
  if (place === undefined || "here" in place) return input;
  return (await forwarded(exchange, place.node, "login")) ? undefined : input;
}

/** The input with the session's local id; undefined if another node has answered. */
async function toLocalSession(
  ids: RoutableIds | undefined,
  exchange: HttpExchange,
  operation: OperationName,
  input: JsonObject,
): Promise<JsonObject | undefined> {
  const named = sessionReference(operation, input);
  if (ids === undefined || named === undefined) return input;
  const place = await ids.find("rest", named.id);
  // An unknown id is looked up as it is; listings show the hub's own ids.
  if (place === undefined) return input;
  if ("here" in place) return { ...input, [named.key]: place.here };
  return (await forwarded(exchange, place.node, "session")) ? undefined : input;
}

/** False if the node has ended, and what it had with it. */
async function forwarded(exchange: HttpExchange, node: string, what: "session" | "login"): Promise<boolean> {
  switch (await exchange.forwardTo?.(node)) {
    case "answered":
      return true;
    case "away":
      throw new ToolcribError("server_unavailable", `The node that has this ${what} cannot be reached at the moment.`, {
        hint: "Try again soon.",
      });
    case "lost":
      throw new ToolcribError(
        "server_unavailable",
        `The node that has this ${what} stopped before it had answered. ${OUTCOME_UNKNOWN}`,
        { hint: CHECK_BEFORE_RETRY, details: { outcome: "unknown" } },
      );
    default:
      return false;
  }
}

/** The output of an operation, with ids that every node understands. */
export function withClusterIds(
  ids: RoutableIds | undefined,
  operation: OperationName,
  given: JsonObject,
  output: unknown,
): unknown {
  if (ids === undefined || !isJsonObject(output)) return output;
  if (operation === "closeSession" || operation === "clearTaint") return { ...output, sessionId: given["sessionId"] };
  if (operation !== "openSession" || typeof output["sessionId"] !== "string") return output;
  const id = ids.issue("rest", output["sessionId"]);
  return { ...output, id, sessionId: id };
}

/** Where an operation's input names a session. */
function sessionReference(
  operation: OperationName,
  { session, sessionId, parent }: JsonObject,
): SessionReference | undefined {
  if (operation === "openSession") return typeof parent === "string" ? { id: parent, key: "parent" } : undefined;
  if (operation === "getSession" || operation === "closeSession" || operation === "clearTaint") {
    return typeof sessionId === "string" ? { id: sessionId, key: "sessionId" } : undefined;
  }
  return typeof session === "string" ? { id: session, key: "session" } : undefined;
}

type SessionIdLookup = Pick<RoutableIds, "findAtOnce">;

/** The local id of a session. An id that REST did not issue stays as it is. */
export function localSessionId(ids: SessionIdLookup | undefined, id: string): string {
  const place = ids?.findAtOnce("rest", id);
  if (place === undefined) return id;
  if ("here" in place) return place.here;
  const message = "This session is at another node; a WebSocket reaches only sessions of its own node.";
  const hint = "Use it over REST, which works at every node, or open a session on this connection.";
  throw new ToolcribError("not_found", message, { hint });
}

/** Ids of sessions that REST gave out in a cluster, for sockets: a socket reaches the sessions of its own node. */
export function withLocalSessionIds(
  ids: SessionIdLookup | undefined,
  operations: Pick<Operations, "run">,
): Pick<Operations, "run"> {
  if (ids === undefined) return operations;
  return {
    async run(operation, input, context) {
      const named = isJsonObject(input) ? sessionReference(operation, input) : undefined;
      if (named === undefined || !isJsonObject(input)) return operations.run(operation, input, context);
      const local = { ...input, [named.key]: localSessionId(ids, named.id) };
      const output = await operations.run(operation, local, context);
      return operation === "closeSession" && isJsonObject(output) ? { ...output, sessionId: named.id } : output;
    },
  };
}
