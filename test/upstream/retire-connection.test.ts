/** Servers that drop out, are taken out of service, or get another spec. */
import { describe, expect, it } from "vitest";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { IsolatedConnections } from "../../src/upstream/isolated-connections.ts";
import { bench, contextOf, depsOf, sessionOf, specOf } from "../support/connection-bench.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { FakeWire, legacyHandlers, modernHandlers } from "../support/fake-wire.ts";

const ECHO = { name: "echo", inputSchema: { type: "object" } };
const NEW = { name: "new", inputSchema: { type: "object" } };
const echo = { kind: "tool", name: "echo", arguments: {} } as const;
const GRACE_MS = 30_000;

const good = (tools = [ECHO]) =>
  new FakeWire("stdio", legacyHandlers({ tools, handlers: { "tools/call": () => ({ content: [] }) } }));
const slow = () =>
  new FakeWire("stdio", legacyHandlers({ tools: [ECHO], handlers: { "tools/call": () => undefined } }));
const broken = () => new FakeWire("stdio", { initialize: (_params, { wire }) => wire.lose("exited with code 3") });

/** The n-th process is the n-th wire. The tool names after each change are in `lists`. */
function setUp(wires: FakeWire[], entry: ServerEntryInput = {}, more: Partial<ConnectionDeps> = {}) {
  let next = 0;
  const openWire = (): FakeWire => {
    const wire = wires[next++];
    if (wire === undefined) throw new Error("no wire");
    return wire;
  };
  const made = bench({ command: "x", restart: false, ...entry }, { openWire, ...more });
  const lists: string[][] = [];
  const names = (): string[] => made.connection.definitions().tools.map(({ name }) => name);
  made.connection.onChange(() => lists.push(names()));
  return { ...made, lists, names };
}

function lastCall(wire: FakeWire): number {
  const sent = wire.sent.findLast(({ message }) => "method" in message && message.method === "tools/call")?.message;
  return sent !== undefined && "id" in sent ? Number(sent.id) : -1;
}

describe("a server that fails for good", () => {
  it("[gate-06a] stays listed for the grace period, and answers with the reason", async () => {
    const wire = good();
    const { connection, clock, names, lists } = setUp([wire]);
    await connection.connect();
    wire.lose("exited with code 1");
    expect(connection.state.kind).toBe("failed");
    expect(names()).toEqual(["echo"]);
    await clock.advance(GRACE_MS - 1);
    expect(names()).toEqual(["echo"]);
    await expect(connection.run(echo, contextOf())).rejects.toMatchObject({
      code: "server_unavailable",
      message: expect.stringContaining("exited with code 1"),
    });
    await clock.advance(1);
    expect(lists).toEqual([["echo"], []]);
  });

  it("[gate-06a] that comes back in time is replaced without a gap", async () => {
    const wire = good();
    const { connection, clock, lists } = setUp([wire, good([NEW])]);
    await connection.connect();
    wire.lose();
    await clock.advance(GRACE_MS / 2);
    await connection.connect();
    await clock.advance(2 * GRACE_MS);
    expect(lists).toEqual([["echo"], ["new"]]);
  });

  it("[gate-06a] is not listed longer for attempts in vain", async () => {
    const wire = good();
    const { connection, clock, names } = setUp([wire, broken(), broken(), broken()]);
    await connection.connect();
    wire.lose();
    for (let passed = 0; passed < GRACE_MS; passed += GRACE_MS / 3) {
      expect(names()).toEqual(["echo"]);
      await clock.advance(GRACE_MS / 3);
      await connection.connect();
      expect(connection.state.kind).toBe("failed");
    }
    await clock.advance(0);
    expect(names()).toEqual([]);
  });

  it("[gate-06a] is listed for as long as is wanted", async () => {
    const wire = good();
    const { connection, clock, names } = setUp([wire], {}, { graceMs: 1000 });
    await connection.connect();
    wire.lose();
    await clock.advance(1000);
    expect(names()).toEqual([]);
  });

  it("[gate-06a] has a new grace period after it was ready again", async () => {
    const [first, second] = [good(), good()];
    const { connection, clock, names } = setUp([first, second]);
    await connection.connect();
    first.lose();
    await clock.advance(GRACE_MS - 1);
    await connection.connect();
    second.lose();
    await clock.advance(GRACE_MS - 1);
    expect(names()).toEqual(["echo"]);
    await clock.advance(1);
    expect(names()).toEqual([]);
  });

  it.each(["disconnect", "close"] as const)("[gate-06a] is no longer listed after %s", async (end) => {
    const wire = good();
    const { connection, clock, names, lists } = setUp([wire]);
    await connection.connect();
    wire.lose();
    await connection[end]();
    expect(names()).toEqual([]);
    await clock.advance(2 * GRACE_MS);
    expect(lists).toEqual([["echo"], []]);
    expect(clock.pending).toBe(0);
  });
});

