import { afterEach, describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { ServerSpec } from "../../../src/model/server-spec.ts";
import { contextOf, specOf } from "../../support/connection-bench.ts";
import { settle } from "../../support/fake-clock.ts";
import type { Handlers } from "../../support/fake-wire.ts";
import { MemoryNet } from "./memory-cluster.ts";
import { GREET, MemoryNodes, type Node, owner, textOf } from "./memory-nodes.ts";

describe("[scale-06a] a clustered connection", () => {
  const nodesHere = new MemoryNodes();
  const join = nodesHere.join.bind(nodesHere);
  const pass = nodesHere.pass.bind(nodesHere);
  const connect = nodesHere.connect.bind(nodesHere);
  afterEach(() => nodesHere.close());

  it("runs at one node and is the same at the others", async () => {
    const net = new MemoryNet();
    const nodes = [join(net, "a"), join(net, "b")];
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    expect(there.wires).toEqual([]);
    expect(there.connection.definitions()).toEqual(here.connection.definitions());
    expect(there.connection.info()).toMatchObject({ state: "ready", toolCount: 1, node: here.cluster.node.name });
    expect(await textOf(there.connection.run(GREET, contextOf()))).toBe(here.cluster.node.id);
  });

  it("[scale-09c] gives a call that was not taken to the next node", async () => {
    const net = new MemoryNet();
    const nodes = [join(net, "a"), join(net, "b")];
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    const closing = here.connection.close();
    const states: string[] = [];
    there.connection.on("state", ({ state }) => states.push(state.kind));
    const running = textOf(there.connection.run(GREET, contextOf()));
    await pass(1500);
    await closing;
    // In order: nothing to warn of.
    expect(states).not.toContain("restarting");
    expect(await running).toBe(there.cluster.node.id);
    expect(here.wires.every(({ closed }) => closed)).toBe(true);
  });

  it("[scale-09b] never sends a call again that may have run, and the server is up elsewhere", async () => {
    const net = new MemoryNet();
    const handlers: Handlers = { "tools/call": () => undefined };
    const nodes = [join(net, "a", { handlers }), join(net, "b", { handlers })];
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    const states: string[] = [];
    there.connection.on("state", ({ state }) => states.push(state.kind));
    const running = there.connection.run(GREET, contextOf()).catch((error: unknown) => error);
    await settle();
    here.cluster.die();
    const error = await running;
    expect(error).toMatchObject({ code: "server_unavailable" });
    expect(error instanceof ToolcribError && error.details?.["sent"]).not.toBe(false);
    await pass(1000);
    expect(here.wires.every(({ closed }) => closed)).toBe(true);
    expect(states[0]).toBe("restarting");
    expect(states.at(-1)).toBe("ready");
    expect(there.wires.flatMap((wire) => wire.methods())).not.toContain("tools/call");
  });

  it("is tried at another node where one cannot start it, and has failed when none can", async () => {
    const net = new MemoryNet();
    const [bad, good] = [join(net, "a", { fails: true }), join(net, "b")];
    await connect(bad, good);
    await pass(1000);
    for (const { connection } of [bad, good]) expect(connection.info()).toMatchObject({ state: "ready", node: "b" });

    const other = new MemoryNet();
    const nodes = [join(other, "c", { fails: true }), join(other, "d", { fails: true })];
    await connect(...nodes);
    await pass(3000);
    for (const { connection } of nodes) {
      expect(connection.info()).toMatchObject({ state: "failed", lastError: expect.stringContaining("no program at") });
    }
    const tried = nodes.flatMap(({ wires }) => wires).length;
    await pass(20_000);
    expect(nodes.flatMap(({ wires }) => wires)).toHaveLength(tried);
  });

  it("waits for a node that has another spec, but not for ever", async () => {
    const net = new MemoryNet();
    const spec = (arg: string): ServerSpec => specOf({ command: "fake", args: [arg], restart: false });
    const old = join(net, "a", { spec: spec("old") });
    await connect(old);
    const next = join(net, "b", { spec: spec("new") });
    void next.connection.connect();
    await pass(1000);
    expect(next.connection.info().state).not.toBe("ready");
    const warnings: string[] = [];
    next.connection.on("warning", (text) => warnings.push(text));
    await pass(10_000);
    expect(next.connection.info().state).toBe("ready");
    await pass(1000);
    expect(warnings).toEqual([expect.stringContaining('at the node "a"')]);
    expect(old.connection.respec(spec("new"))).toBe(true);
    await pass(500);
    expect(old.wires.map(({ closed }) => closed)).toEqual([true, false]);
    expect(next.connection.info().state).toBe("ready");
  });

  it("tells all nodes what the server says of its own accord", async () => {
    const net = new MemoryNet();
    const nodes = [join(net, "a"), join(net, "b")];
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    const heard: unknown[] = [];
    for (const { connection } of [here, there]) connection.on("log", ({ message }) => heard.push(message["data"]));
    here.wires[0]?.notify("notifications/message", { level: "info", data: "hello" });
    await settle();
    expect(heard).toEqual(["hello", "hello"]);
  });

  it("[scale-06c] one that may run anywhere goes on without NATS, also where it did not run", async () => {
    const net = new MemoryNet();
    const spec = specOf({ command: "fake", restart: false, replicas: 2 });
    const nodes = ["a", "b", "c"].map((id) => join(net, id, { spec }));
    await connect(...nodes);
    const idle = nodes.find(({ wires }) => wires.length === 0);
    expect(nodes.filter(({ wires }) => wires.length === 1)).toHaveLength(2);
    for (const { cluster } of nodes) cluster.die();
    await pass(500);
    for (const { connection, cluster } of nodes) {
      expect(await textOf(connection.run(GREET, contextOf()))).toBe(cluster.node.id);
    }
    expect(idle?.wires).toHaveLength(1);
    expect(nodes.flatMap(({ wires }) => wires).filter(({ closed }) => closed)).toEqual([]);
  });

  const setUp = ({ cluster }: Node, isUp: boolean): void => {
    cluster.isUp = isUp;
    if (isUp) cluster.events.emit("up", undefined);
    else cluster.events.emit("down", { reason: "NATS is away" });
  };

  it("[scale-06c] keeps the replicas that went on without NATS when NATS is back", async () => {
    const net = new MemoryNet();
    const spec = specOf({ command: "fake", restart: false, replicas: 2 });
    const nodes = [join(net, "a", { spec }), join(net, "b", { spec })];
    await connect(...nodes);
    for (const node of nodes) setUp(node, false);
    for (const { cluster } of nodes) cluster.loseLeases();
    expect(net.leases.size).toBe(0);
    // One after the other: the second gets its lease while the replica of the first is ready.
    for (const node of nodes) {
      setUp(node, true);
      await pass(2000);
    }
    expect(new Set([...net.leases.values()].map(({ holder }) => holder)).size).toBe(2);
    expect(nodes.map(({ wires }) => wires.map(({ closed }) => closed))).toEqual([[false], [false]]);
  });

  it("[scale-06c] ends a replica that went on without NATS where other nodes run all of them", async () => {
    const net = new MemoryNet();
    const spec = specOf({ command: "fake", restart: false, replicas: 2 });
    const nodes = ["a", "b", "c"].map((id) => join(net, id, { spec }));
    await connect(...nodes);
    const [third, ...others] = nodes.toSorted((one, other) => one.wires.length - other.wires.length);
    if (third === undefined) throw new Error("there are three");
    for (const node of nodes) setUp(node, false);
    for (const { cluster } of others) cluster.loseLeases();
    expect(await textOf(third.connection.run(GREET, contextOf()))).toBe(third.cluster.node.id);
    for (const node of [...others, third]) {
      setUp(node, true);
      await pass(1000);
    }
    expect(third.wires.map(({ closed }) => closed)).toEqual([true]);
    expect(others.map(({ wires }) => wires.map(({ closed }) => closed))).toEqual([[false], [false]]);
  });

  it("is connected again by an operator, at any node, after all have failed", async () => {
    const net = new MemoryNet();
    const failing = { fails: true };
    const nodes = [join(net, "a", failing), join(net, "b", failing)];
    await connect(...nodes);
    await pass(3000);
    failing.fails = false;
    const again = nodes[0]?.connection.connect();
    await pass(1000);
    await again;
    for (const { connection } of nodes) expect(connection.info().state).toBe("ready");
  });

  it("trusts another program only when it runs", async () => {
    const net = new MemoryNet();
    const spec = (more: object): ServerSpec => specOf({ command: "fake", restart: false, ...more });
    const { connection } = join(net, "a", { spec: spec({}) });
    const connecting = connection.connect();
    await pass(500);
    await connecting;
    connection.respec(spec({ args: ["next"], trust: "trusted" }));
    expect(connection.spec.trust).toBe("untrusted");
    await pass(500);
    await connection.settled();
    expect(connection.spec.trust).toBe("trusted");
  });
});
