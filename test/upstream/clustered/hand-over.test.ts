import { afterEach, describe, expect, it } from "vitest";
import type { SessionContext } from "../../../src/model/source.ts";
import { contextOf, sessionOf, specOf } from "../../support/connection-bench.ts";
import { settle } from "../../support/fake-clock.ts";
import type { Handlers } from "../../support/fake-wire.ts";
import { MemoryNet } from "./memory-cluster.ts";
import { GREET, LEASE_MS, MemoryNodes, type Node, owner, textOf } from "./memory-nodes.ts";

describe("a server of a cluster that changes hands", () => {
  const nodesHere = new MemoryNodes();
  const join = nodesHere.join.bind(nodesHere);
  const pass = nodesHere.pass.bind(nodesHere);
  const connect = nodesHere.connect.bind(nodesHere);
  afterEach(() => nodesHere.close());

  const open = ({ wires }: Node): number => wires.filter(({ closed }) => !closed).length;
  const plain = (id: string): ReturnType<typeof specOf> => specOf({ command: "fake", restart: false }, id);

  it("[scale-09b] goes on when events of a call do not reach the node of the caller", async () => {
    const net = new MemoryNet();
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const handlers: Handlers = {
      "tools/call": async (params, { wire }) => {
        const { progressToken } = params["_meta"] as { progressToken: string };
        wire.notify("notifications/progress", { progressToken, progress: 1 });
        await new Promise((resolve) => setTimeout(resolve, 20));
        return { content: [{ type: "text", text: "done" }] };
      },
    };
    const nodes = [join(net, "a", { handlers }), join(net, "b", { handlers })];
    await connect(...nodes);
    const [, there] = owner(...nodes);
    const onProgress = (): void => {
      throw new Error("cut off");
    };
    expect(await textOf(there.connection.run(GREET, contextOf({ onProgress })))).toBe("done");
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("[scale-09c] waits for calls of a holder that leaves, however long they may take, also at the same node", async () => {
    const net = new MemoryNet();
    const { promise, resolve } = Promise.withResolvers<object>();
    const nodes = ["a", "b"].map((id) => join(net, id, { handlers: { "tools/call": () => promise } }));
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    const long = here.connection.run(GREET, contextOf());
    await settle();
    const retiring = here.connection.retire();
    const again = here.add(specOf({ command: "fake", restart: false }));
    const waiting = Promise.all([there.connection, again].map((each) => each.run(GREET, contextOf())));
    let isOver = false;
    void waiting.finally(() => (isOver = true)).catch(() => {});
    await pass(45_000);
    expect(isOver).toBe(false);
    resolve({ content: [{ type: "text", text: "done" }] });
    expect(await textOf(long)).toBe("done");
    await pass(4000);
    expect(await waiting).toHaveLength(2);
    expect(open(here) + open(there)).toBe(1);
    await retiring;
  });

  it("[scale-09b] a call that had not reached its program goes on to the next holder", async () => {
    const net = new MemoryNet();
    const spec = specOf({ command: "fake", restart: false, isolation: "session" });
    const nodes = ["a", "b"].map((id) => join(net, id, { spec }));
    await connect(...nodes);
    const [here, there] = owner(...nodes);
    // The process of its session is being started when the lease is lost.
    const running = there.connection.run(GREET, contextOf());
    await Promise.resolve();
    here.cluster.loseLeases();
    await pass(2000);
    expect(["a", "b"]).toContain(await textOf(running));
  });

  describe("with sessions that end", () => {
    const spec = specOf({ command: "fake", restart: false, isolation: "session" });
    const use = async (node: Node, session: SessionContext): Promise<void> => {
      node.connection.startSession(session);
      await node.connection.run(GREET, contextOf({ session, client: session.client }));
    };

    it("[scale-06b] ends what it keeps for them, although it was not told, and nothing else", async () => {
      const net = new MemoryNet();
      const nodes = [join(net, "a", { spec }), join(net, "b", { spec })];
      await connect(...nodes);
      const [here, there] = owner(...nodes);
      await use(there, sessionOf("ends"));
      await use(there, sessionOf("stays"));
      expect(open(here)).toBe(3);
      there.cluster.loses = ({ head }) => head["method"] === "end-session";
      there.connection.endSession("ends");
      await settle();
      expect(open(here)).toBe(3);
      await pass(LEASE_MS * 2);
      expect(open(here)).toBe(2);
    });
  });

  describe("to spread the load", () => {
    const LONG = LEASE_MS * 20;
    const specs = ["one", "two", "three"].map(plain);

    it("[scale-06a] waits until one has long been idle, and moves no more than it has to", async () => {
      const net = new MemoryNet();
      const a = join(net, "a", { specs });
      await connect(a);
      for (const each of a.connections) await each.run(GREET, contextOf());
      const b = join(net, "b", { specs });
      void connect(b);
      await pass(LEASE_MS * 8);
      expect([open(a), open(b)]).toEqual([3, 0]);
      await pass(LONG);
      expect([open(a), open(b)]).toEqual([2, 1]);
      await pass(LONG);
      expect([a.wires.length, b.wires.length]).toEqual([3, 1]);
    });

    it("[whole-41b] moves one that was never used soon, and none that is", async () => {
      const net = new MemoryNet();
      const a = join(net, "a", { specs });
      await connect(a);
      const [used] = a.connections;
      await used?.run(GREET, contextOf());
      const others = [join(net, "b", { specs }), join(net, "c", { specs })];
      void connect(...others);
      await pass(LEASE_MS * 8);
      expect([a, ...others].map(open)).toEqual([1, 1, 1]);
      expect(await textOf(used?.run(GREET, contextOf()) ?? expect.fail())).toBe("a");
      expect(a.wires.length).toBe(3);
    });

    it("[whole-41b] leaves a node that comes empty while all are in use, and gives it the one that becomes idle", async () => {
      const net = new MemoryNet();
      const a = join(net, "a", { specs });
      await connect(a);
      const b = join(net, "b", { specs });
      void connect(b);
      const work = async (leases: number, ...busy: typeof a.connections): Promise<void> => {
        for (let lease = 0; lease < leases; lease += 4) {
          for (const each of busy) expect(await textOf(each.run(GREET, contextOf()))).toBe("a");
          await pass(LEASE_MS * 4);
        }
      };
      // Longer than any server has to be idle.
      await work(60, ...a.connections);
      expect([open(a), open(b)]).toEqual([3, 0]);
      await work(60, ...a.connections.slice(1));
      expect([open(a), open(b)]).toEqual([2, 1]);
      expect([a.wires.length, b.wires.length]).toEqual([3, 1]);
    });

    it("[whole-41a] nodes that start together have one each", async () => {
      for (let round = 0; round < 10; round += 1) {
        const net = new MemoryNet();
        const named = ["one", "two", "three"].map((id) => plain(`${id}${round}`));
        const nodes = ["a", "b", "c"].map((id) => join(net, id, { specs: named }));
        await connect(...nodes);
        expect(nodes.map(open)).toEqual([1, 1, 1]);
      }
    });

    it("[scale-06a] leaves alone what sessions have processes of or follow", async () => {
      const net = new MemoryNet();
      const seated = specs.map((spec) => ({ ...spec, isolation: "session" as const }));
      const a = join(net, "a", { specs: seated });
      const other = new MemoryNet();
      const c = join(other, "c", { specs });
      await connect(a, c);
      const session = sessionOf("s1");
      const context = contextOf({ session });
      for (const each of a.connections) await each.run(GREET, context);
      for (const each of c.connections) await each.run({ kind: "subscribe", uri: "note://one" }, context);
      void connect(join(net, "b", { specs: seated }), join(other, "d", { specs }));
      await pass(LONG);
      expect(open(a)).toBe(6);
      expect(open(c)).toBe(3);
      for (const each of c.connections) each.endSession("s1");
      await pass(LONG);
      expect(open(c)).toBe(2);
    });

    it("[scale-06a] gives nothing to a node that would not run it, nor again to one that did not", async () => {
      const net = new MemoryNet();
      const a = join(net, "a", { specs });
      await connect(a);
      join(net, "b", { specs: specs.map((spec) => ({ ...spec, enabled: false })) });
      join(net, "c", { specs: specs.map((spec) => ({ ...spec, args: ["other"] })) });
      await pass(LONG * 2);
      expect(a.wires).toHaveLength(3);

      const other = new MemoryNet();
      const d = join(other, "d", { specs });
      await connect(d);
      const { cluster } = join(other, "e", { specs });
      Object.assign(cluster.leases, { claim: async () => undefined });
      await pass(LONG * 6);
      // Each was offered once.
      expect(open(d)).toBe(3);
      expect(d.wires).toHaveLength(6);
    });
  });

  it("[scale-06a] a wish ends with the entry that it was about", async () => {
    const net = new MemoryNet();
    const a = join(net, "a");
    await connect(a);
    const disconnecting = a.connection.disconnect();
    await pass(500);
    await disconnecting;
    expect(a.connection.info().state).toBe("idle");
    await a.shared.wish("fake", "of another entry", false);
    await connect(a);
    expect(a.connection.info().state).toBe("ready");
    const retiring = a.connection.retire();
    await pass(3000);
    await retiring;
    expect([...net.values.keys()]).toEqual([]);
  });

  it("[scale-06c] what sessions follow at a replica is followed in one place when the first is back", async () => {
    const net = new MemoryNet();
    const spec = specOf({ command: "fake", restart: false, replicas: 2 });
    const nodes = ["a", "b", "c"].map((id) => join(net, id, { spec }));
    await connect(...nodes);
    const holderOf = (slot: number): Node | undefined =>
      nodes.find(({ cluster }) => net.leases.get(`server.fake.${slot}`)?.holder === cluster.node.id);
    const [first, second] = [holderOf(0), holderOf(1)];
    const third = nodes.find((node) => node !== first && node !== second);
    const session = sessionOf("s1");
    third?.connection.on("state", ({ state }) => {
      if (state.kind === "ready") third.connection.resume(session, ["note://one"]);
    });
    await third?.connection.run({ kind: "subscribe", uri: "note://one" }, contextOf({ session }));
    expect(first?.wires[0]?.methods()).toContain("resources/subscribe");
    first?.cluster.die();
    await pass(1000);
    expect(third?.wires[0]?.methods()).toContain("resources/subscribe");
    const methods = second?.wires[0]?.methods() ?? [];
    expect(methods.filter((each) => each.startsWith("resources/sub")).length).toBe(
      methods.filter((each) => each.startsWith("resources/unsub")).length,
    );
    // A node that counts as dead keeps its name while it is shown.
    expect(second?.shared.nameOf(first?.cluster.node.id ?? "")).toBe(first?.cluster.node.name);
  });
});
