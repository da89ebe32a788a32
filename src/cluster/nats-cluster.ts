/** A node's view of its cluster, put together. */
import { hkdfSync, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { Emitter } from "../base/emitter.ts";
import type { ClusterConfig } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { decodeMessage, encodeMessage, type Subjects, subjectsOf } from "./call-messages.ts";
import {
  type CallHandler,
  type CallReply,
  type CallRequest,
  type Cluster,
  type ClusterEvents,
  type ClusterNode,
  type SharedMap,
  type SharedMapOptions,
  subjectToken,
} from "./cluster.ts";
import { BucketMap } from "./bucket.ts";
import { BucketLeases } from "./leases.ts";
import { MessageSigner } from "./message-signer.ts";
import { connectNats, type NatsLink, OPEN_NATS_WARNING } from "./nats-link.ts";
import { NodeList } from "./node-list.ts";
import { IncomingCalls, OutgoingCalls } from "./node-calls.ts";

const FORGED_EVERY_MS = 60_000;

interface NatsClusterParts {
  readonly name: string;
  readonly link: NatsLink;
  readonly nodes: NodeList;
  readonly leases: BucketLeases;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly copies: number;
  readonly secret: Uint8Array;
  warn(message: string): void;
}

class NatsCluster implements Cluster {
  readonly name: string;
  readonly leases: BucketLeases;
  readonly #parts: NatsClusterParts;
  readonly #events = new Emitter<ClusterEvents>();
  readonly #subjects: Subjects;
  readonly #outgoing: OutgoingCalls;
  readonly #incoming: IncomingCalls;
  readonly #maps = new Map<string, Promise<BucketMap>>();
  #isUp = true;
  #forgedCount = 0;
  #forgedSaid = Number.NEGATIVE_INFINITY;
  #closed: Promise<void> | undefined;

  constructor(parts: NatsClusterParts) {
    this.name = parts.name;
    this.leases = parts.leases;
    this.#parts = parts;
    this.#subjects = subjectsOf(parts.name);
    const { link, nodes } = parts;
    const shared = { ...parts, subjects: this.#subjects, nodeId: nodes.self.id };
    this.#incoming = new IncomingCalls(shared);
    this.#outgoing = new OutgoingCalls(shared);
    link.events.on("down", ({ reason }) => this.#down(reason));
    link.events.on("up", () => {
      // First of all, so that no call of the new connection is taken for one of the old.
      this.#incoming.linkUp();
      nodes.linkUp();
    });
    link.events.on("warning", (message) => this.#warn(message));
    link.events.on("forged", ({ subject }) => this.#forged(subject));
    nodes.events.on("written", () => this.#up());
    nodes.events.on("unwritten", () => this.#down("NATS answers, but keeps nothing"));
    nodes.events.on("nodes", () => this.#events.emit("nodes", undefined));
    nodes.events.on("gone", ({ node }) => {
      this.#outgoing.nodeGone(node);
      this.#incoming.nodeGone(node);
      this.#events.emit("gone", { node });
    });
  }

  get node(): ClusterNode {
    return this.#parts.nodes.self;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  on<Name extends keyof ClusterEvents>(name: Name, listener: (event: ClusterEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  keyFor(purpose: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#parts.secret, "", `toolcrib ${purpose}`, 32));
  }

  nodes(): readonly ClusterNode[] {
    return this.#parts.nodes.all();
  }

  setFacts(facts: JsonObject): void {
    this.#parts.nodes.setFacts(facts);
  }

  publish(topic: string, message: JsonObject): void {
    const { link } = this.#parts;
    const bytes = encodeMessage({ from: this.node.id, value: message });
    if (bytes.length > link.maxPayload)
      return this.#warn(`News about ${topic} is too large for NATS and was not sent.`);
    link.publish(this.#subjects.topic(topic), bytes);
  }

  subscribe(topic: string, listener: (message: JsonObject, from: string) => void): () => void {
    const subscription = this.#parts.link.subscribe(this.#subjects.topic(topic), ({ data }) => {
      const { head } = decodeMessage(data);
      const { from, value } = head;
      if (from !== this.node.id && isJsonObject(value)) listener(value, String(from));
    });
    return () => subscription.unsubscribe();
  }

  serve(address: string, handler: CallHandler): () => void {
    return this.#incoming.serve(address, handler);
  }

  async call(address: string, request: CallRequest): Promise<CallReply> {
    return await this.#outgoing.call(address, request);
  }

  async map(name: string, options: SharedMapOptions = {}): Promise<SharedMap> {
    let made = this.#maps.get(name);
    if (made === undefined) {
      made = this.#openMap(name, options);
      this.#maps.set(name, made);
      made.catch(() => this.#maps.delete(name));
    }
    return await made;
  }

  async close(): Promise<void> {
    this.#closed ??= this.#leave();
    await this.#closed;
  }

  async #openMap(name: string, options: SharedMapOptions): Promise<BucketMap> {
    const { link, clock, copies } = this.#parts;
    const bucketName = `toolcrib_${this.name}_map_${subjectToken(name)}`;
    const warn = (message: string): void => this.#warn(message);
    const map = new BucketMap({ link, clock, copies, warn, bucketName, ttlMs: options.ttlMs });
    try {
      await map.open();
    } catch (error) {
      map.close();
      const message = `NATS does not answer for the shared map ${name}.`;
      throw new ToolcribError("server_unavailable", message, { cause: error });
    }
    return map;
  }

  async #leave(): Promise<void> {
    const { link, nodes, leases } = this.#parts;
    try {
      await leases.close();
      this.#outgoing.close();
      await this.#incoming.close();
      for (const map of this.#maps.values()) (await map.catch(() => undefined))?.close();
      await nodes.leave();
      await link.flush();
    } catch (error) {
      this.#warn(`The node did not leave the cluster in order: ${String(error)}`);
    }
    await link.close().catch(() => {});
    this.#events.clear();
  }

  #down(reason: string): void {
    if (!this.#parts.link.isUp) {
      this.#outgoing.linkDown();
      this.#incoming.linkDown();
    }
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#events.emit("down", { reason });
  }

  /** Only when the own entry was written: a NATS that has just started takes calls before it keeps anything. */
  #up(): void {
    if (this.#isUp || !this.#parts.link.isUp) return;
    this.#isUp = true;
    this.#events.emit("up", undefined);
  }

  /** An intruder must not fill the log. */
  #forged(subject: string): void {
    this.#forgedCount += 1;
    const now = performance.now();
    if (now - this.#forgedSaid < FORGED_EVERY_MS) return;
    this.#forgedSaid = now;
    const count = this.#forgedCount;
    this.#forgedCount = 0;
    // Others choose the subject.
    const shown = JSON.stringify(subject.slice(0, 200));
    this.#warn(
      `${count === 1 ? "A message" : `${count} messages`} on NATS was dropped, because no node of this cluster signed it: ${shown}. Another program can publish there, or a node has another version or another store.`,
    );
    this.#events.emit("forged", { subject, count });
  }

  #warn(message: string): void {
    this.#parts.warn(message);
    this.#events.emit("warning", message);
  }
}

export interface OpenClusterOptions {
  /** With addresses and credentials resolved. */
  readonly config: ClusterConfig;
  /** Shared by the nodes of the cluster and kept from everyone else. */
  readonly secret: Uint8Array;
  readonly clock: Clock;
  readonly facts: JsonObject;
  warn(message: string): void;
  readonly connectTimeoutMs?: number;
}

/** Joins a cluster. Rejects with ToolcribError if NATS cannot be reached, does not accept the credentials, or has no JetStream. */
export async function openCluster(options: OpenClusterOptions): Promise<Cluster> {
  const { config, clock, facts, connectTimeoutMs = 5000 } = options;
  const warn = (message: string): void => options.warn(message);
  const self = { id: randomBytes(8).toString("hex"), name: config.node ?? hostname(), facts };
  const signer = new MessageSigner(options.secret);
  const link = await connectNats(config, { name: self.name, timeoutMs: connectTimeoutMs, signer });
  if (link.isOpenToAll) warn(OPEN_NATS_WARNING);
  const shared = { link, clock, warn, leaseMs: config.leaseMs, copies: config.copies ?? 1 };
  const nodes = new NodeList({ ...shared, bucketName: `toolcrib_${config.name}_nodes`, self });
  const leases = new BucketLeases({ ...shared, bucketName: `toolcrib_${config.name}_leases`, nodeId: self.id });
  const cluster = new NatsCluster({ ...shared, name: config.name, nodes, leases, secret: options.secret });
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
