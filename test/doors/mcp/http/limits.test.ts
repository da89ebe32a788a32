import { afterEach, describe, expect, it } from "vitest";
import { encodeNotification, encodeResult } from "../../../../src/doors/mcp/rpc-messages.ts";
import type { McpHttpOptions } from "../../../../src/doors/mcp/http/mcp-http.ts";
import type { Scope } from "../../../../src/model/caller.ts";
import { settle } from "../../../support/fake-clock.ts";
import { Bench, call, callerOf, initializeRequest, modernHeaders, modernRequest } from "./bench.ts";
import { FakeEngine } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

let engine: FakeEngine;
let bench: Bench;

async function start(options: Partial<McpHttpOptions> = {}): Promise<void> {
  engine = new FakeEngine();
  bench = await new Bench(engine, options).open();
}
afterEach(() => bench.close());

const IDLE_MS = 600_000;

describe("sessions", () => {
  it("[gate-08g] end when they were not used for a while", async () => {
    await start({ sessionIdleMs: IDLE_MS });
    const [used, unused] = [await bench.initialize(), await bench.initialize()];
    await bench.clock.advance(IDLE_MS - 1);
    expect((await bench.post(call(1, "echo"), used)).status).toBe(200);
    await bench.clock.advance(60_000);
    expect(bench.http.sessions).toBe(1);
    expect(engine.sessions.map(({ closed }) => closed)).toEqual([false, true]);
    expect((await bench.post(call(1, "echo"), unused)).status).toBe(404);
    await bench.clock.advance(IDLE_MS);
    expect(bench.http.sessions).toBe(0);
    expect(bench.clock.pending).toBe(0);
  });

  it("[gate-08g] an open stream and a running call count as use", async () => {
    await start({ sessionIdleMs: IDLE_MS });
    const [listening, calling] = [await bench.initialize("2025-06-18"), await bench.initialize("2025-06-18")];
    const stream = await bench.getStream(listening);
    const running = bench.postStream(call("long", "hold"), calling);
    await eventually(() => engine.held.has("long"));
    await bench.clock.advance(3 * IDLE_MS);
    expect(bench.http.sessions).toBe(2);
    engine.held.get("long")?.end(encodeResult("long", {}));
    expect((await (await running).rest()).at(-1)?.message["id"]).toBe("long");
    stream.cut();
    await eventually(() => bench.http.streams === 0);
    await bench.clock.advance(IDLE_MS + 60_000);
    expect(bench.http.sessions).toBe(0);
  });

  it("[gate-08e] are bounded; one that rests makes room, one that is in use does not", async () => {
    await start({ maxSessions: 2 });
    const [first, second] = [await bench.initialize("2025-06-18"), await bench.initialize("2025-06-18")];
    const refused = await bench.post(initializeRequest("2025-11-25"));
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "10"]);
    expect(refused.json).toMatchObject({ id: "init", error: { message: expect.stringContaining("sessions") } });
    await bench.post(initializeRequest("2025-11-25"));
    expect(bench.warnings).toHaveLength(1);
    await bench.getStream(first);
    await bench.clock.advance(60_000);
    expect((await bench.post(initializeRequest("2025-11-25"))).status).toBe(200);
    expect((await bench.post(call(1, "echo"), first)).status).toBe(200);
    expect((await bench.post(call(1, "echo"), second)).status).toBe(404);
    bench.http.reconfigure({ maxSessions: 3, maxStreams: 5, sessionIdleMs: IDLE_MS });
    expect((await bench.post(initializeRequest("2025-11-25"))).status).toBe(200);
  });
});

describe("[trust-13a] quotas of callers", () => {
  const as = (caller: string): Record<string, string> => ({ "x-caller": caller });
  const opens = async (caller: string): Promise<number> =>
    (await bench.post(initializeRequest("2025-06-18"), as(caller))).status;

  it("hold for each token and for each user, and say which is reached", async () => {
    await start({ maxSessions: 10, perCaller: { perToken: 2, perUser: 3 } });
    bench.callers.set("a1", callerOf("a1", { user: "ann" }));
    bench.callers.set("a2", callerOf("a2", { user: "ann" }));
    expect([await opens("a1"), await opens("a1"), await opens("a1")]).toEqual([200, 200, 503]);
    expect([await opens("a2"), await opens("a2")]).toEqual([200, 503]);
    const refused = await bench.post(initializeRequest("2025-06-18"), as("a2"));
    expect(refused.json).toMatchObject({
      error: { message: expect.stringMatching(/sessions of this user.*3/), data: { code: "rate_limited" } },
    });
    expect(JSON.stringify(refused.json)).toContain("http.limits.sessionsPerUser");
    expect([await opens("bob"), await opens("bob"), await opens("bob")]).toEqual([200, 200, 503]);
    expect(bench.warnings).toHaveLength(2);
  });

  it("are met by the caller's own sessions that rest, never by those of others", async () => {
    await start({ maxSessions: 10, perCaller: { perToken: 1 } });
    const others = await bench.initialize("2025-06-18", as("bob"));
    await bench.clock.advance(30_000);
    expect(await opens("ann")).toBe(200);
    await bench.clock.advance(30_000);
    // Bob's rests for long enough, Ann's does not.
    expect(await opens("ann")).toBe(503);
    await bench.clock.advance(30_000);
    expect(await opens("ann")).toBe(200);
    expect((await bench.post(call(1, "echo"), others)).status).toBe(200);
  });

  it("keep places for the operator when the hub is full", async () => {
    await start({ maxSessions: 3 });
    bench.callers.set("boss", callerOf("boss", { scopes: new Set<Scope>(["read", "call", "admin"]) }));
    expect([await opens("a"), await opens("b"), await opens("c"), await opens("d")]).toEqual([200, 200, 200, 503]);
    expect([await opens("boss"), await opens("boss"), await opens("d")]).toEqual([200, 200, 503]);
  });

  it("hold for streams", async () => {
    await start({ maxStreams: 10, streamsPerCaller: { perToken: 1 } });
    const [mine, again, others] = [
      await bench.initialize("2025-06-18", as("ann")),
      await bench.initialize("2025-06-18", as("ann")),
      await bench.initialize("2025-06-18", as("bob")),
    ];
    const stream = await bench.getStream(mine);
    const listen = async (session: Record<string, string>): Promise<number> =>
      (await bench.send("GET", "/mcp", { ...session, accept: "text/event-stream" })).status;
    expect(await listen(again)).toBe(503);
    await bench.getStream(others);
    stream.cut();
    await eventually(() => bench.http.streams === 1);
    await bench.getStream(again);
  });
});

