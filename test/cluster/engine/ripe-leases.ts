import { setTimeout as delay } from "node:timers/promises";
import { loadNats } from "../../../src/cluster/nats-link.ts";

/**
 * Nodes get no leases from a new NATS before a lease has passed. This makes the buckets of clusters that tests are going to have,
 * so that they wait for that together and not each.
 *
 * @param prefix Their names are this and a number from 1 on.
 */
export async function ripenLeases(url: string, prefix: string, count: number, leaseMs: number): Promise<void> {
  const { transport, kv } = await loadNats();
  const connection = await transport.connect({ servers: url });
  const manager = new kv.Kvm(connection);
  const names = Array.from({ length: count }, (_, at) => `toolcrib_${prefix}${at + 1}_leases`);
  const buckets = await Promise.all(names.map((name) => manager.create(name, { ttl: leaseMs })));
  await delay(leaseMs);
  // A bucket is known to be so old only by something that was written then.
  await Promise.all(buckets.map((bucket) => bucket.delete("old")));
  await connection.close();
}
