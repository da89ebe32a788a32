/** Ids of sessions that callers of REST opened, in a cluster: each is at one node. */
import type { OperationName } from "../../../../contract/operations.ts";
import type { OwnedIds } from "../../../../hub/cluster/owned-ids.ts";
import { ToolcribError } from "../../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import type { HttpExchange } from "../../exchange.ts";

interface Named {
  readonly id: string;
  readonly key: "session" | "sessionId";
}

/** The input with the name that the session has here; undefined if another node has answered. */
export async function namedHere(
  ids: OwnedIds | undefined,
  exchange: HttpExchange,
  operation: OperationName,
  input: JsonObject,
): Promise<JsonObject | undefined> {
  const named = nameIn(operation, input);
  if (ids === undefined || named === undefined) return input;
  const place = await ids.find("rest", named.id);
  // What nobody knows is looked for as it is; ids that listings show are those of the hub.
  if (place === undefined) return input;
  if ("here" in place) return { ...input, [named.key]: place.here };
  switch (await exchange.handOn?.(place.node)) {
    case "answered":
      return undefined;
    case "away":
      throw new ToolcribError("server_unavailable", "The node that has this session cannot be reached now.", {
        hint: "Try again soon.",
      });
    default:
      return input;
  }
}

/** What an operation answers, with ids that every node understands. */
export function namedForAll(
  ids: OwnedIds | undefined,
  operation: OperationName,
  given: JsonObject,
  output: unknown,
): unknown {
  if (ids === undefined || !isJsonObject(output)) return output;
  if (operation === "closeSession") return { ...output, sessionId: given["sessionId"] };
  if (operation !== "openSession" || typeof output["sessionId"] !== "string") return output;
  const id = ids.issue("rest", output["sessionId"]);
  return { ...output, id, sessionId: id };
}

/** Where an operation's input names a session. */
export function nameIn(operation: OperationName, { session, sessionId }: JsonObject): Named | undefined {
  if (operation === "getSession" || operation === "closeSession") {
    return typeof sessionId === "string" ? { id: sessionId, key: "sessionId" } : undefined;
  }
  return typeof session === "string" ? { id: session, key: "session" } : undefined;
}
