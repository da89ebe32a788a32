import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeResult } from "../../../../src/doors/mcp/rpc-messages.ts";
import { Bench, call, callerOf, type EventReader, initializeRequest } from "./bench.ts";
import { FakeEngine } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

let engine: FakeEngine;
let bench: Bench;

beforeEach(async () => {
  engine = new FakeEngine();
  bench = await new Bench(engine).open();
});
afterEach(() => bench.close());

/** The stream, and the path that it says to post to. */
async function open(path = "/sse", headers: Record<string, string> = {}): Promise<[EventReader, string]> {
  const stream = await bench.getStream(headers, path);
  const endpoint = await stream.next();
  expect(endpoint?.event).toBe("endpoint");
  const { pathname, search } = new URL(endpoint?.data ?? "", `${bench.url}${path}`);
  return [stream, `${pathname}${search}`];
}

describe("HTTP+SSE", () => {
  it("[gate-01c] the stream tells where to post, and carries every answer", async () => {
    const [stream, endpoint] = await open();
    const posted = await bench.post(initializeRequest("2024-11-05"), {}, endpoint);
    expect([posted.status, posted.text]).toEqual([202, ""]);
    expect((await stream.next())?.message).toMatchObject({ id: "init", result: { protocolVersion: "2024-11-05" } });
    await bench.post({ jsonrpc: "2.0", method: "notifications/initialized" }, {}, endpoint);
    await bench.post(call(1, "progress"), {}, endpoint);
    expect((await stream.next())?.message["method"]).toBe("notifications/progress");
    expect((await stream.next())?.message["id"]).toBe(1);
    engine.sessions[0]?.ask("r", "roots/list");
    expect((await stream.next())?.message["method"]).toBe("roots/list");
    await bench.post({ jsonrpc: "2.0", id: "r", result: { roots: [] } }, {}, endpoint);
    expect(engine.sessions[0]?.answered).toHaveLength(1);
    expect(engine.sessions[0]?.notified).toEqual(["notifications/initialized"]);
  });

  it("[gate-01c] batches only in versions that have them", async () => {
    const [stream, endpoint] = await open();
    expect((await bench.post([call(0, "echo")], {}, endpoint)).status).toBe(400);
    await bench.post(initializeRequest("2025-03-26"), {}, endpoint);
    await stream.next();
    expect((await bench.post([call(1, "echo"), call(2, "echo")], {}, endpoint)).status).toBe(202);
    expect([(await stream.next())?.message["id"], (await stream.next())?.message["id"]]).toEqual([1, 2]);
    for (const bad of [[], [{}], [call(3, "echo"), initializeRequest("2025-03-26")]]) {
      expect((await bench.post(bad, {}, endpoint)).status).toBe(400);
    }
    const [recentStream, recent] = await open();
    await bench.post(initializeRequest("2025-06-18"), {}, recent);
    await recentStream.next();
    const refused = await bench.post([call(1, "echo")], {}, recent);
    expect([refused.status, refused.json["error"]]).toEqual([400, expect.objectContaining({ code: -32600 })]);
    expect((await bench.post({ jsonrpc: "1.0" }, {}, recent)).status).toBe(400);
  });

  it("[gate-01c] the address is right below a proxy's prefix, with and without a role", async () => {
    for (const path of ["/sse", "/sse/", "/sse/dev", "/sse/dev?servers=a"]) {
      const stream = await bench.getStream({}, path);
      const address = new URL((await stream.next())?.data ?? "", `https://host/prefix${path}`);
      expect(address.pathname, path).toBe("/prefix/messages");
      stream.cut();
    }
    expect(engine.origins.map(({ scope }) => scope)).toEqual([
      {},
      {},
      { role: "dev" },
      { role: "dev", servers: ["a"] },
    ]);
  });

  it("[gate-01c] [gate-08g] nobody else can post to the session, and no other transport finds it", async () => {
    const [, endpoint] = await open("/sse", { "x-caller": "ann" });
    expect((await bench.post(call(1, "echo"), { "x-caller": "bob" }, endpoint)).status).toBe(404);
    expect((await bench.post(call(1, "echo"), {}, "/messages")).status).toBe(404);
    const id = new URL(endpoint, bench.url).searchParams.get("sessionId") ?? "";
    expect((await bench.post(call(1, "echo"), { "x-caller": "ann", "mcp-session-id": id })).status).toBe(404);
    const other = await bench.initialize();
    expect((await bench.post(call(1, "echo"), {}, `/messages?sessionId=${other["mcp-session-id"]}`)).status).toBe(404);
  });

  it("[gate-01c] [gate-11c] the end of the stream ends the session and its calls", async () => {
    const [stream, endpoint] = await open();
    await bench.post(call("run", "hold"), {}, endpoint);
    await eventually(() => engine.held.has("run"));
    stream.cut();
    await eventually(() => bench.http.sessions === 0);
    expect(engine.sessions[0]?.closed).toBe(true);
    expect((await bench.post(call(1, "echo"), {}, endpoint)).status).toBe(404);
  });

  it("[gate-01c] what is wrong is said in the answer to the POST", async () => {
    const [, endpoint] = await open();
    expect((await bench.post("{", {}, endpoint)).json).toMatchObject({ id: null, error: { code: -32700 } });
    expect((await bench.post({ id: 1 }, {}, endpoint)).status).toBe(400);
    expect((await bench.send("GET", endpoint)).status).toBe(405);
    expect((await bench.post(call(1, "echo"), {}, "/sse")).status).toBe(405);
    expect((await bench.send("GET", "/sse", { accept: "application/json" })).status).toBe(406);
    bench.callers.set("owner", callerOf("owner", { scopes: new Set(["read"]) }));
    // What was opened with more rights is another's now.
    expect((await bench.post(call(1, "echo"), {}, endpoint)).status).toBe(404);
    const [, readOnly] = await open();
    expect((await bench.post(call(1, "echo"), {}, readOnly)).status).toBe(403);
  });

  it("[gate-11a] a shutdown waits for its calls", async () => {
    const [stream, endpoint] = await open();
    await bench.post(call("run", "hold"), {}, endpoint);
    await eventually(() => engine.held.has("run"));
    const closing = bench.http.close(10_000);
    engine.held.get("run")?.end(encodeResult("run", { done: true }));
    await closing;
    expect((await stream.rest()).map(({ message }) => message["id"])).toEqual(["run"]);
  });
});
