import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { bench, contextOf } from "../support/connection-bench.ts";
import { settle } from "../support/fake-clock.ts";
import { FakeWire, type Handlers, legacyHandlers } from "../support/fake-wire.ts";

const ECHO = { name: "echo", inputSchema: { type: "object" } };
const echo = { kind: "tool", name: "echo", arguments: {} } as const;

/** A connection whose n-th process is the n-th wire; the last one is used again. */
function setUp(entry: ServerEntryInput, servers: (() => FakeWire)[], more: Partial<ConnectionDeps> = {}) {
  const wires: FakeWire[] = [];
  const made = bench(entry, {
    openWire: () => {
      const make = servers[Math.min(wires.length, servers.length - 1)];
      if (make === undefined) throw new Error("no server");
      const wire = make();
      wires.push(wire);
      return wire;
    },
    ...more,
  });
  return { ...made, wires };
}

const good =
  (handlers: Handlers = {}) =>
  () =>
    new FakeWire(
      "stdio",
      legacyHandlers({ tools: [ECHO], handlers: { "tools/call": () => ({ content: [] }), ...handlers } }),
    );
const broken =
  (reason = "exited with code 1") =>
  () =>
    new FakeWire("stdio", { initialize: (_params, { wire }) => wire.lose(reason) });

describe("states", () => {
  it("[spine-07d] go from idle over connecting to ready, and to closed for good", async () => {
    const { connection, states, wires } = setUp({ command: "x" }, [good()]);
    await Promise.all([connection.connect(), connection.connect()]);
    expect(connection.info()).toMatchObject({ state: "ready", status: "connected", toolCount: 1, lastError: null });
    expect(wires).toHaveLength(1);
    await connection.close();
    await connection.connect();
    expect(states).toEqual(["idle", "connecting", "ready", "closed"]);
    expect(wires[0]?.closed).toBe(true);
    expect(connection.definitions().tools).toEqual([]);
  });

  it("[spine-07d] come back from idle after a disconnect", async () => {
    const { connection, states } = setUp({ command: "x" }, [good()]);
    await connection.connect();
    await connection.disconnect();
    expect(connection.definitions().tools).toEqual([]);
    await connection.connect();
    expect(states).toEqual(["idle", "connecting", "ready", "idle", "connecting", "ready"]);
    expect(connection.definitions().tools).toHaveLength(1);
  });

  it("[spine-07d] stay disabled", async () => {
    const { connection, wires } = setUp({ command: "x", enabled: false }, [good()]);
    await connection.connect();
    expect(connection.state.kind).toBe("disabled");
    expect(wires).toEqual([]);
    await expect(connection.run(echo, contextOf())).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("closes while connecting, without waiting for the server", async () => {
    const { connection, wires, states } = setUp({ command: "x" }, [
      () => new FakeWire("stdio", { initialize: () => undefined }),
    ]);
    const connecting = connection.connect();
    await settle();
    await connection.close();
    await connecting;
    expect(states).toEqual(["idle", "connecting", "closed"]);
    expect(wires[0]?.closed).toBe(true);
  });

  it("closes while lists are read, without waiting for them", async () => {
    const { connection, wires } = setUp({ command: "x" }, [good({ "tools/list": () => undefined })]);
    void connection.connect();
    await settle();
    await connection.disconnect();
    expect(connection.state.kind).toBe("idle");
    expect(wires[0]?.closed).toBe(true);
  });

  it("can be closed by a listener, in any state", async () => {
    for (const kind of ["connecting", "ready", "restarting"]) {
      const { connection, wires, states, clock } = setUp({ command: "x" }, [kind === "restarting" ? broken() : good()]);
      connection.on("state", ({ state }) => state.kind === kind && void connection.close());
      await connection.connect();
      await clock.advance(60_000);
      expect(states.at(-1)).toBe("closed");
      expect(wires.every(({ closed }) => closed)).toBe(true);
    }
  });

  it("connects again at once after a disconnect that is still going on", async () => {
    const { connection, wires } = setUp({ command: "x" }, [good({ "tools/list": () => undefined }), good()]);
    void connection.connect();
    await settle();
    void connection.disconnect();
    await connection.connect();
    expect(connection.state.kind).toBe("ready");
    expect(wires.map(({ closed }) => closed)).toEqual([true, false]);
    expect(connection.definitions().tools).toHaveLength(1);
  });

  it("gives up on a server that never answers, and says so", async () => {
    const silent = () => new FakeWire("stdio", { initialize: () => undefined });
    const { connection, clock } = setUp({ command: "x", timeout: 5000, restart: false }, [silent]);
    const connecting = connection.connect();
    await clock.advance(5000);
    await connecting;
    expect(connection.state).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/initialize got no answer within 5 s/),
      hint: expect.stringContaining("timeout"),
    });
  });
});

