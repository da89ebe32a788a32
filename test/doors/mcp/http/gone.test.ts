import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { settle } from "../../../support/fake-clock.ts";
import { Bench, call, initializeRequest, modernHeaders, modernRequest } from "./bench.ts";
import { FakeEngine } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

let engine: FakeEngine;
let bench: Bench;

beforeEach(async () => {
  engine = new FakeEngine();
  bench = await new Bench(engine, { maxStreams: 3, maxSessions: 3 }).open();
});
afterEach(() => bench.close());

/** Sends a request whose client is gone before the transport sees it. */
async function leave(path: string, headers: Record<string, string>, body?: unknown): Promise<void> {
  const before = bench.handedOver;
  bench.handsOverLate = true;
  const sent = bench.cut(path, headers, body);
  await eventually(() => bench.arrived > before);
  sent.cut();
  await eventually(() => bench.handedOver > before);
  bench.handsOverLate = false;
  await settle();
}

describe("a client that has left before its request is looked at", () => {
  it("[gate-08e] [gate-11c] leaves no session of HTTP+SSE and no stream", async () => {
    for (let times = 0; times < 5; times++) await leave("/sse", { accept: "text/event-stream" });
    expect(engine.sessions.every(({ closed }) => closed)).toBe(true);
    expect([bench.http.sessions, bench.http.streams]).toEqual([0, 0]);
    const stream = await bench.getStream({}, "/sse");
    expect((await stream.next())?.event).toBe("endpoint");
  });

  it("[gate-08e] [gate-11c] leaves no stream of a session", async () => {
    const session = await bench.initialize("2025-06-18");
    for (let times = 0; times < 5; times++) await leave("/mcp", { ...session, accept: "text/event-stream" });
    expect(bench.http.streams).toBe(0);
    const stream = await bench.getStream(session);
    engine.sessions[0]?.tell("notifications/tools/list_changed");
    expect((await stream.next())?.message["method"]).toBe("notifications/tools/list_changed");
  });

  it("[gate-08e] [gate-11c] leaves no session that it began", async () => {
    for (let times = 0; times < 5; times++) await leave("/mcp", {}, initializeRequest("2025-06-18"));
    await eventually(() => bench.http.sessions === 0);
    expect((await bench.post(initializeRequest("2025-06-18"))).status).toBe(200);
  });

  it("[gate-11c] has its legacy call cancelled", async () => {
    const session = await bench.initialize("2025-06-18");
    await leave("/mcp", session, call("late", "hold"));
    await eventually(() => engine.sessions[0]?.abandoned.length === 1);
    expect(engine.sessions[0]?.abandoned).toEqual(["late"]);
  });

  it("[gate-08e] [gate-11c] has its modern call cancelled, and its listening ended", async () => {
    const params = { name: "hold" };
    await leave("/mcp", modernHeaders("tools/call", params), modernRequest("tools/call", params, "late"));
    await eventually(() => engine.aborted.length === 1);
    const listen = { notifications: {} };
    const method = "subscriptions/listen";
    for (let times = 0; times < 5; times++) {
      await leave("/mcp", modernHeaders(method, listen), modernRequest(method, listen));
    }
    expect(bench.http.streams).toBe(0);
    // Nothing is owed to anybody any more.
    await bench.http.close(60_000);
  });
});
