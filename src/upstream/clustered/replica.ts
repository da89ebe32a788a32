/** Replica: a server where it runs, here or at another node, and which node runs which server. */
import { createHash } from "node:crypto";
import type { LeaseState } from "../../cluster/cluster.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { Definitions, SessionContext, Use, UseContext } from "../../model/source.ts";
import { linkSettings } from "../connection-state.ts";
import type { SkillOffer } from "../live-lists.ts";

export interface Replica {
  /** Id of the node. */
  readonly node: string;
  readonly slot: number;
  /** Another one when a program has taken over that knows nothing of the sessions. */
  readonly incarnation: string;
  /** Undefined while that is not known. */
  readonly state: ServerState | undefined;
  /** Whether it takes calls; one that it does not take was not begun. */
  readonly isOpen: boolean;
  info(): ServerInfo | undefined;
  definitions(): Definitions;
  instructions(user?: string): string | null;
  skillOffer(): SkillOffer | undefined;
  run(use: Use, context: UseContext): Promise<Result>;
  refresh(): Promise<void>;
  connectUser(user: string): Promise<ServerInfo>;
  /** The rest is not waited for and never throws. */
  rootsChanged(): void;
  setLogLevel(level: string): void;
  startSession(session: SessionContext): void;
  endSession(sessionId: string): void;
  resume(session: SessionContext, uris: readonly string[]): void;
}

export function isUp({ state }: Pick<Replica, "state">): boolean {
  return state?.kind === "ready" || state?.kind === "degraded";
}

const PREFIX = "server.";

/** A server runs in slots, one for each of its replicas. */
export function leaseKey(token: string, slot: number): string {
  return `${PREFIX}${token}.${slot}`;
}

/** The term is part of it: a node that still serves an old one gets no calls. */
export function replicaAddress(token: string, slot: number, term: number): string {
  return `${leaseKey(token, slot)}.${term}`;
}

export function eventsTopic(token: string): string {
  return `${PREFIX}${token}.news`;
}

/** Written by the holder of a slot into its lease. */
export interface ReplicaFacts {
  readonly server: string;
  /** Of the spec that its program was started with. */
  readonly digest: string;
  /** Another program has taken over in the same slot. */
  readonly generation: number;
  /** Changes with anything that `describe` returns. */
  readonly revision: number;
}

export function readReplicaFacts(value: JsonObject): ReplicaFacts {
  const { server, digest, generation, revision } = isJsonObject(value) ? value : {};
  const numbers = { generation: Number(generation), revision: Number(revision) };
  return { server: String(server), digest: String(digest), ...numbers };
}

/** A spec is immutable, and asked for with every call. */
const known = new WeakMap<ServerSpec, string>();

/** The same for specs that one program can serve, on whichever node they are; references are hashed as they are written. */
export function specDigest(spec: ServerSpec): string {
  let digest = known.get(spec);
  if (digest === undefined) {
    const { baseDir: _ofThisNode, ownFolder: _too, ...shared } = linkSettings(spec);
    digest = createHash("sha256").update(canonicalJson(shared)).digest("hex").slice(0, 32);
    known.set(spec, digest);
  }
  return digest;
}

/** How many servers each of the nodes runs. */
export function serverCounts(nodes: readonly string[], leases: Iterable<LeaseState>): Map<string, number> {
  const counts = new Map(nodes.map((node) => [node, 0]));
  for (const { key, holder } of leases) {
    const count = counts.get(holder);
    if (count !== undefined && key.startsWith(PREFIX)) counts.set(holder, count + 1);
  }
  return counts;
}

/** Those with the least to do first; among equals the order is another one for each server, so that they spread. */
export function rankNodes(load: ReadonlyMap<string, number>, token: string): string[] {
  const weight = new Map([...load.keys()].map((node) => [node, rankHash(node, token)]));
  return [...load.keys()].toSorted(
    (one, other) => (load.get(one) ?? 0) - (load.get(other) ?? 0) || (weight.get(one) ?? 0) - (weight.get(other) ?? 0),
  );
}

/** A server that runs on fewer nodes than it should. */
export interface OpenServer {
  readonly token: string;
  /** How many of its slots no one holds. */
  readonly slots: number;
  /** The nodes that may take one. */
  readonly nodes: readonly string[];
}

/**
 * The order in which nodes try for each open server. They are placed one after the other, each with those before it counted, so
 * that servers that start together are spread evenly; each node comes to the same plan by itself.
 */
export function planClaims(load: ReadonlyMap<string, number>, open: readonly OpenServer[]): Map<string, string[]> {
  const counts = new Map(load);
  const plan = new Map<string, string[]>();
  for (const { token, slots, nodes } of open.toSorted((one, other) => (one.token < other.token ? -1 : 1))) {
    const order = rankNodes(new Map(nodes.map((node) => [node, counts.get(node) ?? 0])), token);
    for (const node of order.slice(0, slots)) counts.set(node, (counts.get(node) ?? 0) + 1);
    plan.set(token, order);
  }
  return plan;
}

export interface ClaimTurn {
  readonly slot: number;
  /** How many others may try for it first. */
  readonly after: number;
}

/** Which open slot a node tries for, and when. Undefined if there is none, or the node is not among the ranked. */
export function claimTurn(node: string, order: readonly string[], open: readonly number[]): ClaimTurn | undefined {
  const rank = order.indexOf(node);
  const slot = open[rank % open.length];
  return rank < 0 || slot === undefined ? undefined : { slot, after: Math.floor(rank / open.length) };
}

/** The nodes that a node may give one of its servers to, least loaded first. A difference of one is not enough. */
export function lessLoadedNodes(node: string, load: ReadonlyMap<string, number>): string[] {
  const own = load.get(node) ?? 0;
  return [...load]
    .filter(([, count]) => own - count >= 2)
    .toSorted(([, one], [, other]) => one - other)
    .map(([each]) => each);
}

function rankHash(node: string, token: string): number {
  return createHash("sha256").update(`${node} ${token}`).digest().readUInt32BE();
}
