/** Exchanges about something that another node of the cluster has. */
import type { IdKind, OwnedIds } from "../../../hub/cluster/owned-ids.ts";
import type { RequestId } from "../../../model/rpc.ts";
import { type McpExchange, refuseToolcrib } from "./exchange.ts";

/**
 * True if it was answered: by the node that has it, or because that node cannot be reached now. What nobody has, or somebody
 * who is gone, is to be looked for here and not found.
 */
export async function isElsewhere(
  ids: OwnedIds | undefined,
  exchange: McpExchange,
  kind: IdKind,
  id: string | null | undefined,
  request: RequestId | null,
): Promise<boolean> {
  if (ids === undefined || id === null || id === undefined || exchange.handOn === undefined) return false;
  const place = await ids.find(kind, id);
  if (place === undefined || !("node" in place)) return false;
  switch (await exchange.handOn(place.node)) {
    case "answered":
      return true;
    case "gone":
      return false;
    case "away":
      // Not 404, after which clients give up a session that may be alive.
      refuseToolcrib(exchange.response, request, {
        code: "server_unavailable",
        message: "The node that has this session cannot be reached now.",
        hint: "Try again soon.",
      });
      return true;
  }
}
