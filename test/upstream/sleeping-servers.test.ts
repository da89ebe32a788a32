import { describe, expect, it, onTestFinished } from "vitest";
import { Connection } from "../../src/upstream/connection.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { IsolatedConnections } from "../../src/upstream/isolated-connections.ts";
import { KnownLists } from "../../src/upstream/known-lists.ts";
import type { StoredList } from "../../src/store/store.ts";
import { type ServerConnection, serverConnection } from "../../src/upstream/server-connection.ts";
import { contextOf, depsOf, sessionOf, specOf } from "../support/connection-bench.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { FakeWire, legacyHandlers, RpcFailure } from "../support/fake-wire.ts";

const use = { kind: "tool", name: "echo", arguments: {} } as const;
const MINUTE = 60_000;
const TOOL = { name: "echo", inputSchema: { type: "object" } };

/** A server on wires of the test, and what is remembered of it. */
class Bench {
  readonly clock = new FakeClock();
  readonly wires: FakeWire[] = [];
  readonly known = new KnownLists({ store: undefined, clock: this.clock, warn: () => {} });
  resources = [{ uri: "x://1", name: "one" }];
  answer: () => unknown = () => ({ content: [] });
  listing: () => unknown = () => ({ tools: [TOOL] });

  make(entry: object): ServerConnection {
    const spec = specOf({ command: "fake", restart: false, ...entry });
    const openWire: ConnectionDeps["openWire"] = (_kind, _spec, _resolved, { user = "the owner" }) => {
      const wire = new FakeWire(
        "stdio",
        legacyHandlers({
          capabilities: { tools: {}, resources: { subscribe: true } },
          handlers: {
            initialize: ({ protocolVersion }) => ({
              protocolVersion,
              capabilities: { tools: {}, resources: { subscribe: true } },
              serverInfo: { name: "fake", version: "1" },
              instructions: `for ${user}`,
            }),
            "tools/list": () => this.listing(),
            "resources/list": () => ({ resources: this.resources }),
            "resources/subscribe": () => ({}),
            "resources/unsubscribe": () => ({}),
            "tools/call": () => this.answer(),
          },
        }),
      );
      this.wires.push(wire);
      return wire;
    };
    const made = serverConnection(spec, depsOf(this.clock, { openWire }), this.known.memoryOf(spec));
    onTestFinished(() => made.close());
    return made;
  }

  open(): boolean[] {
    return this.wires.map(({ closed }) => !closed);
  }
}

describe("[counter-06e] a server with `idle`", () => {
  it("sleeps after that time without use, and its next use wakes it", async () => {
    const bench = new Bench();
    const server = bench.make({ idle: "15m" });
    await server.connect();
    await bench.clock.advance(10 * MINUTE);
    await server.run(use, contextOf());
    await bench.clock.advance(14 * MINUTE);
    expect(server.info().state).toBe("ready");
    await bench.clock.advance(MINUTE);
    expect(server.info()).toMatchObject({ state: "idle", sleeping: true, toolCount: 1 });
    expect(bench.open()).toEqual([false]);
    await server.run(use, contextOf());
    expect(bench.open()).toEqual([false, true]);
    expect(server.info().sleeping).toBeUndefined();
  });

  it("stays while a call is in progress", async () => {
    const bench = new Bench();
    const server = bench.make({ idle: "15m", toolTimeout: 10 * 3600_000 });
    await server.connect();
    const answer = Promise.withResolvers<object>();
    bench.answer = () => answer.promise;
    const running = server.run(use, contextOf());
    await bench.clock.advance(60 * MINUTE);
    expect(server.info().state).toBe("ready");
    answer.resolve({ content: [] });
    await running;
    await bench.clock.advance(14 * MINUTE);
    expect(server.info().state).toBe("ready");
    await bench.clock.advance(MINUTE);
    expect(server.info().state).toBe("idle");
  });

  it("stays while a session follows one of its resources", async () => {
    const bench = new Bench();
    const server = bench.make({ idle: "15m" });
    await server.connect();
    await server.run({ kind: "subscribe", uri: "x://1" }, contextOf({ session: sessionOf("s1") }));
    await bench.clock.advance(60 * MINUTE);
    expect(server.info().state).toBe("ready");
    server.endSession("s1");
    await bench.clock.advance(15 * MINUTE);
    expect(server.info().state).toBe("idle");
  });

  it("stays if it lists nothing, because nothing could wake it", async () => {
    const bench = new Bench();
    bench.listing = () => ({ tools: [] });
    bench.resources = [];
    const server = bench.make({ idle: "15m" });
    await server.connect();
    await bench.clock.advance(60 * MINUTE);
    expect(server.info().state).toBe("ready");
  });

  it("takes over another time, or none, from a changed entry", async () => {
    const bench = new Bench();
    const server = bench.make({ idle: "15m" });
    await server.connect();
    expect(server.respec(specOf({ command: "fake", restart: false }))).toBe(true);
    await bench.clock.advance(60 * MINUTE);
    expect(server.info().state).toBe("ready");
    expect(server.respec(specOf({ command: "fake", restart: false, idle: "30s" }))).toBe(true);
    await bench.clock.advance(30_000);
    expect(server.info().state).toBe("idle");
  });

  it("has no default", async () => {
    const bench = new Bench();
    const server = bench.make({ start: "lazy" });
    await server.connect();
    await bench.clock.advance(24 * 60 * MINUTE);
    expect(server.info().state).toBe("ready");
  });

  it("puts the connection of each session to sleep by itself", async () => {
    const bench = new Bench();
    const server = bench.make({ isolation: "session", idle: "15m" });
    const run = (id: string) => server.run(use, contextOf({ session: sessionOf(id) }));
    await Promise.all([run("a"), run("b")]);
    await bench.clock.advance(10 * MINUTE);
    await run("b");
    await bench.clock.advance(10 * MINUTE);
    expect(bench.open()).toEqual([false, true]);
    expect(server.definitions().tools).toEqual([TOOL]);
    await run("a");
    expect(bench.open()).toEqual([false, true, true]);
  });
});

