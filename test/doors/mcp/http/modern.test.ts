import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeNotification, encodeResult } from "../../../../src/doors/mcp/rpc-messages.ts";
import { Bench, call, callerOf, ENVELOPE, modernHeaders, modernRequest } from "./bench.ts";
import { FakeEngine } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

let engine: FakeEngine;
let bench: Bench;

beforeEach(async () => {
  engine = new FakeEngine();
  bench = await new Bench(engine).open();
});
afterEach(() => bench.close());

const HEADER_MISMATCH = -32020;
const VERSION = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

describe("answers", () => {
  it("[gate-01b] come as JSON without a session", async () => {
    const answer = await bench.modern(
      "tools/call",
      { name: "echo", arguments: { a: 1 } },
      { "mcp-session-id": "any" },
      7,
    );
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(answer.json).toEqual({ jsonrpc: "2.0", id: 7, result: { echo: { a: 1 } } });
    expect(answer.headers["mcp-session-id"]).toBeUndefined();
    expect(bench.http.sessions).toBe(0);
  });

  it("[gate-01b] become a stream without ids if something goes before", async () => {
    const params = { name: "progress" };
    const stream = await bench.postStream(modernRequest("tools/call", params), modernHeaders("tools/call", params));
    expect(stream.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    const events = await stream.rest();
    expect(events.map(({ id, message }) => [id, message["method"] ?? message["result"]])).toEqual([
      [undefined, "notifications/progress"],
      [undefined, { done: true }],
    ]);
    const headers = { ...modernHeaders("tools/call", params), accept: "application/json" };
    expect((await bench.post(modernRequest("tools/call", params), headers)).json).toMatchObject({
      result: { done: true },
    });
  });

  it("[gate-01b] have the status that the protocol wants", async () => {
    const unknown = await bench.modern("ping");
    expect([unknown.status, unknown.json["error"]]).toEqual([404, expect.objectContaining({ code: -32601 })]);
    expect((await bench.modern("initialize")).status).toBe(404);
    // The method is known here, only not to the server behind.
    const behind = await bench.modern("prompts/list");
    expect([behind.status, behind.json["error"]]).toEqual([200, expect.objectContaining({ code: -32601 })]);
    const capability = await bench.modern("tools/call", { name: "needs-sampling" });
    expect([capability.status, capability.json["error"]]).toEqual([400, expect.objectContaining({ code: -32021 })]);
  });

  it("[gate-01b] notifications are taken, answers and batches are not", async () => {
    const headers = { "mcp-protocol-version": "2026-07-28" };
    const notified = await bench.post({ jsonrpc: "2.0", method: "notifications/x" }, headers);
    expect([notified.status, notified.text]).toEqual([202, ""]);
    expect((await bench.post({ jsonrpc: "2.0", id: 1, result: {} }, headers)).status).toBe(400);
    expect((await bench.post([modernRequest("tools/list", {})], headers)).status).toBe(400);
  });

  it("[gate-01b] GET and DELETE are not allowed to a modern client", async () => {
    for (const method of ["GET", "DELETE"]) {
      const headers = { "mcp-protocol-version": "2026-07-28", accept: "text/event-stream" };
      const answer = await bench.send(method, "/mcp", headers);
      expect([answer.status, answer.headers["allow"]]).toEqual([405, "POST"]);
    }
  });

  it("[gate-05a] [gate-05b] see the view that the address names", async () => {
    const headers = modernHeaders("tools/call", { name: "echo" });
    await bench.post(modernRequest("tools/call", { name: "echo" }), headers, "/mcp/dev?servers=a");
    expect(engine.origins.at(-1)?.scope).toEqual({ role: "dev", servers: ["a"] });
  });

  it("[gate-01b] a caller without the scope is refused", async () => {
    bench.callers.set("reader", callerOf("reader", { scopes: new Set(["read"]) }));
    expect((await bench.modern("tools/call", { name: "echo" }, { "x-caller": "reader" })).status).toBe(403);
  });
});

describe("streams", () => {
  it("[gate-01b] listening is a stream from the start, and closing it ends it", async () => {
    const params = { notifications: { toolsListChanged: true } };
    const headers = modernHeaders("subscriptions/listen", params);
    const stream = await bench.postStream(modernRequest("subscriptions/listen", params), headers);
    expect((await stream.next())?.message["method"]).toBe("notifications/subscriptions/acknowledged");
    await bench.clock.advance(60_000);
    await eventually(() => stream.comments.length > 0);
    stream.cut();
    await eventually(() => bench.http.streams === 0);
    const json = { ...headers, accept: "application/json" };
    expect((await bench.post(modernRequest("subscriptions/listen", params), json)).status).toBe(406);
  });

  it("[gate-11c] [gate-02c] a closed connection cancels the request at once, streaming or not", async () => {
    const params = { name: "hold" };
    const headers = modernHeaders("tools/call", params);
    const plain = bench.cut("/mcp", headers, modernRequest("tools/call", params, "plain"));
    await eventually(() => engine.held.has("plain"));
    plain.cut();
    await eventually(() => engine.aborted.includes("plain"));
    const opening = bench.postStream(modernRequest("tools/call", params, "streaming"), headers);
    await eventually(() => engine.held.has("streaming"));
    engine.held.get("streaming")?.sink.send(encodeNotification("notifications/progress", {}));
    (await opening).cut();
    await eventually(() => engine.aborted.includes("streaming"));
    expect(engine.aborted).toEqual(["plain", "streaming"]);
  });

  it("[gate-01b] a request that takes long becomes a stream", async () => {
    const params = { name: "hold" };
    const opening = bench.postStream(modernRequest("tools/call", params, "long"), modernHeaders("tools/call", params));
    await eventually(() => engine.held.has("long"));
    await bench.clock.advance(30_000);
    const stream = await opening;
    engine.held.get("long")?.end(encodeResult("long", { done: true }));
    expect((await stream.rest()).map(({ message }) => message["id"])).toEqual(["long"]);
  });
});

describe("the envelope", () => {
  it("[gate-01b] without its required fields is invalid", async () => {
    const { [VERSION]: _version, ...noVersion } = ENVELOPE;
    const { [CAPABILITIES]: _capabilities, ...noCapabilities } = ENVELOPE;
    for (const meta of [
      undefined,
      {},
      noVersion,
      noCapabilities,
      { ...ENVELOPE, [VERSION]: 5 },
      { ...ENVELOPE, [CAPABILITIES]: 1 },
    ]) {
      const body = { jsonrpc: "2.0", id: 101, method: "server/discover", params: { _meta: meta } };
      const answer = await bench.post(body, modernHeaders("server/discover", {}));
      expect([answer.status, answer.json["id"], answer.json["error"]], JSON.stringify(meta)).toEqual([
        400,
        101,
        expect.objectContaining({ code: -32602 }),
      ]);
    }
    const bare = await bench.post({ jsonrpc: "2.0", id: 1, method: "server/discover" });
    expect([bare.status, bare.json["error"]]).toEqual([400, expect.objectContaining({ code: -32602 })]);
  });

  it("[gate-01b] with an unknown version learns which there are", async () => {
    const meta = { ...ENVELOPE, [VERSION]: "v999" };
    const answer = await bench.modern("server/discover", { _meta: meta }, { "mcp-protocol-version": "v999" });
    expect([answer.status, answer.json["error"]]).toEqual([
      400,
      {
        code: -32022,
        message: expect.any(String),
        data: { requested: "v999", supported: expect.arrayContaining(["2026-07-28"]) },
      },
    ]);
  });

  it("[gate-01b] must say what the headers say", async () => {
    const params = { name: "echo" };
    const right = modernHeaders("tools/call", params);
    const wrong: Record<string, string>[] = [
      { "mcp-protocol-version": "2025-11-25" },
      { "mcp-method": "tools/list" },
      { "mcp-method": "TOOLS/CALL" },
      { "mcp-name": "other" },
      { "mcp-name": "=?base64?!!!?=" },
    ];
    const cases = [
      ...wrong.map((header) => ({ ...right, ...header })),
      ...["mcp-protocol-version", "mcp-method", "mcp-name"].map((name) => without(right, name)),
    ];
    for (const headers of cases) {
      const answer = await bench.post(modernRequest("tools/call", params, 3), headers);
      expect([answer.status, answer.json], JSON.stringify(headers)).toEqual([
        400,
        {
          jsonrpc: "2.0",
          id: 3,
          error: { code: HEADER_MISMATCH, message: expect.stringContaining("Header mismatch") },
        },
      ]);
    }
  });

  it("[gate-01b] names may come in base64, and blanks around them do not count", async () => {
    const name = "grüße\nan alle";
    const encoded = `=?base64?${Buffer.from(name).toString("base64")}?=`;
    expect((await bench.modern("tools/call", { name }, { "mcp-name": encoded })).status).toBe(200);
    expect((await bench.modern("tools/call", { name: "echo" }, { "mcp-name": "  echo  " })).status).toBe(200);
    expect((await bench.modern("resources/read", { uri: "a:b" }, { "mcp-name": "a:c" })).status).toBe(400);
  });

  it("[gate-01b] a legacy call without the envelope is still a legacy call", async () => {
    expect((await bench.post(call(1, "echo"), await bench.initialize())).status).toBe(200);
  });
});

describe("Mcp-Param headers", () => {
  const inputSchema = {
    type: "object",
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      count: { type: "integer", "x-mcp-header": "Count" },
      deep: { type: "object", properties: { on: { type: "boolean", "x-mcp-header": "On" } } },
    },
  };
  const status = async (args: object, headers: Record<string, string>): Promise<number> => {
    engine.tools.set("sql", { name: "sql", inputSchema });
    const answer = await bench.modern("tools/call", { name: "sql", arguments: args }, headers);
    if (answer.status !== 200) expect(answer.json["error"]).toMatchObject({ code: HEADER_MISMATCH });
    return answer.status;
  };

  it("[gate-01b] must repeat the arguments", async () => {
    const args = { region: "Hello", count: 42, deep: { on: true } };
    const headers = { "mcp-param-region": "Hello", "mcp-param-count": "42", "mcp-param-on": "true" };
    expect(await status(args, headers)).toBe(200);
    expect(await status(args, { ...headers, "mcp-param-count": "42.0" })).toBe(200);
    expect(await status(args, { ...headers, "mcp-param-region": "=?base64?SGVsbG8=?=" })).toBe(200);
    expect(await status({}, {})).toBe(200);
    expect(await status({ region: null }, {})).toBe(200);
    expect(await status({ region: "=?base64?SGVsbG8=" }, { "mcp-param-region": "=?base64?SGVsbG8=" })).toBe(200);
  });

  it("[gate-01b] are refused when they are missing, different, malformed or too many", async () => {
    expect(await status({ region: "Hello" }, {})).toBe(400);
    expect(await status({ region: "Hello" }, { "mcp-param-region": "hello" })).toBe(400);
    expect(await status({ region: "Hello" }, { "mcp-param-region": "=?base64?SGVsbG8?=" })).toBe(400);
    expect(await status({ region: "Hello" }, { "mcp-param-region": "=?base64?SGVs!!!bG8=?=" })).toBe(400);
    expect(await status({ count: 5 }, { "mcp-param-count": "6" })).toBe(400);
    expect(await status({ count: 0 }, { "mcp-param-count": "" })).toBe(400);
    expect(await status({}, { "mcp-param-region": "Hello" })).toBe(400);
  });
});

function without(headers: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
}