describe("a server that is retired", () => {
  it("[gate-07c] finishes what it is at, takes nothing new, and closes", async () => {
    const wire = slow();
    const { connection, clock } = setUp([wire]);
    await connection.connect();
    const running = connection.run(echo, contextOf());
    await settle();
    const retired = connection.retire();
    await expect(connection.run(echo, contextOf())).rejects.toMatchObject({
      code: "server_unavailable",
      message: 'Server "fake" was removed or replaced.',
    });
    await clock.advance(1000);
    expect(connection.state.kind).toBe("ready");
    const id = wire.sent.findLast(({ message }) => "method" in message && message.method === "tools/call")?.message;
    wire.answer(id !== undefined && "id" in id ? Number(id.id) : -1, { content: [], late: true });
    expect(await running).toMatchObject({ late: true });
    await retired;
    expect([connection.state.kind, wire.closed, clock.pending]).toEqual(["closed", true, 0]);
  });

  it("[gate-07c] lets a call that makes progress finish, however often that restarts its timeout", async () => {
    const wire = slow();
    const { connection, clock } = setUp([wire], { toolTimeout: 5000 });
    await connection.connect();
    const running = connection.run(echo, contextOf());
    await settle();
    const call = wire.sent.length - 1;
    const retired = connection.retire();
    expect(connection.retire()).toBe(retired);
    for (let step = 1; step <= 11; step++) {
      await clock.advance(4000);
      wire.notify("notifications/progress", { progressToken: call, progress: step });
    }
    expect(connection.state.kind).toBe("ready");
    wire.answer(call, { content: [], late: true });
    expect(await running).toMatchObject({ late: true });
    await retired;
    expect([connection.state.kind, clock.pending]).toEqual(["closed", 0]);
  });

  it("[gate-07c] waits no longer than a call may take", async () => {
    const asks = { resultType: "input_required", inputRequests: {}, requestState: "more" };
    const handlers = { "tools/call": () => undefined };
    const wire = new FakeWire("stdio", modernHandlers({ tools: [ECHO], handlers }));
    const { connection, clock } = setUp([wire], { toolTimeout: 5000 });
    await connection.connect();
    const running = connection.run(echo, contextOf());
    running.catch(() => {});
    await settle();
    const retired = connection.retire();
    // Each round of questions has a time of its own.
    for (let round = 0; round < 10; round++) {
      await clock.advance(4900);
      wire.answer(lastCall(wire), asks);
      await settle();
    }
    expect(connection.state.kind).toBe("ready");
    await clock.advance(1000);
    await retired;
    expect(connection.state.kind).toBe("closed");
    await expect(running).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it.each(["disconnect", "close"] as const)("[gate-07c] cancels nobody's call by %s: it is cut off", async (end) => {
    const { connection } = setUp([slow()]);
    await connection.connect();
    const running = connection.run(echo, contextOf());
    running.catch(() => {});
    await settle();
    await connection[end]();
    await expect(running).rejects.toMatchObject({ code: "server_unavailable", details: { sent: true } });
  });

  it("[gate-07c] closes at once if nothing is under way, whatever its state", async () => {
    for (const wire of [good(), broken()]) {
      const { connection } = setUp([wire]);
      await connection.connect();
      await connection.retire();
      expect(connection.state.kind).toBe("closed");
    }
    const { connection } = setUp([good()]);
    await connection.retire();
    expect(connection.state.kind).toBe("closed");
  });

  it("[gate-07c] does so for all its users", async () => {
    const clock = new FakeClock();
    const wires: FakeWire[] = [];
    const openWire = (): FakeWire => {
      wires.push(slow());
      return wires.at(-1) ?? slow();
    };
    const server = new IsolatedConnections(specOf({ command: "x", isolation: "user" }), depsOf(clock, { openWire }));
    const ann = contextOf({ session: sessionOf("a", { user: "ann" }) });
    const running = server.run(echo, ann);
    await settle();
    const retired = server.retire();
    for (const user of ["ann", "bob"]) {
      const context = contextOf({ session: sessionOf("b", { user }) });
      await expect(server.run(echo, context)).rejects.toThrow("was removed or replaced");
    }
    const call = wires[0]?.sent.at(-1)?.message;
    wires[0]?.answer(call !== undefined && "id" in call ? Number(call.id) : -1, { content: [], late: true });
    expect(await running).toMatchObject({ late: true });
    await retired;
    expect(wires.map(({ closed }) => closed)).toEqual([true]);
  });
});

describe("another spec", () => {
  const ENTRY = { command: "x", args: ["a"], env: { A: "1" } };

  it("[gate-07c] that leaves the link alone is taken over under it", async () => {
    const wire = slow();
    const { connection, clock } = setUp([wire], ENTRY);
    await connection.connect();
    const spec = specOf({
      ...ENTRY,
      name: "Another",
      tags: ["t"],
      roles: ["r"],
      trust: "trusted",
      toolPrefix: "p_",
      tools: { deny: ["x"] },
      toolTimeout: 1234,
      timeout: 999,
      autoConnect: false,
      restart: { max: 1 },
    });
    expect(connection.respec({ ...spec, origin: { file: "other", dialect: "claude" } })).toBe(true);
    expect(connection.spec.name).toBe("Another");
    expect(connection.info()).toMatchObject({
      state: "ready",
      name: "Another",
      tags: ["t"],
      origin: { file: "other" },
    });
    expect(wire.closed).toBe(false);
    const running = connection.run(echo, contextOf());
    running.catch(() => {});
    await clock.advance(1234);
    await expect(running).rejects.toMatchObject({ code: "timeout" });
    wire.lose();
    expect(connection.state).toMatchObject({ kind: "restarting" });
  });

  it.each([
    { ...ENTRY, args: ["b"] },
    { ...ENTRY, env: { A: "2" } },
    { ...ENTRY, cwd: "/tmp" },
    { ...ENTRY, enabled: false },
    { ...ENTRY, isolation: "user" as const },
    { url: "https://x.example" },
  ])("[gate-07c] that concerns the link is refused: %o", async (entry) => {
    const { connection } = setUp([good()], ENTRY);
    const before = connection.spec;
    expect(connection.respec(specOf({ restart: false, ...entry }))).toBe(false);
    expect(connection.spec).toBe(before);
  });

  it("[gate-07c] is taken over for every user", () => {
    const entry = { command: "x", isolation: "user" } as const;
    const server = new IsolatedConnections(specOf(entry), depsOf(new FakeClock(), { openWire: () => good() }));
    expect(server.respec(specOf({ ...entry, name: "Another" }))).toBe(true);
    expect(server.respec(specOf({ ...entry, command: "y" }))).toBe(false);
    expect(server.info().name).toBe("Another");
  });
});

describe("the advice of a server with a connection for each user", () => {
  it("[gate-05c] is what it tells that user, else what it tells the owner", async () => {
    const openWire = (_kind: unknown, _spec: unknown, _resolved: unknown, deps: ConnectionDeps): FakeWire =>
      new FakeWire("stdio", {
        ...legacyHandlers(),
        initialize: () => ({
          protocolVersion: "2025-11-25",
          capabilities: {},
          serverInfo: {},
          instructions: `For ${deps.user ?? "the owner"}.`,
        }),
      });
    const server = new IsolatedConnections(
      specOf({ command: "x", isolation: "user" }),
      depsOf(new FakeClock(), { openWire }),
    );
    expect(server.instructions("ann")).toBeNull();
    await server.connect();
    await server.connectUser?.("ann");
    expect(server.instructions()).toBe("For the owner.");
    expect(server.instructions("ann")).toBe("For ann.");
    expect(server.instructions("bob")).toBe("For the owner.");
    await server.close();
  });

  it("[gate-02c] hands log level and changed roots to all of them, those who come later included", async () => {
    const wires: FakeWire[] = [];
    const openWire = (): FakeWire => {
      const handlers = { "logging/setLevel": () => ({}) };
      const wire = new FakeWire("stdio", legacyHandlers({ capabilities: { logging: {} }, handlers }));
      wires.push(wire);
      return wire;
    };
    const offers = { roots: { listChanged: true } };
    const spec = specOf({ command: "x", isolation: "user" });
    const server = new IsolatedConnections(spec, depsOf(new FakeClock(), { openWire, offers }));
    await server.connectUser?.("ann");
    await server.setLogLevel("error");
    await server.connectUser?.("bob");
    await server.rootsChanged();
    expect(wires.map((wire) => wire.params("logging/setLevel"))).toEqual([{ level: "error" }, { level: "error" }]);
    for (const wire of wires) expect(wire.methods()).toContain("notifications/roots/list_changed");
    await server.close();
  });
});
