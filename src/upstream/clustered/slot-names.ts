/** How a clustered server is called in the cluster: its leases, addresses and news. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";

const PREFIX = "server.";

/** A server runs in slots, one for each of its replicas. */
export function leaseKey(word: string, slot: number): string {
  return `${PREFIX}${word}.${slot}`;
}

export function isServerLease(key: string): boolean {
  return key.startsWith(PREFIX);
}

/** The term is part of it: who still serves an old one is called by nobody. */
export function slotAddress(word: string, slot: number, term: number): string {
  return `${leaseKey(word, slot)}.${term}`;
}

export function newsTopic(word: string): string {
  return `${PREFIX}${word}.news`;
}

/** What the holder of a slot says of it in its lease. */
export interface SlotFacts {
  readonly server: string;
  /** Of the spec that its program was started with. */
  readonly digest: string;
  /** Another program has taken over in the same slot. */
  readonly generation: number;
  /** Anything that `describe` tells has changed. */
  readonly revision: number;
}

export function slotFacts(value: JsonObject): SlotFacts {
  const { server, digest, generation, revision } = isJsonObject(value) ? value : {};
  return {
    server: String(server),
    digest: String(digest),
    generation: Number(generation),
    revision: Number(revision),
  };
}
