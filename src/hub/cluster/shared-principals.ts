/**
 * State of a caller that all nodes share: approvals for its session, and for one call. Each node has its own session for the
 * caller, and this keeps them in sync. Each fact is an entry of its own, so that concurrent writes lose nothing. Taint is shared
 * through the store.
 */
import { hash } from "node:crypto";
import { endsWithin } from "../../base/async.ts";
import type { Cluster, SharedMap } from "../../cluster/cluster.ts";
import type { Clock } from "../../base/clock.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Session } from "../../sessions/session.ts";

/** Longer than the idle time of a session: the node that has the session renews its entries. */
const TTL_MS = 60 * 60_000;
const RENEW_MS = 15 * 60_000;
/** How long a result waits until the other nodes have it. */
const PUBLISH_TIMEOUT_MS = 2000;

const CALL_GRANT_KEY = ".yes.";

/** An approval for one call, which may take several rounds. */
export interface CallGrant {
  readonly until: number;
  readonly rounds: number;
}

export class SharedPrincipals {
  readonly #map: SharedMap;
  readonly #cluster: Pick<Cluster, "isUp">;
  readonly #clock: Clock;
  /** The approvals of each principal. */
  readonly #known = new Map<string, Set<string>>();
  readonly #sessions = new Map<string, Set<Session>>();
  /** Entries that could not be published yet. */
  readonly #untold = new Map<string, JsonObject>();
  readonly #stops: (() => void)[];
  #stopRenewing = (): void => {};

  static async open(cluster: Cluster, clock: Clock): Promise<SharedPrincipals> {
    const map = await cluster.map("principals", { ttlMs: TTL_MS });
    return new SharedPrincipals(map, cluster, clock);
  }

  constructor(map: SharedMap, cluster: Pick<Cluster, "on" | "isUp">, clock: Clock) {
    this.#map = map;
    this.#cluster = cluster;
    this.#clock = clock;
    this.#stops = [map.onChange((key) => this.#heard(key)), cluster.on("up", () => this.#tellAgain())];
    for (const key of map.entries().keys()) this.#heard(key);
    this.#renewLater();
  }

  /** Keeps a session in sync with sessions of the same caller at other nodes. */
  attach(session: Session): void {
    const { sharedKey } = session;
    if (sharedKey === undefined) return;
    const principal = shortHash(sharedKey);
    const sessions = this.#sessions.get(principal) ?? new Set();
    this.#sessions.set(principal, sessions.add(session));
    session.closing.addEventListener("abort", () => this.#detach(principal, session), { once: true });
    for (const grant of this.#known.get(principal) ?? []) session.granted.add(grant);
  }

  /** Shares an approval for the session. */
  async grant({ sharedKey }: Session, grant: string): Promise<void> {
    if (sharedKey !== undefined) await this.#put(`${shortHash(sharedKey)}.grant.${shortHash(grant)}`, { grant });
  }

  /** Lets the next call with this key pass, at one node only. */
  async allow({ sharedKey }: Session, key: string, { until, rounds }: CallGrant): Promise<void> {
    if (sharedKey !== undefined) await this.#put(callGrantKey(sharedKey, key), { until, rounds });
  }

  /** Takes the approval for a call. No other node gets it. */
  async take({ sharedKey }: Session, key: string): Promise<CallGrant | undefined> {
    if (sharedKey === undefined) return undefined;
    const name = callGrantKey(sharedKey, key);
    const untold = this.#untold.get(name);
    // An entry that could not be published is only here.
    if (this.#untold.delete(name)) return this.#valid(untold);
    try {
      return this.#valid(await this.#map.takeOut(name));
    } catch {
      // Without the cluster, another node could take it as well.
      return undefined;
    }
  }

  #valid(grant: JsonObject | undefined): CallGrant | undefined {
    const until = numberOf(grant?.["until"]) ?? 0;
    return until > this.#clock.now() ? { until, rounds: numberOf(grant?.["rounds"]) ?? 0 } : undefined;
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#stopRenewing();
  }

  async #put(key: string, value: JsonObject): Promise<void> {
    if (!this.#cluster.isUp) return void this.#untold.set(key, value);
    const publishing = endsWithin(this.#map.put(key, value), { ms: PUBLISH_TIMEOUT_MS, clock: this.#clock });
    const isTold = await publishing.catch(() => false);
    // It may have arrived. Publishing an approval twice would let two calls pass; for the rest it does not matter.
    if (!isTold && !key.includes(CALL_GRANT_KEY)) this.#untold.set(key, value);
  }

  #tellAgain(): void {
    for (const [key, value] of this.#untold) {
      this.#untold.delete(key);
      void this.#put(key, value);
    }
  }

  #heard(key: string): void {
    const [principal = "", kind] = key.split(".");
    const value = this.#map.get(key);
    // Expired entries are forgotten with their sessions.
    if (kind !== "grant" || typeof value?.["grant"] !== "string") return;
    const { grant } = value;
    const known = this.#known.get(principal) ?? new Set<string>();
    this.#known.set(principal, known.add(grant));
    for (const session of this.#sessions.get(principal) ?? []) session.granted.add(grant);
  }

  #detach(principal: string, session: Session): void {
    const sessions = this.#sessions.get(principal);
    sessions?.delete(session);
    if (sessions?.size === 0) this.#sessions.delete(principal);
  }

  /** Entries do not expire as long as a node has the session. */
  #renewLater(): void {
    this.#stopRenewing = this.#clock.after(RENEW_MS, () => {
      const entries = this.#map.entries();
      const living = new Set<string>();
      for (const [key, value] of entries) {
        const [principal = "", kind] = key.split(".");
        living.add(principal);
        if (kind !== "yes" && this.#sessions.has(principal)) void this.#put(key, value);
      }
      for (const principal of this.#known.keys()) if (!living.has(principal)) this.#known.delete(principal);
      this.#renewLater();
    });
  }
}

function callGrantKey(sharedKey: string, key: string): string {
  return `${shortHash(sharedKey)}${CALL_GRANT_KEY}${shortHash(key)}`;
}

function shortHash(text: string): string {
  return hash("sha256", text).slice(0, 40);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
