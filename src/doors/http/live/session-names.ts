/** Ids of sessions that REST gave out in a cluster, for sockets: a socket reaches the sessions of its own node. */
import type { OwnedIds } from "../../../hub/cluster/owned-ids.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { Operations } from "../api/operations.ts";
import { nameIn } from "../api/rest/named-sessions.ts";

type Ids = Pick<OwnedIds, "findAtOnce">;

/** What the session is called here. An id that REST did not give out stays as it is. */
export function localName(ids: Ids | undefined, id: string): string {
  const place = ids?.findAtOnce("rest", id);
  if (place === undefined) return id;
  if ("here" in place) return place.here;
  throw new ToolcribError("not_found", "This session is at another node, and a socket reaches those of its own node.", {
    hint: "Use it by REST, which works at every node, or open a session by this connection.",
  });
}

export function withLocalNames(ids: Ids | undefined, operations: Pick<Operations, "run">): Pick<Operations, "run"> {
  if (ids === undefined) return operations;
  return {
    async run(operation, input, context) {
      const named = isJsonObject(input) ? nameIn(operation, input) : undefined;
      if (named === undefined || !isJsonObject(input)) return operations.run(operation, input, context);
      const local = { ...input, [named.key]: localName(ids, named.id) };
      const output = await operations.run(operation, local, context);
      return operation === "closeSession" && isJsonObject(output) ? { ...output, sessionId: named.id } : output;
    },
  };
}
