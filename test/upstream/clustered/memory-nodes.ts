/** Nodes with clustered connections on a cluster in memory, a fake clock and fake programs. */
import { ToolcribError } from "../../../src/model/errors.ts";
import type { ServerSpec } from "../../../src/model/server-spec.ts";
import type { Use } from "../../../src/model/source.ts";
import { ClusteredConnection } from "../../../src/upstream/clustered/clustered-connection.ts";
import { ClusteredServers } from "../../../src/upstream/clustered/clustered-servers.ts";
import { depsOf, sessionOf, specOf } from "../../support/connection-bench.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeWire, type Handlers, legacyHandlers } from "../../support/fake-wire.ts";
import type { MemoryCluster, MemoryNet } from "./memory-cluster.ts";

export const LEASE_MS = 1000;
export const GREET: Use = { kind: "tool", name: "greet", arguments: {} };

export interface Node {
  readonly cluster: MemoryCluster;
  readonly shared: ClusteredServers;
  readonly connection: ClusteredConnection;
  readonly connections: readonly ClusteredConnection[];
  readonly wires: FakeWire[];
  /** One more connection, as after an entry was removed and added again. */
  add(spec: ServerSpec): ClusteredConnection;
}

export interface NodeOptions {
  readonly handlers?: Handlers;
  /** Whether its program cannot be started there. */
  readonly fails?: boolean;
  readonly spec?: ServerSpec;
  /** Instead of `spec`. */
  readonly specs?: readonly ServerSpec[];
}

const tools = [{ name: "greet", inputSchema: { type: "object" } }];

export class MemoryNodes {
  readonly clock = new FakeClock();
  readonly #opened: Node[] = [];

  join(net: MemoryNet, id: string, more: NodeOptions = {}): Node {
    const { clock } = this;
    const cluster = net.join(id);
    const wires: FakeWire[] = [];
    const deps = depsOf(clock, {
      hubSession: sessionOf(`hub of ${id}`),
      openWire: () => {
        const wire = new FakeWire("stdio", {
          ...legacyHandlers({ tools, capabilities: { tools: {}, resources: { subscribe: true } } }),
          "resources/list": () => ({ resources: [] }),
          "resources/templates/list": () => ({ resourceTemplates: [] }),
          "resources/subscribe": () => ({}),
          "resources/unsubscribe": () => ({}),
          "tools/call": () => ({ content: [{ type: "text", text: id }] }),
          ...more.handlers,
        });
        if (more.fails === true) wire.openError = new ToolcribError("invalid_config", `no program at ${id}`);
        wires.push(wire);
        return wire;
      },
    });
    const shared = new ClusteredServers({ cluster, clock, leaseMs: LEASE_MS, shutdownMs: 10_000 });
    const specs = more.specs ?? [more.spec ?? specOf({ command: "fake", restart: false })];
    const connections: ClusteredConnection[] = [];
    const add = (spec: ServerSpec): ClusteredConnection => {
      const made = new ClusteredConnection(spec, deps, shared);
      connections.push(made);
      return made;
    };
    for (const spec of specs) add(spec);
    const [connection] = connections;
    if (connection === undefined) throw new Error("a node has a server");
    const node = { cluster, shared, connection, connections, wires, add };
    this.#opened.push(node);
    return node;
  }

  /** Lets what is due happen, and what follows from it. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) await this.clock.advance(500);
  }

  async connect(...nodes: Node[]): Promise<void> {
    const connecting = nodes.flatMap(({ connections }) => connections.map((each) => each.connect()));
    await this.pass(1000);
    await Promise.all(connecting);
  }

  async close(): Promise<void> {
    const nodes = this.#opened.splice(0);
    const closing = nodes.flatMap(({ connections }) => connections.map((each) => each.close()));
    await this.pass(12_000);
    await Promise.all(closing);
    for (const { shared } of nodes) shared.close();
  }
}

/** The one that runs it, and another. */
export function owner(...nodes: Node[]): [Node, Node] {
  const running = nodes.filter(({ wires }) => wires.some(({ closed }) => !closed));
  const other = nodes.find((node) => node !== running[0]);
  if (running.length !== 1 || running[0] === undefined || other === undefined) {
    throw new Error(`${running.length} nodes run it`);
  }
  return [running[0], other];
}

export async function textOf(running: Promise<unknown>): Promise<string> {
  const { content } = (await running) as { content: { text: string }[] };
  return content[0]?.text ?? "";
}
