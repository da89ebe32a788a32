/** Whether a node of the cluster could start here: NATS with JetStream answers, and the store is one that nodes share. */
import { randomBytes } from "node:crypto";
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
    const { connectNats, OPEN_NATS } = await import("../../cluster/connect-nats.ts");
    const { MessageSigner } = await import("../../cluster/signature.ts");
    const resolved = await resolveCluster(entry, baseDir, parts);
    // Nothing is sent, so it need not be the key of the cluster.
    const signer = new MessageSigner(randomBytes(32));
    const link = await connectNats(resolved, { name: "doctor", timeoutMs: CONNECT_MS, signer });
    const { isOpenToAll } = link;
    await link.close();
    const answers = `NATS with JetStream answers; the cluster is ${entry.name}`;
    const open: Check[] = isOpenToAll ? [{ area: "cluster", status: "warn", message: OPEN_NATS }] : [];
    return [{ area: "cluster", status: "ok", message: answers }, ...open];
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    const told = parts.redactor.mask(message);
    return [{ area: "cluster", status: "fail", message: told, hint }];
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
