/** What the doors of a node need to give out ids that every node understands. */
import type { Cluster } from "../../cluster/cluster.ts";
import { type Clock, systemClock } from "../../model/clock.ts";
import type { SealedSecrets } from "../../secrets/sealed/sealed-secrets.ts";
import type { Store } from "../../store/store.ts";
import { OwnedIds } from "./owned-ids.ts";
import { SessionKeys } from "./session-keys.ts";

export interface NodeIds {
  readonly cluster: Cluster;
  readonly ids: OwnedIds;
  /** The same on all nodes. */
  readonly secret: Uint8Array;
  close(): void;
}

/** The parts of a hub that it takes. */
interface IdsHub {
  readonly cluster: Cluster | undefined;
  readonly store: Store | undefined;
  readonly sealed: SealedSecrets | undefined;
  readonly config: { readonly config: { readonly secrets: { readonly key?: string | undefined } } };
}

interface NodeIdsOptions {
  /** The longest time that a session may rest. */
  readonly idleMs: number;
  readonly warn: (message: string) => void;
  readonly clock?: Clock;
}

/** Undefined for a hub that is no node. */
export async function openNodeIds(
  { cluster, store, sealed, config }: IdsHub,
  { idleMs, warn, clock = systemClock }: NodeIdsOptions,
): Promise<NodeIds | undefined> {
  if (cluster === undefined || store === undefined) return undefined;
  const place = { cluster: cluster.name, store, sealed, config: config.config };
  const keys = await openSessionKeys(place, { idleMs, warn, clock });
  return { cluster, ids: new OwnedIds(keys, cluster), secret: keys.secret, close: () => keys.close() };
}

interface KeysPlace {
  readonly cluster: string;
  readonly store: Store;
  readonly sealed: SealedSecrets | undefined;
  readonly config: { readonly secrets: { readonly key?: string | undefined } };
}

export function openSessionKeys(
  { cluster, store, sealed, config }: KeysPlace,
  options: Required<NodeIdsOptions>,
): Promise<SessionKeys> {
  // Without `secrets.key` each machine has a key of its own, which the others lack.
  const sealing = config.secrets.key === undefined ? undefined : sealed;
  return SessionKeys.open({ cluster, store, sealed: sealing, ...options });
}