describe("restarts", () => {
  it("[spine-09a] back off exponentially up to the longest delay and give up at the maximum", async () => {
    const rule = { max: 4, initialDelay: 1000, maxDelay: 3000 };
    const { connection, clock, wires } = setUp({ command: "x", restart: rule }, [broken()]);
    const waits: number[] = [];
    connection.on("state", ({ state }) => state.kind === "restarting" && waits.push(state.nextAt - clock.now()));
    await connection.connect();
    expect(connection.state).toMatchObject({ kind: "restarting", attempt: 1, reason: "exited with code 1" });
    expect(connection.info().restart).toEqual({
      attempt: 1,
      nextAt: new Date(clock.now() + 1000).toISOString(),
      delayMs: 1000,
    });
    await clock.advance(60_000);
    expect(waits).toEqual([1000, 2000, 3000, 3000]);
    expect(wires).toHaveLength(5);
    expect(connection.state).toMatchObject({ kind: "failed", reason: "exited with code 1" });
    expect(connection.info().lastError).toBe("exited with code 1");
  });

  it("[spine-09a] do not happen before their time", async () => {
    const { connection, clock, wires } = setUp({ command: "x" }, [broken(), good()]);
    await connection.connect();
    await clock.advance(999);
    expect(wires).toHaveLength(1);
    await clock.advance(1);
    expect(connection.state.kind).toBe("ready");
  });

  it("[spine-09a] start a fresh count after a stable minute, and not before", async () => {
    const { connection, clock, wires } = setUp({ command: "x", restart: { max: 5 } }, [good()]);
    await connection.connect();
    wires.at(-1)?.lose();
    await clock.advance(1000);
    await clock.advance(59_000);
    wires.at(-1)?.lose();
    expect(connection.state).toMatchObject({ kind: "restarting", attempt: 2 });
    await clock.advance(2000);
    await clock.advance(60_000);
    wires.at(-1)?.lose();
    expect(connection.state).toMatchObject({ kind: "restarting", attempt: 1 });
  });

  it("[spine-09a] can be turned off", async () => {
    const { connection, clock, wires } = setUp({ command: "x", restart: false }, [good()]);
    await connection.connect();
    wires[0]?.lose("exited with code 7");
    await clock.advance(120_000);
    expect(connection.state).toMatchObject({ kind: "failed", reason: "exited with code 7" });
    expect(wires).toHaveLength(1);
  });

  it("[spine-08b] are not tried where waiting cannot help", async () => {
    const error = new ToolcribError("server_unavailable", "command not found: nope", {
      hint: "Install it.",
      details: { sent: false, reason: "ENOENT" },
    });
    const missing = (): FakeWire => Object.assign(new FakeWire("stdio"), { openError: error });
    const { connection } = setUp({ command: "nope" }, [missing]);
    await connection.connect();
    expect(connection.state).toEqual({ kind: "failed", reason: "command not found: nope", hint: "Install it." });
  });

  it("begin at once when somebody asks to connect", async () => {
    const { connection } = setUp({ command: "x" }, [broken(), good()]);
    await connection.connect();
    expect(connection.state.kind).toBe("restarting");
    await connection.connect();
    expect(connection.state.kind).toBe("ready");
  });

  it("[spine-09d] keep what is listed until the lists are read again", async () => {
    const news = () => new FakeWire("stdio", legacyHandlers({ tools: [ECHO, { name: "new", inputSchema: {} }] }));
    const { connection, clock, wires } = setUp({ command: "x" }, [good(), news]);
    await connection.connect();
    const counts: number[] = [];
    connection.onChange(() => counts.push(connection.definitions().tools.length));
    wires[0]?.lose();
    expect(connection.definitions().tools).toHaveLength(1);
    await clock.advance(1000);
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["echo", "new"]);
    expect(counts).toEqual([2]);
  });

  it("leave no process beside the new one", async () => {
    const { connection, clock, wires } = setUp({ command: "x" }, [good()]);
    await connection.connect();
    wires[0]?.lose();
    await clock.advance(1000);
    expect(wires.map(({ closed }) => closed)).toEqual([true, false]);
  });

  it("follow a timed-out call only where the spec says so", async () => {
    const hanging = good({ "tools/call": () => undefined });
    for (const onTimeout of [false, true]) {
      const { connection, clock, wires } = setUp({ command: "x", toolTimeout: 1000, restart: { onTimeout } }, [
        hanging,
      ]);
      await connection.connect();
      const call = connection.run(echo, contextOf()).catch((error: unknown) => error);
      await clock.advance(1000);
      expect(await call).toMatchObject({ code: "timeout" });
      expect(wires).toHaveLength(onTimeout ? 2 : 1);
      expect(connection.state.kind).toBe("ready");
    }
  });
});

