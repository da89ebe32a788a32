/** The slots of a server that other nodes hold, as far as this node may use them. */
import { abortSignalOf } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { type CallReply, type CallRequest, type Cluster, decodeError, type LeaseState } from "../../cluster/cluster.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Progress, Result } from "../../model/protocol.ts";
import { serverDisplayName, type ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import {
  type Definitions,
  NO_DEFINITIONS,
  type SessionContext,
  type Use,
  type UseContext,
} from "../../model/source.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import type { SkillOffer } from "../live-lists.ts";
import type { ClusteredServers } from "./clustered-servers.ts";
import {
  answerForwarded,
  asCallNotStarted,
  forwardedSession,
  forwardedUse,
  readBody,
  type ReplicaDescription,
  writeBody,
} from "./forwarded-calls.ts";
import { leaseKey, readReplicaFacts, type Replica, replicaAddress, type ReplicaFacts, specDigest } from "./replica.ts";

interface RemoteReplicasOptions {
  readonly shared: ClusteredServers;
  readonly token: string;
  readonly deps: ConnectionDeps;
  readonly spec: () => ServerSpec;
  readonly users: () => string[];
  readonly warn: (message: string) => void;
  readonly onChange: () => void;
}

/** Nodes whose configs differ for longer than that go on with what there is. */
const MAX_DISAGREEMENT_MS = 10_000;

export class RemoteReplicas {
  readonly #options: RemoteReplicasOptions;
  readonly #slots = new Map<number, RemoteReplica & { disagreesSince?: number }>();
  /** Disagreements that were reported. */
  readonly #warned = new Set<string>();
  readonly #stopTimers = new Set<() => void>();
  /** The node that had one last. */
  lastHolder: string | undefined;

  constructor(options: RemoteReplicasOptions) {
    this.#options = options;
  }

  all(): RemoteReplica[] {
    return [...this.#slots.values()];
  }

  /** Those that run what this node would run. */
  agreeing(): RemoteReplica[] {
    return this.all()
      .filter((slot) => this.#agrees(slot))
      .toSorted((one, other) => one.slot - other.slot);
  }

  /** @param count How many slots there are. */
  follow(leases: ReadonlyMap<string, LeaseState>, count: number): void {
    const { shared, token, deps, spec, users, onChange } = this.#options;
    const { cluster } = shared;
    for (const [slot, remote] of this.#slots) {
      const lease = leases.get(leaseKey(token, slot));
      if (lease?.term === remote.term && lease.holder === remote.node) {
        remote.renew(lease);
        continue;
      }
      remote.end();
      this.#slots.delete(slot);
    }
    for (let slot = 0; slot < count; slot++) {
      const lease = leases.get(leaseKey(token, slot));
      if (lease !== undefined) this.lastHolder = lease.holder;
      if (lease === undefined || lease.holder === cluster.node.id || this.#slots.has(slot)) continue;
      const { clock, hubSession } = deps;
      const remote = new RemoteReplica({ cluster, clock, token, slot, lease, spec, hubSession, users, onChange });
      this.#slots.set(slot, remote);
    }
  }

  end(): void {
    for (const stop of this.#stopTimers) stop();
    for (const slot of this.#slots.values()) slot.end();
    this.#slots.clear();
  }

  #agrees(slot: RemoteReplica & { disagreesSince?: number }): boolean {
    const { clock } = this.#options.deps;
    if (slot.digest === specDigest(this.#options.spec())) {
      delete slot.disagreesSince;
      return true;
    }
    if (slot.disagreesSince === undefined) {
      slot.disagreesSince = clock.now();
      const stop = clock.after(MAX_DISAGREEMENT_MS, () => {
        this.#stopTimers.delete(stop);
        this.#options.onChange();
      });
      this.#stopTimers.add(stop);
    }
    const isUsed = clock.now() - slot.disagreesSince >= MAX_DISAGREEMENT_MS;
    if (isUsed) this.#warn(slot);
    return isUsed;
  }

  #warn({ node, digest }: RemoteReplica): void {
    const key = `${node} ${digest} ${specDigest(this.#options.spec())}`;
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    const name = JSON.stringify(this.#options.shared.nameOf(node));
    this.#options.warn(
      `It runs at the node ${name}, whose config has another entry for it than the one here; calls go there all the same.`,
    );
  }
}

interface RemoteReplicaOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly token: string;
  readonly slot: number;
  readonly lease: LeaseState;
  readonly spec: () => ServerSpec;
  readonly hubSession: SessionContext;
  /** Users of sessions here: their instructions are requested too. */
  readonly users: () => string[];
  /** It is described, for the first time or again. */
  readonly onChange: () => void;
}

const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2000;

/** A replica that another node runs, seen and called from here. */
class RemoteReplica implements Replica {
  readonly slot: number;
  readonly term: number;
  readonly node: string;
  readonly #options: RemoteReplicaOptions;
  readonly #address: string;
  #facts: ReplicaFacts;
  #described: ReplicaDescription | undefined;
  #describing = false;
  #again = false;
  #over = false;
  #stopTimer: () => void = () => {};

  constructor(options: RemoteReplicaOptions) {
    this.#options = options;
    const { token, slot, lease } = options;
    this.slot = slot;
    this.term = lease.term;
    this.node = lease.holder;
    this.#address = replicaAddress(token, slot, lease.term);
    this.#facts = readReplicaFacts(lease.value);
    this.describe();
  }

  get incarnation(): string {
    return `${this.node} ${this.term} ${this.#facts.generation}`;
  }

  get digest(): string {
    return this.#facts.digest;
  }

  get state(): ServerState | undefined {
    return this.#described?.state;
  }

  /** A node that has gone may still have its lease for a moment: a call to it would be in doubt for nothing. */
  get isOpen(): boolean {
    return !this.#over && this.#options.cluster.nodes().some(({ id }) => id === this.node);
  }

  info(): ServerInfo | undefined {
    return this.#described?.info;
  }

  definitions(): Definitions {
    return this.#described?.definitions ?? NO_DEFINITIONS;
  }

  instructions(user?: string): string | null {
    const own = user === undefined ? undefined : this.#described?.userInstructions[user];
    return own ?? this.#described?.instructions ?? null;
  }

  /** The lease has another value. */
  renew({ value }: LeaseState): void {
    const facts = readReplicaFacts(value);
    const isNew = facts.revision !== this.#facts.revision;
    this.#facts = facts;
    if (isNew) this.describe();
  }

  end(): void {
    this.#over = true;
    this.#stopTimer();
  }

  describe(): void {
    this.#again = true;
    this.#stopTimer();
    if (!this.#describing) void this.#describe(FIRST_RETRY_MS);
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const { spec, hubSession } = this.#options;
    const { head, body } = await this.#call({
      head: { method: "run" },
      body: writeBody(forwardedUse(use, context, hubSession)),
      signal: abortSignalOf(context.signal),
      onEvent: (event, payload) => deliverToCaller(context, event, payload),
      onQuestion: (question, signal) => answerForwarded(serverDisplayName(spec()), context.client, question, signal),
    }).catch((error: unknown) => {
      throw asCallNotStarted(error);
    });
    if (isJsonObject(head["error"])) throw decodeError(head["error"]);
    return readBody<Result>(body);
  }

  async refresh(): Promise<void> {
    await this.#call({ head: { method: "refresh" } });
  }

  rootsChanged(): void {
    this.#tell({ method: "roots-changed" });
  }

  setLogLevel(level: string): void {
    this.#tell({ method: "log-level", level });
  }

  startSession(session: SessionContext): void {
    this.#tell({ method: "start-session" }, forwardedSession(session, this.#options.hubSession));
  }

  endSession(sessionId: string): void {
    this.#tell({ method: "end-session", session: sessionId });
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#tell({ method: "resume" }, { session: forwardedSession(session, this.#options.hubSession), uris });
  }

  async connectUser(user: string): Promise<ServerInfo> {
    return readBody((await this.#call({ head: { method: "connect-user", user } })).body);
  }

  skillOffer(): SkillOffer | undefined {
    if (this.#described?.offersSkills !== true) return undefined;
    const ask = async (head: JsonObject): Promise<Uint8Array> => {
      const reply = await this.#call({ head });
      if (isJsonObject(reply.head["error"])) throw decodeError(reply.head["error"]);
      return reply.body ?? new Uint8Array();
    };
    return {
      list: async () => readBody(await ask({ method: "skills" })),
      read: (uri, size) => ask({ method: "skill-file", uri, size }),
    };
  }

  /** For messages that may get lost: a new holder gets them again. */
  #tell(head: JsonObject, body?: unknown): void {
    void this.#call({ head, body: body === undefined ? undefined : writeBody(body) }).catch(() => {});
  }

  #call(request: CallRequest): Promise<CallReply> {
    return this.#options.cluster.call(this.#address, request);
  }

  async #describe(retryMs: number): Promise<void> {
    this.#describing = true;
    try {
      while (this.#again && !this.#over) {
        this.#again = false;
        const { body } = await this.#call({ head: { method: "describe" }, body: writeBody(this.#options.users()) });
        if (this.#over) return;
        this.#described = readBody<ReplicaDescription>(body);
        this.#options.onChange();
      }
    } catch {
      this.#again = true;
      // The holder may not serve it yet; if it has gone, its lease soon has.
      const next = Math.min(retryMs * 2, MAX_RETRY_MS);
      if (!this.#over) this.#stopTimer = this.#options.clock.after(retryMs, () => void this.#describe(next));
    } finally {
      this.#describing = false;
    }
  }
}

function deliverToCaller(context: UseContext, event: JsonObject, payload: Uint8Array | undefined): void {
  if (event["kind"] === "progress") context.onProgress?.(readBody<Progress>(payload));
  if (event["kind"] === "notice") context.onNotice?.(String(event["method"]), readBody<JsonObject>(payload));
}
