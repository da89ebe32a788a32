import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import { StreamableWire } from "../../../src/upstream/http/streamable-wire.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import {
  type Answer,
  ask,
  event,
  type Heard,
  type HttpBench,
  json,
  listenTo,
  note,
  result,
  serve,
  stream,
} from "./http-bench.ts";

const never = new AbortController().signal;
const LEGACY = { era: "legacy", version: "2025-11-25" } as const;
const MODERN = { era: "modern", version: "2026-07-28" } as const;

interface Bench extends HttpBench {
  readonly wire: StreamableWire;
  readonly heard: Heard;
  readonly clock: FakeClock;
}

async function bench(answer: Answer, options: { maxMessageBytes?: number } = {}): Promise<Bench> {
  const http = await serve(answer);
  const clock = new FakeClock();
  const wire = new StreamableWire({
    url: `${http.url}/mcp?key=secret`,
    headers: { Authorization: "Bearer t0ken" },
    clock,
    ...options,
  });
  const heard = listenTo(wire);
  await wire.open(never);
  return { ...http, wire, heard, clock };
}

/** Answers the handshake with a session and everything else as told; GET is refused unless told. */
const withSession =
  (answer: Answer, onGet: Answer = (_seen, response) => response.writeHead(405).end()): Answer =>
  (seen, response) => {
    if (seen.method === "DELETE") response.writeHead(204).end();
    else if (seen.method === "GET") onGet(seen, response);
    else if (seen.body["method"] === "initialize") json(response, result(seen.body["id"]), { "mcp-session-id": "s-1" });
    else if (seen.body["id"] === undefined) response.writeHead(202).end();
    else answer(seen, response);
  };

async function shakeHands({ wire, heard }: Bench): Promise<void> {
  await wire.send(ask("init", "initialize"));
  await expect.poll(() => heard.messages.length).toBeGreaterThan(0);
  wire.agreed(LEGACY);
  await wire.send(note("notifications/initialized"));
  heard.messages.length = 0;
}