describe("pings", () => {
  it("[spine-07d] are sent after 30 s of silence only", async () => {
    const { connection, clock, wires } = setUp({ command: "x" }, [good()]);
    await connection.connect();
    await clock.advance(20_000);
    await connection.run(echo, contextOf());
    await clock.advance(29_000);
    expect(wires[0]?.methods()).not.toContain("ping");
    await clock.advance(1000);
    expect(wires[0]?.methods()).toContain("ping");
    expect(connection.state.kind).toBe("ready");
  });

  it("[spine-07d] that are missed degrade; the third reconnects", async () => {
    const { connection, clock, wires, states } = setUp({ command: "x" }, [good({ ping: () => undefined }), good()]);
    await connection.connect();
    await clock.advance(40_000);
    expect(connection.state).toMatchObject({ kind: "degraded", missedPings: 1 });
    await expect(connection.run(echo, contextOf())).resolves.toEqual({ content: [] });
    await clock.advance(150_000);
    expect(wires).toHaveLength(2);
    expect(states).toEqual([
      "idle",
      "connecting",
      "ready",
      "degraded",
      "ready",
      "degraded",
      "degraded",
      "connecting",
      "ready",
    ]);
  });

  it("[spine-07d] make it ready again when answered, even by an error", async () => {
    let deaf = true;
    const ping = () => (deaf ? undefined : {});
    const { connection, clock, states } = setUp({ command: "x" }, [good({ ping })]);
    await connection.connect();
    await clock.advance(40_000);
    deaf = false;
    await clock.advance(30_000);
    expect(states.slice(-2)).toEqual(["degraded", "ready"]);
  });

  it("do not disturb a server at work on a call", async () => {
    const { connection, clock, wires } = setUp({ command: "x", toolTimeout: 200_000 }, [
      good({ "tools/call": () => undefined }),
    ]);
    await connection.connect();
    const call = connection.run(echo, contextOf()).catch(() => {});
    await clock.advance(150_000);
    expect(wires[0]?.methods()).not.toContain("ping");
    await connection.close();
    await call;
  });
});

describe("calls in other states", () => {
  it("wait for the connection to be made, also by themselves", async () => {
    const { connection } = setUp({ command: "x", autoConnect: false }, [good()]);
    expect(await connection.run(echo, contextOf())).toEqual({ content: [] });
  });

  it("stop waiting when the caller gives up", async () => {
    const { connection } = setUp({ command: "x" }, [() => new FakeWire("stdio", { initialize: () => undefined })]);
    const controller = new AbortController();
    const call = connection.run(echo, contextOf({ signal: controller.signal }));
    await settle();
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: "cancelled" });
    await connection.close();
  });

  it("are refused at once while it rests between restarts or has failed, with the reason", async () => {
    const { connection, clock } = setUp({ command: "x", restart: { max: 1 } }, [broken("exited with code 5")]);
    await connection.connect();
    await expect(connection.run(echo, contextOf())).rejects.toMatchObject({
      code: "server_unavailable",
      message: 'Server "fake" is restarting: exited with code 5',
      hint: expect.stringContaining("try again"),
    });
    await clock.advance(1000);
    await expect(connection.run(echo, contextOf())).rejects.toMatchObject({
      message: 'Server "fake" is failed: exited with code 5',
    });
  });

  it("that were under way fail when the server dies, and are not run again", async () => {
    const { connection, wires } = setUp({ command: "x" }, [good({ "tools/call": () => undefined })]);
    await connection.connect();
    const call = connection.run(echo, contextOf());
    await settle();
    wires[0]?.lose("exited with code 9");
    await expect(call).rejects.toMatchObject({
      code: "server_unavailable",
      message: 'Server "fake": exited with code 9',
      details: { sent: true },
    });
  });
});

describe("secrets", () => {
  it("[spine-08b] do not show in reasons, warnings and call errors", async () => {
    const leaky = () =>
      new FakeWire(
        "stdio",
        legacyHandlers({
          tools: [ECHO],
          handlers: { "tools/call": (_p, { wire }) => wire.lose("token hunter2-secret") },
        }),
      );
    const { connection } = setUp({ command: "x", env: { API_TOKEN: "${T}" }, restart: false }, [leaky], {
      env: { T: "hunter2-secret" },
    });
    await connection.connect();
    const error: unknown = await connection.run(echo, contextOf()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.not.stringContaining("hunter2") });
    expect(JSON.stringify(connection.info())).not.toContain("hunter2");
    expect(connection.info().lastError).toContain("token");
  });
});
