/** Which node runs what: decided by each node for itself, from what all of them see. */
import { createHash } from "node:crypto";
import type { LeaseState } from "../../cluster/cluster.ts";
import { isServerLease } from "./slot-names.ts";

/** How many servers each of the nodes runs. */
export function loads(nodes: readonly string[], leases: Iterable<LeaseState>): Map<string, number> {
  const counts = new Map(nodes.map((node) => [node, 0]));
  for (const { key, holder } of leases) {
    const count = counts.get(holder);
    if (count !== undefined && isServerLease(key)) counts.set(holder, count + 1);
  }
  return counts;
}

/** Those with the least to do first; among equals the order is another one for each server, so that they spread. */
export function ranked(load: ReadonlyMap<string, number>, word: string): string[] {
  const weight = new Map([...load.keys()].map((node) => [node, weigh(node, word)]));
  return [...load.keys()].toSorted(
    (one, other) => (load.get(one) ?? 0) - (load.get(other) ?? 0) || (weight.get(one) ?? 0) - (weight.get(other) ?? 0),
  );
}

export interface Turn {
  readonly slot: number;
  /** How many others may try for it first. */
  readonly after: number;
}

/** Which open slot a node tries for, and when. Undefined if there is none, or the node is not among the ranked. */
export function turnOf(node: string, order: readonly string[], open: readonly number[]): Turn | undefined {
  const rank = order.indexOf(node);
  const slot = open[rank % open.length];
  return rank < 0 || slot === undefined ? undefined : { slot, after: Math.floor(rank / open.length) };
}

/** To whom a node may give one of its servers, the one with the least to do first: a difference of one is no reason. */
export function lighterNodes(node: string, load: ReadonlyMap<string, number>): string[] {
  const own = load.get(node) ?? 0;
  return [...load]
    .filter(([, count]) => own - count >= 2)
    .toSorted(([, one], [, other]) => one - other)
    .map(([each]) => each);
}

function weigh(node: string, word: string): number {
  return createHash("sha256").update(`${node} ${word}`).digest().readUInt32BE();
}