describe("streams", () => {
  it("[gate-08e] are bounded; answers that would stream come as JSON then", async () => {
    await start({ maxStreams: 1 });
    const [first, second] = [await bench.initialize("2025-06-18"), await bench.initialize("2025-06-18")];
    await bench.getStream(first);
    const refused = await bench.send("GET", "/mcp", { ...second, accept: "text/event-stream" });
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "10"]);
    expect((await bench.send("GET", "/sse", { accept: "text/event-stream" })).status).toBe(503);
    const listen = await bench.modern("subscriptions/listen", { notifications: {} });
    expect(listen.status).toBe(503);
    expect((await bench.post(call(1, "progress"), second)).json).toMatchObject({ id: 1, result: { done: true } });
    expect((await bench.modern("tools/call", { name: "progress" })).json).toMatchObject({ result: { done: true } });
  });

  it("[gate-14a] idle sessions and finished requests leave no timer behind", async () => {
    await start();
    const session = await bench.initialize();
    for (let id = 0; id < 20; id++) await bench.post(call(id, "echo"), session);
    // One look at what is owed and one sweep, however many requests there were.
    expect(bench.clock.pending).toBe(2);
    await bench.clock.advance(500);
    expect(bench.clock.pending).toBe(1);
  });
});

describe("closing", () => {
  it("[gate-11a] lets calls finish, takes no new ones, tells the streams", async () => {
    await start();
    const session = await bench.initialize("2025-06-18");
    const stream = await bench.getStream(session);
    const running = bench.post(call("run", "hold"), session);
    const listening = bench.postStream(
      modernRequest("subscriptions/listen", {}),
      modernHeaders("subscriptions/listen", {}),
    );
    await eventually(() => engine.held.has("run") && bench.http.streams === 2);
    const closing = bench.http.close(30_000);
    const refusals = [
      await bench.post(call(2, "echo"), session),
      await bench.post(initializeRequest("2025-11-25")),
      await bench.modern("tools/list"),
      await bench.send("GET", "/sse", { accept: "text/event-stream" }),
    ];
    for (const { status, headers } of refusals) expect([status, headers["retry-after"]]).toEqual([503, "10"]);
    // An answer that the running call may wait for still comes through.
    expect((await bench.post({ jsonrpc: "2.0", id: 9, result: {} }, session)).status).toBe(202);
    expect(stream.ended).toBe(false);
    engine.held.get("run")?.end(encodeResult("run", { done: true }));
    await closing;
    expect((await running).json).toEqual({ jsonrpc: "2.0", id: "run", result: { done: true } });
    expect(await stream.next()).toBeUndefined();
    expect(stream.comments).toEqual(["the gateway is shutting down"]);
    const told = await (await listening).rest();
    expect(told.at(-1)?.message).toMatchObject({ result: { ended: true } });
    expect([bench.http.sessions, bench.clock.pending]).toEqual([0, 0]);
  });

  it("[gate-11a] waits no longer than it may", async () => {
    await start();
    const session = await bench.initialize("2025-06-18");
    const opening = bench.postStream(call("never", "hold"), session);
    await eventually(() => engine.held.has("never"));
    engine.held.get("never")?.sink.send(encodeNotification("notifications/progress", {}));
    const stream = await opening;
    let closed = false;
    const closing = bench.http.close(5_000).then(() => (closed = true));
    await bench.clock.advance(4_999);
    expect(closed).toBe(false);
    await bench.clock.advance(1);
    await closing;
    expect((await stream.rest()).map(({ message }) => message["method"])).toEqual(["notifications/progress"]);
    await settle();
    expect(engine.sessions[0]?.closed).toBe(true);
  });
});