describe("[counter-06f] what is remembered of a lazy server", () => {
  it("is not taken from lists that could not be read", async () => {
    const bench = new Bench();
    bench.listing = () => {
      throw new RpcFailure(-32603, "not now");
    };
    const server = bench.make({ start: "lazy" });
    await server.connect();
    expect(server.info()).toMatchObject({ state: "ready", toolCount: 0 });
    expect(bench.known.has(server.spec)).toBe(false);
    bench.listing = () => ({ tools: [TOOL] });
    await server.refresh();
    expect(bench.known.has(server.spec)).toBe(true);
  });

  it("of one user is listed for all, and that user's instructions are for no one else", async () => {
    const bench = new Bench();
    const entry = { start: "lazy", isolation: "user" };
    const first = bench.make(entry);
    const session = (user: string) => sessionOf(`s-${user}`, { user, owner: false });
    await first.run(use, contextOf({ session: session("alice") }));
    expect(first.instructions("alice")).toBe("for alice");
    await first.close();

    const next = bench.make(entry);
    expect(next).toBeInstanceOf(IsolatedConnections);
    expect(next.info()).toMatchObject({ state: "idle", sleeping: true, toolCount: 1 });
    expect(next.definitions().tools).toEqual([TOOL]);
    expect(next.instructions("bob")).toBeNull();
    expect(next.instructions()).toBeNull();
    // Pins compare it with what they have.
    expect(next.listedInstructions?.()).toBe("for alice");
    await next.connect();
    expect(next.instructions("bob")).toBe("for the owner");
  });

  it("is for a connection of the hub's owner what that one said", async () => {
    const bench = new Bench();
    const first = bench.make({ start: "lazy", isolation: "user" });
    await first.connect();
    await first.run(use, contextOf({ session: sessionOf("s", { user: "alice", owner: false }) }));
    await first.close();
    expect(bench.make({ start: "lazy", isolation: "user" }).instructions("bob")).toBe("for the owner");
  });

  it("is not shown of a server that is disabled", () => {
    const bench = new Bench();
    const server = bench.make({ start: "lazy", enabled: false });
    expect(server).toBeInstanceOf(Connection);
    expect(server.info()).toMatchObject({ state: "disabled", toolCount: 0 });
  });
});

describe("[speed-05d] what is known of servers that start together", () => {
  function memory() {
    const clock = new FakeClock();
    const puts: string[][] = [];
    const lists = {
      get: async () => [],
      put: async (entries: readonly StoredList[]) => void puts.push(entries.map(({ server }) => server)),
      remove: async (server: string) => void puts.push([`without ${server}`]),
      prune: async () => {},
    };
    const known = new KnownLists({ store: { lists }, clock, warn: () => {} });
    const save = (id: string, tool: string): void =>
      known.memoryOf({ ...specOf({ command: id }), id }).save({
        transport: "stdio",
        agreement: { era: "legacy", version: "2025-11-25", capabilities: {}, serverInfo: null, instructions: null },
        definitions: { tools: [{ ...TOOL, name: tool }], resources: [], templates: [], prompts: [] },
      });
    return { clock, puts, known, save };
  }

  it("is written once, with the latest lists of each", async () => {
    const { clock, puts, known, save } = memory();
    for (const [id, tool] of [
      ["a", "one"],
      ["b", "one"],
      ["a", "two"],
    ] as const)
      save(id, tool);
    await settle();
    expect(puts).toEqual([]);
    await clock.advance(5000);
    expect(puts).toEqual([["a", "b"]]);
    await known.settled();
    expect(puts).toHaveLength(1);
  });

  it("is written when the hub closes, without servers that were removed meanwhile", async () => {
    const { puts, known, save } = memory();
    save("a", "one");
    save("b", "one");
    known.forget("a");
    await known.settled();
    expect(puts).toEqual([["without a"], ["b"]]);
  });
});
