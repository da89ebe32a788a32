/** The slots of a server that other nodes hold, as far as this node may use them. */
import type { LeaseState } from "../../cluster/cluster.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ConnectionDeps } from "../connection-deps.ts";
import type { ClusteredServers } from "./clustered-servers.ts";
import { RemoteSlot } from "./remote-slot.ts";
import { leaseKey } from "./slot-names.ts";
import { specDigest } from "./spec-digest.ts";

export interface RemoteSlotsOptions {
  readonly shared: ClusteredServers;
  readonly word: string;
  readonly deps: ConnectionDeps;
  readonly spec: () => ServerSpec;
  readonly users: () => string[];
  readonly warn: (message: string) => void;
  readonly onChange: () => void;
}

/** Nodes whose configs differ for longer than that go on with what there is. */
const DISAGREEMENT_MS = 10_000;

export class RemoteSlots {
  readonly #options: RemoteSlotsOptions;
  readonly #slots = new Map<number, RemoteSlot & { disagreesSince?: number }>();
  /** Whose other spec was told of. */
  readonly #warned = new Set<string>();
  readonly #stopTimers = new Set<() => void>();
  /** The node that had one last. */
  #lastHolder: string | undefined;

  constructor(options: RemoteSlotsOptions) {
    this.#options = options;
  }

  get lastHolder(): string | undefined {
    return this.#lastHolder;
  }

  all(): RemoteSlot[] {
    return [...this.#slots.values()];
  }

  /** Those that run what this node would run. */
  agreeing(): RemoteSlot[] {
    return this.all()
      .filter((slot) => this.#agrees(slot))
      .toSorted((one, other) => one.slot - other.slot);
  }

  /** @param count How many slots there are. */
  follow(leases: ReadonlyMap<string, LeaseState>, count: number): void {
    const { shared, word, deps, spec, users, onChange } = this.#options;
    const { cluster } = shared;
    for (const [slot, remote] of this.#slots) {
      const lease = leases.get(leaseKey(word, slot));
      if (lease?.term === remote.term && lease.holder === remote.node) {
        remote.renew(lease);
        continue;
      }
      remote.end();
      this.#slots.delete(slot);
    }
    for (let slot = 0; slot < count; slot++) {
      const lease = leases.get(leaseKey(word, slot));
      if (lease !== undefined) this.#lastHolder = lease.holder;
      if (lease === undefined || lease.holder === cluster.node.id || this.#slots.has(slot)) continue;
      const { clock, hubSession } = deps;
      this.#slots.set(slot, new RemoteSlot({ cluster, clock, word, slot, lease, spec, hubSession, users, onChange }));
    }
  }

  end(): void {
    for (const stop of this.#stopTimers) stop();
    for (const slot of this.#slots.values()) slot.end();
    this.#slots.clear();
  }

  #agrees(slot: RemoteSlot & { disagreesSince?: number }): boolean {
    const { clock } = this.#options.deps;
    if (slot.digest === specDigest(this.#options.spec())) {
      delete slot.disagreesSince;
      return true;
    }
    if (slot.disagreesSince === undefined) {
      slot.disagreesSince = clock.now();
      const stop = clock.after(DISAGREEMENT_MS, () => {
        this.#stopTimers.delete(stop);
        this.#options.onChange();
      });
      this.#stopTimers.add(stop);
    }
    const isUsed = clock.now() - slot.disagreesSince >= DISAGREEMENT_MS;
    if (isUsed) this.#warn(slot);
    return isUsed;
  }

  #warn({ node, digest }: RemoteSlot): void {
    const key = `${node} ${digest} ${specDigest(this.#options.spec())}`;
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    const name = JSON.stringify(this.#options.shared.nameOf(node));
    this.#options.warn(
      `It runs at the node ${name}, whose config has another entry for it than the one here; calls go there all the same.`,
    );
  }
}
