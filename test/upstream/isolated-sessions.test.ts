import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { userSecretFile } from "../../src/secrets/providers/local.ts";
import { Secrets } from "../../src/secrets/secrets.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { IsolatedConnections } from "../../src/upstream/isolated-connections.ts";
import { contextOf, depsOf, sessionOf, specOf } from "../support/connection-bench.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { FakeWire, legacyHandlers } from "../support/fake-wire.ts";

const use = { kind: "tool", name: "echo", arguments: {} } as const;
const HOUR = 3600_000;

interface SessionBench {
  readonly clock: FakeClock;
  readonly server: IsolatedConnections;
  /** The n-th connection is the n-th wire. */
  readonly wires: FakeWire[];
  readonly run: (id: string) => Promise<unknown>;
}

function bench(more: Partial<ConnectionDeps> = {}, entry: object = {}): SessionBench {
  const wires: FakeWire[] = [];
  const openWire: ConnectionDeps["openWire"] = (_kind, _spec, { env }) => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({
        tools: [{ name: "echo", inputSchema: { type: "object" } }],
        handlers: { "tools/call": () => ({ content: [{ type: "text", text: env["TOKEN"] ?? "" }] }) },
      }),
    );
    wires.push(wire);
    return wire;
  };
  const clock = new FakeClock();
  const spec = specOf({ command: "fake", isolation: "session", restart: false, ...entry });
  const server = new IsolatedConnections(spec, depsOf(clock, { openWire, ...more }));
  onTestFinished(() => server.close());
  return { clock, server, wires, run: (id) => server.run(use, contextOf({ session: sessionOf(id) })) };
}

const open = (wires: readonly FakeWire[]): boolean[] => wires.map(({ closed }) => !closed);

