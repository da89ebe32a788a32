/** Whether a node of the cluster could start here: NATS with JetStream answers, and the store is one that nodes share. */
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Hub } from "../../hub/hub.ts";
import { resolveCluster } from "../../hub/cluster/hub-cluster.ts";
import { clusterOf } from "../../model/cluster-config.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Check } from "./machine-checks.ts";

const CONNECT_MS = 5000;

/** Nothing where there is no cluster. Joins it for no moment. */
export async function clusterChecks(
  { config, baseDir }: LoadedConfig,
  parts: { readonly secrets: Secrets; readonly redactor: Redactor },
): Promise<Check[]> {
  const entry = clusterOf(config.cluster);
  if (entry === undefined) return [];
  try {
    const { connectNats } = await import("../../cluster/connect-nats.ts");
    const link = await connectNats(await resolveCluster(entry, baseDir, parts), "doctor", CONNECT_MS);
    await link.close();
    return [{ area: "cluster", status: "ok", message: `NATS with JetStream answers; the cluster is ${entry.name}` }];
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    const told = parts.redactor.mask(message);
    return [{ area: "cluster", status: "fail", message: told, ...(hint === undefined ? {} : { hint }) }];
  }
}

/** Of a hub that has opened its store. */
export function sharedStoreCheck({ config, store }: Pick<Hub, "config" | "store">): Check[] {
  if (clusterOf(config.config.cluster) === undefined || store?.kind === "postgres") return [];
  return [
    {
      area: "cluster",
      status: "fail",
      message: "The store is not one that all nodes share: a cluster needs PostgreSQL.",
      hint: "Set store to the address of a PostgreSQL database.",
    },
  ];
}
