/** Joins a cluster. The client of NATS is loaded only here, so a hub without a cluster does not need it. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../model/clock.ts";
import type { ClusterConfig } from "../model/cluster-config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Cluster } from "./cluster.ts";
import { connectNats, OPEN_NATS } from "./connect-nats.ts";
import { BucketLeases } from "./leases.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { NodeList } from "./node-list.ts";
import { MessageSigner } from "./signature.ts";

export interface OpenClusterOptions {
  /** With addresses and credentials resolved. */
  readonly config: ClusterConfig;
  /** What nodes know each other by; nobody else may have it. */
  readonly secret: Uint8Array;
  readonly clock: Clock;
  readonly facts: JsonObject;
  warn(message: string): void;
  readonly connectTimeoutMs?: number;
}

/** Rejects with ToolcribError if NATS cannot be reached, lets nobody in, or has no JetStream. */
export async function openCluster(options: OpenClusterOptions): Promise<Cluster> {
  const { config, clock, facts, connectTimeoutMs = 5000 } = options;
  const warn = (message: string): void => options.warn(message);
  const self = { id: randomBytes(8).toString("hex"), name: config.node ?? hostname(), facts };
  const signer = new MessageSigner(options.secret);
  const link = await connectNats(config, { name: self.name, timeoutMs: connectTimeoutMs, signer });
  if (link.isOpenToAll) warn(OPEN_NATS);
  const shared = { link, clock, warn, leaseMs: config.leaseMs, copies: config.copies ?? 1 };
  const nodes = new NodeList({ ...shared, bucketName: `toolcrib_${config.name}_nodes`, self });
  const leases = new BucketLeases({ ...shared, bucketName: `toolcrib_${config.name}_leases`, nodeId: self.id });
  const cluster = new NatsCluster({ ...shared, name: config.name, nodes, leases });
  try {
    await nodes.open();
    const other = nodes.withOtherLease();
    if (other !== undefined) {
      throw new ToolcribError("invalid_config", `The node ${other.name} of this cluster has another \`leaseMs\`.`, {
        hint: "`cluster.leaseMs` must be the same on all nodes; change it with all of them stopped.",
      });
    }
    await leases.open();
    await nodes.join();
    return cluster;
  } catch (error) {
    await cluster.close();
    if (error instanceof ToolcribError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new ToolcribError("server_unavailable", `NATS does not keep what a cluster needs: ${message}.`, {
      hint:
        shared.copies > 1
          ? `Check that JetStream runs on ${shared.copies} NATS servers or more (\`cluster.copies\`), that it has room, and that the account may make key-value buckets.`
          : "Check that JetStream has room, and that the account may make key-value buckets.",
      cause: error,
    });
  }
}
