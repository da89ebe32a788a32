import type { ServerSpec } from "../../model/server-spec.ts";
import { type ServerInfo, type ServerState, statusOf } from "../../model/server-state.ts";
import { serverInfo } from "../server-info.ts";

export interface ClusteredFacts {
  readonly spec: ServerSpec;
  readonly state: ServerState;
  readonly toolCount: number;
  /** What the place says that knows most. */
  readonly place: ServerInfo | undefined;
  /** Names of the nodes that run it. */
  readonly nodes: readonly string[];
}

/** A server of the cluster as every node shows it: what this node thinks of it, and the rest from where it runs. */
export function clusteredInfo({ spec, state, toolCount, place, nodes }: ClusteredFacts): ServerInfo {
  const lastError = "reason" in state ? state.reason : null;
  const facts = { spec, state, toolCount, lastError, warnings: [], agreement: null, auth: undefined };
  const own = serverInfo({ ...facts, transport: "stdio" });
  const { id, name, origin, tags } = own;
  const placed = { ...place, id, name, origin, tags, toolCount, state: state.kind, status: statusOf(state) };
  return {
    ...own,
    ...(place === undefined ? {} : placed),
    ...(lastError === null ? {} : { lastError }),
    ...(nodes.length === 0 ? {} : { node: nodes.toSorted().join(", ") }),
  };
}
