/** A cluster in memory: the same promises as the real one, kept at once, with faults on demand. */
import type {
  CallHandler,
  CallReply,
  CallRequest,
  Cluster,
  ClusterEvents,
  ClusterNode,
  Lease,
  Leases,
  LeaseState,
  SharedMap,
} from "../../../src/cluster/cluster.ts";
import { Emitter } from "../../../src/base/emitter.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";

type Listener = (message: JsonObject, from: string) => void;

/** What all nodes share. */
export class MemoryNet {
  readonly nodes = new Map<string, MemoryCluster>();
  readonly leases = new Map<string, LeaseState>();
  readonly handlers = new Map<string, { readonly node: string; readonly handler: CallHandler }>();
  readonly topics = new Map<string, Set<{ readonly node: string; readonly listener: Listener }>>();
  readonly values = new Map<string, JsonObject>();
  readonly changes = new Emitter<{ lease: string; value: string }>();
  term = 0;

  join(id: string): MemoryCluster {
    const cluster = new MemoryCluster(this, id);
    this.nodes.set(id, cluster);
    this.tellNodes();
    return cluster;
  }

  tellNodes(): void {
    for (const node of this.nodes.values()) node.events.emit("nodes", undefined);
  }
}

interface HeldLease {
  readonly key: string;
  readonly controller: AbortController;
}

export class MemoryCluster implements Cluster {
  readonly name = "test";
  node: ClusterNode;
  readonly events = new Emitter<ClusterEvents>();
  readonly #net: MemoryNet;
  readonly #held = new Set<HeldLease>();
  /** What ends when the node dies. */
  readonly #doubts = new Set<() => void>();
  isUp = true;
  /** What is told here and reaches nobody. */
  loses: (request: CallRequest) => boolean = () => false;

  constructor(net: MemoryNet, id: string) {
    this.#net = net;
    this.node = { id, name: id, facts: {} };
  }

  on<Name extends keyof ClusterEvents>(name: Name, listener: (event: ClusterEvents[Name]) => void): () => void {
    return this.events.on(name, listener);
  }

  keyFor(purpose: string): Buffer {
    return Buffer.from(purpose);
  }

  nodes(): ClusterNode[] {
    return [...this.#net.nodes.values()].map(({ node }) => node);
  }

  setFacts(facts: JsonObject): void {
    this.node = { ...this.node, facts };
    this.#net.tellNodes();
  }

  publish(topic: string, message: JsonObject): void {
    for (const { node, listener } of this.#net.topics.get(topic) ?? []) {
      if (node !== this.node.id) queueMicrotask(() => listener(structuredClone(message), this.node.id));
    }
  }

  subscribe(topic: string, listener: Listener): () => void {
    const listeners = this.#net.topics.get(topic) ?? new Set();
    this.#net.topics.set(topic, listeners);
    const entry = { node: this.node.id, listener };
    listeners.add(entry);
    return () => listeners.delete(entry);
  }

  serve(address: string, handler: CallHandler): () => void {
    this.#net.handlers.set(address, { node: this.node.id, handler });
    return () => this.#net.handlers.delete(address);
  }

  async call(address: string, request: CallRequest): Promise<CallReply> {
    const served = this.loses(request) ? undefined : this.#net.handlers.get(address);
    const owner = this.#net.nodes.get(served?.node ?? "");
    if (served === undefined || owner === undefined) {
      throw new ToolcribError("server_unavailable", "nobody serves it", { details: { sent: false } });
    }
    const signal = request.signal ?? new AbortController().signal;
    const { promise: doubt, reject } = Promise.withResolvers<never>();
    const die = (): void => reject(new ToolcribError("server_unavailable", "the node has gone"));
    owner.#doubts.add(die);
    try {
      const answered = served.handler({
        head: structuredClone(request.head),
        body: request.body,
        from: this.node.id,
        signal,
        emit: async (event, body) => request.onEvent?.(event, body),
        ask: async (question, asked) => request.onQuestion?.(question, asked) ?? {},
      });
      return await Promise.race([answered, doubt]);
    } finally {
      owner.#doubts.delete(die);
    }
  }

  readonly leases: Leases = {
    all: () => this.#net.leases,
    onChange: (listener) => this.#net.changes.on("lease", listener),
    claim: async (key, value) => (this.#net.leases.has(key) ? undefined : this.#claim(key, value)),
  };

  async map(): Promise<SharedMap> {
    const { values, changes } = this.#net;
    return {
      get: (key) => values.get(key),
      entries: () => values,
      async put(key, value) {
        values.set(key, value);
        changes.emit("value", key);
      },
      async renew(key, value) {
        if (!values.has(key)) return false;
        values.set(key, value);
        return true;
      },
      async take(key) {
        const was = values.delete(key);
        changes.emit("value", key);
        return was;
      },
      async takeOut(key) {
        const was = values.get(key);
        values.delete(key);
        changes.emit("value", key);
        return was;
      },
      onChange: (listener) => changes.on("value", listener),
    };
  }

  /** It was too slow to renew what it holds, and lives on. */
  loseLeases(): void {
    for (const { key, controller } of [...this.#held]) {
      this.#net.leases.delete(key);
      controller.abort();
      this.#net.changes.emit("lease", key);
    }
    this.#held.clear();
  }

  /** It vanishes without a word; its leases run out. */
  die(): void {
    this.isUp = false;
    this.#net.nodes.delete(this.node.id);
    for (const doubt of [...this.#doubts]) doubt();
    for (const { key, controller } of this.#held) {
      controller.abort();
      this.#net.leases.delete(key);
      this.#net.changes.emit("lease", key);
    }
    for (const node of this.#net.nodes.values()) node.events.emit("gone", { node: this.node.id });
    this.#net.tellNodes();
  }

  async close(): Promise<void> {
    this.#net.nodes.delete(this.node.id);
    this.#net.tellNodes();
  }

  #claim(key: string, value: JsonObject): Lease {
    const net = this.#net;
    const controller = new AbortController();
    const held = { key, controller };
    const state = { key, holder: this.node.id, term: ++net.term, value };
    const write = (next: LeaseState | undefined): void => {
      if (next === undefined) net.leases.delete(key);
      else net.leases.set(key, next);
      net.changes.emit("lease", key);
    };
    this.#held.add(held);
    write(state);
    return {
      ...state,
      lost: controller.signal,
      get holds() {
        return !controller.signal.aborted && net.leases.get(key)?.term === state.term;
      },
      setValue: async (next) => {
        if (net.leases.get(key)?.term === state.term) write({ ...state, value: next });
      },
      release: async () => {
        this.#held.delete(held);
        if (net.leases.get(key)?.term === state.term) write(undefined);
      },
    };
  }
}
