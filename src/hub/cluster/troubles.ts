/** Whether what a hub relies on can be reached. Everybody may read it, so it names neither addresses nor nodes. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { Store } from "../../store/store.ts";

interface HubTroubles {
  readonly problems: readonly string[];
  readonly cluster?: { readonly nodes: number; readonly nats: "up" | "down" };
  /** Absent where the store is a file, or there is none. */
  readonly store?: "up" | "down";
}

interface Reliance {
  readonly cluster: Pick<Cluster, "isUp" | "nodes"> | undefined;
  readonly store: Pick<Store, "kind" | "trouble"> | undefined;
}

/** Takes a hub. */
export function troublesOf({ cluster, store }: Reliance): HubTroubles {
  const isCutOff = cluster?.isUp === false;
  const isStoreDown = store?.trouble !== undefined;
  return {
    problems: [
      ...(isCutOff ? ["NATS cannot be reached: what other nodes have cannot be used from here."] : []),
      ...(isStoreDown
        ? ["The store cannot be reached: what was read before goes on, and nothing can be changed."]
        : []),
    ],
    ...(cluster === undefined ? {} : { cluster: { nodes: cluster.nodes().length, nats: isCutOff ? "down" : "up" } }),
    ...(store?.kind === "postgres" ? { store: isStoreDown ? "down" : "up" } : {}),
  };
}