describe("StreamableWire: messages", () => {
  it("[spine-07a] takes a JSON answer and says which request it belongs to", async () => {
    const { wire, heard, seen } = await bench(({ body }, response) => json(response, result(body["id"], { ok: true })));
    await wire.send(ask(7, "ping"));
    await expect.poll(() => heard.messages).toEqual([{ message: result(7, { ok: true }), related: 7 }]);
    expect(seen[0]).toMatchObject({
      method: "POST",
      path: "/mcp?key=secret",
      body: { id: 7, method: "ping" },
      headers: {
        authorization: "Bearer t0ken",
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
    });
  });

  it("names the host, counts bytes rather than characters, and uses user and password of the address", async () => {
    const http = await serve(({ body }, response) => json(response, result(body["id"])));
    const address = http.url.replace("//", "//ann:p%C3%A4ss@");
    const given: Record<string, string>[] = [{}, { Authorization: "Bearer t" }];
    for (const headers of given) {
      const wire = new StreamableWire({ url: address, headers });
      listenTo(wire);
      await wire.open(never);
      await wire.send(ask(1, "tools/call", { text: "äöü 😀" }));
    }
    const basic = `Basic ${Buffer.from("ann:päss").toString("base64")}`;
    expect(http.seen.map(({ headers }) => headers.authorization)).toEqual([basic, "Bearer t"]);
    expect(http.seen[0]?.headers.host).toBe(new URL(http.url).host);
    expect(http.seen[0]?.body).toMatchObject({ params: { text: "äöü 😀" } });
    expect(http.seen[0]?.headers.connection).toBe("keep-alive");
  });

  it("[spine-07a] takes an event stream with notifications before the answer", async () => {
    const { wire, heard } = await bench(({ body }, response) => {
      stream(response).write(": hello\n\n");
      response.write("event: other\ndata: not ours\n\n");
      response.write(event({ jsonrpc: "2.0", method: "notifications/progress", params: { progress: 1 } }));
      response.end(event(result(body["id"])));
    });
    await wire.send(ask(1));
    await expect.poll(() => heard.messages.length).toBe(2);
    expect(heard.messages.map(({ related }) => related)).toEqual([1, 1]);
    expect(heard.failed).toEqual([]);
  });

  it("keeps connections: many calls in a row use few of them", async () => {
    const { wire, heard, server } = await bench(({ body }, response) => json(response, result(body["id"])));
    let connections = 0;
    server.on("connection", () => connections++);
    for (let n = 1; n <= 20; n++) {
      await wire.send(ask(n));
      await expect.poll(() => heard.messages.length, { interval: 1 }).toBe(n);
    }
    expect(connections).toBeLessThan(4);
  });

  it("runs requests at the same time", async () => {
    const waiting: (() => void)[] = [];
    const { wire, heard } = await bench(({ body }, response) => {
      waiting.push(() => json(response, result(body["id"])));
      if (waiting.length === 30) for (const answer of waiting.toReversed()) answer();
    });
    await Promise.all(Array.from({ length: 30 }, (_, n) => wire.send(ask(n))));
    await expect.poll(() => heard.messages.length).toBe(30);
  });

  it("closes the stream of a request whose signal aborts, and says nothing more of it", async () => {
    let closed = false;
    const { wire, heard } = await bench((_seen, response) => {
      response.on("close", () => (closed = true));
      stream(response).write(event({ jsonrpc: "2.0", method: "notifications/message" }, "1"));
    });
    const abort = new AbortController();
    await wire.send(ask(1), { signal: abort.signal });
    await expect.poll(() => heard.messages.length).toBe(1);
    abort.abort();
    await expect.poll(() => closed).toBe(true);
    expect([heard.failed, heard.lost]).toEqual([[], []]);
  });

  it("rejects as cancelled when the signal aborts before there is an answer", async () => {
    const abort = new AbortController();
    const { wire } = await bench(() => abort.abort());
    await expect(wire.send(ask(1), { signal: abort.signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("StreamableWire: headers of the two eras", () => {
  it("sends session and version after the legacy handshake, and ends the session with DELETE", async () => {
    const one = await bench(withSession(({ body }, response) => json(response, result(body["id"]))));
    await shakeHands(one);
    await one.wire.send(ask(2, "tools/list"), { headers: { "Mcp-Param-Region": "eu" } });
    expect(one.seen[0]?.headers).not.toHaveProperty("mcp-session-id");
    expect(one.seen[0]?.headers).not.toHaveProperty("mcp-protocol-version");
    expect(one.of("POST").at(-1)?.headers).toMatchObject({
      "mcp-session-id": "s-1",
      "mcp-protocol-version": "2025-11-25",
      "mcp-param-region": "eu",
    });
    expect(one.of("POST").at(-1)?.headers).not.toHaveProperty("mcp-method");
  });

  it("[spine-09c] ends the session with DELETE", async () => {
    const one = await bench(withSession(() => {}));
    await shakeHands(one);
    await one.wire.close();
    expect(one.of("DELETE")).toMatchObject([{ headers: { "mcp-session-id": "s-1", authorization: "Bearer t0ken" } }]);
  });

  it("closes although the server never answers DELETE, cutting what is under way", async () => {
    const one = await bench((seen, response) => {
      if (seen.method === "POST") withSession(() => {})(seen, response);
    });
    await shakeHands(one);
    const pending = one.wire.send(ask(2)).catch((error: unknown) => error);
    await expect.poll(() => one.of("POST").length).toBe(3);
    await one.wire.close();
    expect(await pending).toBeInstanceOf(ToolcribError);
    await expect(one.wire.send(ask(3))).rejects.toMatchObject({ details: { sent: false } });
  });

  it("mirrors the body in headers in the modern era, and opens no GET stream", async () => {
    const one = await bench(({ body }, response) => json(response, result(body["id"])));
    const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
    await one.wire.send(ask(1, "server/discover", { _meta }));
    one.wire.agreed(MODERN);
    await one.wire.send(ask(2, "tools/call", { name: "naïve", _meta }));
    expect(
      one.seen.map(({ headers }) => [headers["mcp-protocol-version"], headers["mcp-method"], headers["mcp-name"]]),
    ).toEqual([
      ["2026-07-28", "server/discover", undefined],
      ["2026-07-28", "tools/call", "=?base64?bmHDr3Zl?="],
    ]);
    await one.wire.close();
    expect([one.of("GET"), one.of("DELETE")]).toEqual([[], []]);
  });
});

describe("StreamableWire: lost sessions", () => {
  it.each([
    [404, ""],
    [404, { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }],
    [400, { jsonrpc: "2.0", id: null, error: { code: -32000, message: "Bad Request: No valid session ID provided" } }],
  ])("[spine-09b] tells that the session is gone on %i %j", async (status, body) => {
    const one = await bench(withSession((_seen, response) => json(response, body, {}, status)));
    await shakeHands(one);
    await expect(one.wire.send(ask(2))).rejects.toMatchObject({
      code: "server_unavailable",
      details: { sessionLost: true, status },
    });
    // A new handshake starts without the old session, and nothing is left to delete afterwards.
    await one.wire.send(ask("again", "initialize"));
    expect(one.of("POST").at(-1)?.headers).not.toHaveProperty("mcp-session-id");
  });

  it("does not take a 404 without a session for a lost one", async () => {
    const error = { code: -32601, message: "Method not found" };
    const { wire } = await bench((_seen, response) => json(response, { jsonrpc: "2.0", id: 1, error }, {}, 404));
    const thrown: unknown = await wire.send(ask(1)).catch((reason: unknown) => reason);
    expect(thrown).toMatchObject({ details: { status: 404, rpc: error } });
    expect(thrown).not.toHaveProperty("details.sessionLost");
  });
});

describe("StreamableWire: requests that get no answer", () => {
  it.each([
    ["JSON that is cut off", "application/json", '{"jsonrpc":"2.0","id":1,"resu'],
    ["an answer to another request", "application/json", '{"jsonrpc":"2.0","id":99,"result":{}}'],
    ["a stream that ends at once", "text/event-stream", ""],
    ["a stream with junk only", "text/event-stream", "data: junk\n\n"],
  ])("fails after %s", async (_name, contentType, body) => {
    const { wire, heard } = await bench((_seen, response) =>
      response.writeHead(200, { "content-type": contentType }).end(body),
    );
    await wire.send(ask(1));
    await expect
      .poll(() => heard.failed)
      .toMatchObject([{ id: 1, error: { code: "server_unavailable", details: { sent: true } } }]);
  });

  it("fails when the connection is cut in the middle of the body", async () => {
    const { wire, heard } = await bench((_seen, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write("{", () => response.destroy());
    });
    await wire.send(ask(1));
    await expect
      .poll(() => heard.failed)
      .toMatchObject([{ id: 1, error: { message: expect.stringContaining("was cut") } }]);
  });

  it("[spine-09e] fails as too large instead of keeping an answer without end", async () => {
    for (const contentType of ["application/json", "text/event-stream"]) {
      const answer: Answer = (_seen, response) => {
        response.writeHead(200, { "content-type": contentType });
        response.end(`data: ${"x".repeat(5000)}\n\n`);
      };
      const { wire, heard } = await bench(answer, { maxMessageBytes: 1000 });
      await wire.send(ask(1));
      await expect.poll(() => heard.failed).toMatchObject([{ id: 1, error: { code: "too_large" } }]);
    }
  });

  it("passes on a JSON-RPC error that has no id", async () => {
    const error = { code: -32700, message: "Parse error" };
    const { wire, heard } = await bench((_seen, response) => json(response, { jsonrpc: "2.0", id: null, error }));
    await wire.send(ask(1));
    await expect
      .poll(() => heard.failed)
      .toMatchObject([{ id: 1, error: { message: "Parse error", details: { rpc: error } } }]);
  });

  it("cuts a stream that the server leaves open after the answer", async () => {
    let closed = false;
    const { wire, heard, clock } = await bench(({ body }, response) => {
      response.on("close", () => (closed = true));
      stream(response).write(event(result(body["id"])));
    });
    await wire.send(ask(1));
    await expect.poll(() => heard.messages.length).toBe(1);
    expect(closed).toBe(false);
    await clock.advance(1000);
    await expect.poll(() => closed).toBe(true);
    expect(heard.failed).toEqual([]);
  });
});

describe("StreamableWire: a server that takes nothing", () => {
  it.each<[string, Answer]>([
    ["answers no message", () => {}],
    ["never ends its answer", (_seen, response) => response.writeHead(202, { "content-length": 9 }).flushHeaders()],
  ])("[spine-09h] gets a few connections and not one for each of its questions: one that %s", async (_what, answer) => {
    let open = 0;
    let most = 0;
    const { wire, server, of, clock } = await bench(answer);
    server.on("connection", (socket) => {
      most = Math.max(most, (open += 1));
      socket.on("close", () => (open -= 1));
    });
    const sent = Array.from({ length: 1100 }, (_, id) => wire.send({ jsonrpc: "2.0", id, result: {} }));
    const outcomes = Promise.allSettled(sent);
    await expect.poll(() => of("POST").length).toBe(32);
    await clock.advance(30_000);
    await expect.poll(() => of("POST").length).toBe(64);
    // The old ones may still be closing.
    expect(most).toBeLessThanOrEqual(64);
    await wire.close();
    const refused = (await outcomes).filter(({ status }) => status === "rejected");
    expect(refused.length).toBeGreaterThanOrEqual(1100 - 64);
  });
});

describe("StreamableWire: streams that resume", () => {
  it("[spine-09c] asks for the rest of an answer after the last event it saw", async () => {
    const one = await bench(
      withSession(
        (_seen, response) => {
          stream(response).write(`retry: 500\n${event({ jsonrpc: "2.0", method: "notifications/progress" }, "e-1")}`);
          response.end("id: e-2\ndata:\n\n");
        },
        (seen, response) => {
          if (seen.headers["last-event-id"] === undefined) response.writeHead(405).end();
          else stream(response).end(event(result(5, { late: true }), "e-3"));
        },
      ),
    );
    await shakeHands(one);
    await one.wire.send(ask(5));
    await expect.poll(() => one.heard.messages.length).toBe(1);
    await expect.poll(() => one.clock.pending).toBe(1);
    await one.clock.advance(499);
    expect(one.of("GET").filter(({ headers }) => headers["last-event-id"] !== undefined)).toEqual([]);
    await one.clock.advance(1);
    await expect.poll(() => one.heard.messages.at(-1)).toEqual({ message: result(5, { late: true }), related: 5 });
    expect(one.of("GET").at(-1)?.headers).toMatchObject({ "last-event-id": "e-2", "mcp-session-id": "s-1" });
    expect(one.heard.failed).toEqual([]);
  });

  it("[spine-09h] waits a moment for the next stream of a server that wants no wait", async () => {
    const one = await bench(
      withSession(
        (_seen, response) => json(response, {}),
        (_seen, response) => stream(response).end(`retry: 0\n${event(note("notifications/x"), "e-1")}`),
      ),
    );
    await shakeHands(one);
    for (let streams = 1; streams <= 3; streams += 1) {
      await expect.poll(() => one.clock.pending).toBe(1);
      expect(one.of("GET")).toHaveLength(streams);
      await one.clock.advance(99);
      expect(one.clock.pending).toBe(1);
      await one.clock.advance(1);
    }
  });

  it("[spine-09c] fails the request when the server will not resume", async () => {
    const one = await bench(withSession((_seen, response) => stream(response).end("id: 1\ndata:\n\n")));
    await shakeHands(one);
    await one.wire.send(ask(5));
    await expect.poll(() => one.clock.pending).toBe(1);
    await one.clock.advance(1000);
    await expect.poll(() => one.heard.failed).toMatchObject([{ id: 5 }]);
  });

  it("does not resume what the caller gave up, nor in the modern era", async () => {
    const answer: Answer = (_seen, response) => stream(response).end("id: 1\ndata:\n\n");
    const one = await bench(withSession(answer));
    await shakeHands(one);
    const abort = new AbortController();
    await one.wire.send(ask(5), { signal: abort.signal });
    await expect.poll(() => one.clock.pending).toBe(1);
    abort.abort();
    expect([one.clock.pending, one.heard.failed]).toEqual([0, []]);

    const two = await bench(answer);
    two.wire.agreed(MODERN);
    await two.wire.send(ask(6));
    await expect.poll(() => two.heard.failed).toMatchObject([{ id: 6 }]);
  });

  it("[spine-09c] keeps the server's own stream open for ever, with growing pauses and Last-Event-ID", async () => {
    const streams: ServerResponse[] = [];
    let refuse = false;
    const onGet: Answer = (_seen, response) => {
      if (refuse) response.writeHead(503).end();
      else streams.push(stream(response));
    };
    const one = await bench(withSession(() => {}, onGet));
    await shakeHands(one);
    await expect.poll(() => streams.length).toBe(1);
    streams[0]?.write(event({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }, "g-9"));
    await expect
      .poll(() => one.heard.messages)
      .toEqual([{ message: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } }]);

    refuse = true;
    streams[0]?.destroy();
    // Far more attempts than any library makes; each waits longer than the one before, up to a ceiling.
    for (let attempt = 1, delay = 1000; attempt <= 12; attempt++, delay = Math.min(delay * 2, 30_000)) {
      await expect.poll(() => one.clock.pending).toBe(1);
      await one.clock.advance(delay - 1);
      expect(one.of("GET")).toHaveLength(attempt);
      await one.clock.advance(1);
      await expect.poll(() => one.of("GET").length).toBe(attempt + 1);
    }
    expect(one.heard.warnings).toHaveLength(1);
    refuse = false;
    await expect.poll(() => one.clock.pending).toBe(1);
    await one.clock.advance(30_000);
    await expect.poll(() => streams.length).toBe(2);
    expect(one.of("GET").at(-1)?.headers["last-event-id"]).toBe("g-9");
    streams[1]?.write(event({ jsonrpc: "2.0", method: "back" }));
    await expect.poll(() => one.heard.messages.length).toBe(2);
  });

  it.each([404, 405])("is content when the server has no stream of its own (%i)", async (status) => {
    const one = await bench(
      withSession(
        () => {},
        (_seen, response) => response.writeHead(status).end(),
      ),
    );
    await shakeHands(one);
    await expect.poll(() => one.of("GET").length).toBe(1);
    await one.clock.advance(600_000);
    expect([one.of("GET").length, one.heard.warnings, one.heard.lost]).toEqual([1, [], []]);
  });

  it("[spine-09b] is lost when the stream was open and the session is gone", async () => {
    let gone = false;
    const onGet: Answer = (_seen, response) => {
      if (gone) response.writeHead(404).end();
      else stream(response).write(event({ jsonrpc: "2.0", method: "hi" }), () => ((gone = true), response.end()));
    };
    const one = await bench(withSession(() => {}, onGet));
    await shakeHands(one);
    await expect.poll(() => one.clock.pending).toBe(1);
    await one.clock.advance(1000);
    await expect.poll(() => one.heard.lost).toMatchObject([{ details: { sessionLost: true } }]);
    await one.wire.close();
    expect(one.of("DELETE")).toEqual([]);
  });
});