describe("[cage-05] a server with a connection for each session", () => {
  it("opens one at a session's first call, and keeps it for as long as the session lasts", async () => {
    const { clock, server, wires, run } = bench();
    await Promise.all([run("a"), run("a"), run("b")]);
    expect(open(wires)).toEqual([true, true]);
    // What the program remembers must not be lost because nobody asked for a while.
    await clock.advance(24 * HOUR);
    expect(open(wires)).toEqual([true, true]);
    expect(server.info()).toMatchObject({ state: "ready", sessions: { connections: 2, connected: 2 } });
    expect(server.info().users).toBeUndefined();
    expect(server.connectUser).toBeUndefined();
    server.endSession("a");
    expect(open(wires)).toEqual([false, true]);
    expect(server.info().sessions).toEqual({ connections: 1, connected: 1 });
    await run("b");
    expect(wires).toHaveLength(2);
  });

  it("ends a session's connection at once, also in the middle of a call, and takes none for a call that was given up", async () => {
    const { server, wires, run } = bench({
      openWire: () => {
        const wire = new FakeWire("stdio", legacyHandlers({ handlers: { "tools/call": () => undefined } }));
        wires.push(wire);
        return wire;
      },
    });
    const running = run("a");
    running.catch(() => {});
    await settle();
    server.endSession("a");
    await expect(running).rejects.toMatchObject({ code: expect.stringMatching(/cancelled|server_unavailable/) });
    expect(open(wires)).toEqual([false]);
    const late = contextOf({ session: sessionOf("a"), signal: AbortSignal.abort() });
    await expect(server.run(use, late)).rejects.toMatchObject({ code: "cancelled" });
    expect(wires).toHaveLength(1);
  });

  it("shows one list, that of the hub's own or of the first that is there", async () => {
    const { server, wires } = bench();
    server.startSession(sessionOf("a"));
    await settle();
    expect(server.definitions().tools).toHaveLength(1);
    server.startSession(sessionOf("b"));
    await settle();
    // There is a list already: who only looks needs no process.
    expect(wires).toHaveLength(1);
    server.endSession("a");
    expect(server.definitions().tools).toHaveLength(1);
    await server.connect();
    expect(wires).toHaveLength(2);
    const own = contextOf({ session: sessionOf("hub") });
    await server.run(use, own);
    expect(wires).toHaveLength(2);
    expect(server.info().sessions).toEqual({ connections: 0, connected: 0 });
  });

  it("gives what a server asks or says to the client of that session, whether it calls or not", async () => {
    const asked: string[] = [];
    const { server, wires } = bench({ offers: { elicitation: {} } });
    const heard: unknown[] = [];
    server.on("log", ({ session, user, message }) => heard.push([session, user, message.data]));
    await server.connect();
    for (const id of ["a", "b"]) {
      const onElicit = async () => {
        asked.push(id);
        return { action: "accept" };
      };
      await server.run(use, contextOf({ session: sessionOf(id, { onElicit }) }));
    }
    wires[2]?.ask("q", "elicitation/create", { message: "?", requestedSchema: { type: "object", properties: {} } });
    wires[1]?.notify("notifications/message", { level: "info", data: "hi" });
    wires[0]?.notify("notifications/message", { level: "info", data: "own" });
    await settle();
    expect(asked).toEqual(["b"]);
    expect(wires[2]?.answers()).toMatchObject([{ id: "q", result: { action: "accept" } }]);
    expect(heard).toEqual([
      ["a", undefined, "hi"],
      ["hub", undefined, "own"],
    ]);
  });

  it("lets the door say who answers for a session", async () => {
    const asked: unknown[] = [];
    const { server, wires } = bench({
      idleClient: (_server, user, session) => {
        asked.push([user, session]);
        return { key: "door", capabilities: {}, listRoots: async () => ({ roots: [{ uri: "file:///door" }] }) };
      },
    });
    await server.run(use, contextOf({ session: sessionOf("a", { user: "ann" }) }));
    wires[0]?.ask("q", "roots/list");
    await settle();
    expect(asked).toEqual([[undefined, "a"]]);
    expect(wires[0]?.answers()).toMatchObject([{ result: { roots: [{ uri: "file:///door" }] } }]);
  });

  it("gives each session the secrets of its user", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-sessions-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    for (const user of ["alice", "bob"]) {
      const file = userSecretFile(home, user, "TOKEN");
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `token of ${user}`, { mode: 0o600 });
    }
    const secrets = new Secrets({ env: {}, home, clock: new FakeClock() });
    const { server } = bench({ secrets }, { env: { TOKEN: "secret://user/TOKEN" } });
    const run = (id: string, user?: string): Promise<unknown> =>
      server.run(use, contextOf({ session: sessionOf(id, user === undefined ? {} : { user }) }));
    const got = await Promise.all([run("a", "alice"), run("b", "bob"), run("c", "alice")]);
    expect(got.map((each) => /token of \w+/.exec(JSON.stringify(each))?.[0])).toEqual([
      "token of alice",
      "token of bob",
      "token of alice",
    ]);
    expect(server.info().sessions?.connected).toBe(3);
    await expect(run("d")).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("opens no more than allowed", async () => {
    let most = 2;
    const { server, wires, run } = bench({ maxSessionConnections: () => most });
    await Promise.all([run("a"), run("b")]);
    await expect(run("c")).rejects.toMatchObject({
      code: "server_unavailable",
      hint: expect.stringContaining("limits.sessionConnections"),
      details: { sent: false },
    });
    server.resume(sessionOf("c"), ["x://1"]);
    expect(wires).toHaveLength(2);
    await run("a");
    server.endSession("a");
    await run("c");
    most = 3;
    await run("d");
    expect(open(wires)).toEqual([false, true, true, true]);
  });

  it("is disconnected and closed as a whole", async () => {
    const { server, wires, run } = bench();
    await server.connect();
    await Promise.all([run("a"), run("b")]);
    await server.disconnect();
    expect(open(wires)).toEqual([false, false, false]);
    expect(server.definitions().tools).toEqual([]);
    await run("a");
    await server.close();
    await expect(run("a")).rejects.toMatchObject({ code: "server_unavailable" });
    expect(open(wires)).toEqual([false, false, false, false]);
  });
});
