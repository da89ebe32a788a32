/** Several hubs as one, as the config says it. */
import { z } from "zod";

const Address = z
  .string()
  .regex(/^(?:nats|tls|ws|wss):\/\/.|\$\{|secret:\/\//, "the address of a NATS server, such as nats://127.0.0.1:4222");

const ClusterObjectSchema = z.strictObject({
  url: z
    .union([Address, z.array(Address).min(1)])
    .describe("Where NATS is; credentials in it by reference. Several for a NATS cluster."),
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, "up to 32 letters, digits, _ or -")
    .default("toolcrib")
    .describe("Hubs of one name are one cluster; others on the same NATS are no concern of theirs."),
  node: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,63}$/, "up to 63 letters, digits, _, . or -")
    .optional()
    .describe("Name of this node for people; the name of the machine if absent."),
  credentials: z.string().min(1).optional().describe("A NATS credentials file, its text or a reference to it."),
  leaseMs: z
    .int()
    .min(1000)
    .max(60_000)
    .default(4000)
    .describe("Milliseconds after which a node that says nothing counts as gone. The same on all nodes."),
  copies: z
    .int()
    .min(1)
    .max(5)
    .optional()
    .describe("On how many NATS servers JetStream keeps what nodes share; 1 if absent. The same on all nodes."),
});

export const ClusterSchema = z.union([z.null(), Address, ClusterObjectSchema]);

export type ClusterConfig = z.output<typeof ClusterObjectSchema>;
export type ClusterEntry = z.output<typeof ClusterSchema>;

/** The object that an entry stands for; undefined where there is no cluster. */
export function clusterOf(entry: ClusterEntry | undefined): ClusterConfig | undefined {
  if (entry === null || entry === undefined) return undefined;
  return typeof entry === "string" ? ClusterObjectSchema.parse({ url: entry }) : entry;
}
