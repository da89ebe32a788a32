import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Bench, call, callerOf, initializeRequest } from "./bench.ts";
import { FakeEngine } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

let engine: FakeEngine;
let bench: Bench;

beforeEach(async () => {
  engine = new FakeEngine();
  bench = await new Bench(engine).open();
});
afterEach(() => bench.close());

describe("sessions", () => {
  it("[gate-01a] [gate-08g] initialize opens a session with an id that nobody guesses", async () => {
    const answers = await Promise.all([1, 2].map(() => bench.post(initializeRequest("2025-06-18"))));
    const ids = answers.map(({ headers }) => String(headers["mcp-session-id"]));
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{32}$/);
    expect(ids[0]).not.toBe(ids[1]);
    expect(answers[0]?.status).toBe(200);
    expect(answers[0]?.headers["content-type"]).toBe("application/json");
    expect(answers[0]?.json).toMatchObject({ id: "init", result: { protocolVersion: "2025-06-18" } });
    expect(bench.http.sessions).toBe(2);
  });

  it("[gate-08g] a session that could not be initialized is none", async () => {
    const answer = await bench.post({ jsonrpc: "2.0", id: 1, method: "initialize", params: { refuse: true } });
    expect(answer.json["error"]).toBeDefined();
    expect(answer.headers["mcp-session-id"]).toBeUndefined();
    expect(bench.http.sessions).toBe(0);
    expect(engine.sessions[0]?.closed).toBe(true);
  });

  it("[gate-08g] another caller's session is as unknown as one that never was", async () => {
    const session = await bench.initialize("2025-11-25", { "x-caller": "ann" });
    expect((await bench.post(call(1, "echo"), session)).status).toBe(200);
    const foreign = await bench.post(call(1, "echo"), { ...session, "x-caller": "bob" });
    const unknown = await bench.post(call(1, "echo"), { "mcp-session-id": "x".repeat(32), "x-caller": "bob" });
    expect(foreign.status).toBe(404);
    expect(foreign.text).toBe(unknown.text);
    expect(foreign.json).toMatchObject({
      jsonrpc: "2.0",
      id: 1,
      error: { message: expect.stringContaining("session") },
    });
    for (const method of ["GET", "DELETE"]) {
      const headers = { ...session, "x-caller": "bob", accept: "text/event-stream" };
      expect((await bench.send(method, "/mcp", headers)).status, method).toBe(404);
    }
  });

  it("[gate-01a] without a session id only initialize is answered", async () => {
    const answer = await bench.post(call(7, "echo"));
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({ id: 7, error: { code: -32600 } });
    expect((await bench.send("GET", "/mcp", { accept: "text/event-stream" })).status).toBe(400);
    expect((await bench.send("DELETE", "/mcp")).status).toBe(400);
  });

  it("[gate-01a] DELETE ends a session, also in the middle of a call", async () => {
    const session = await bench.initialize();
    const running = bench.post(call(1, "hold"), session);
    await eventually(() => engine.held.has(1));
    expect((await bench.send("DELETE", "/mcp", session)).status).toBe(204);
    expect(engine.sessions[0]?.closed).toBe(true);
    const answer = await running;
    expect(answer.status).toBe(404);
    expect(answer.json).toMatchObject({ id: 1, error: { message: expect.stringContaining("ended") } });
    expect((await bench.post(call(2, "echo"), session)).status).toBe(404);
    expect((await bench.send("DELETE", "/mcp", session)).status).toBe(404);
  });

  it("[gate-01a] the version header must be a known one, and may be left out", async () => {
    const session = await bench.initialize("2025-11-25");
    for (const version of ["2025-03-26", "2025-11-25"]) {
      const answer = await bench.post(call(1, "echo"), { ...session, "mcp-protocol-version": version });
      expect(answer.status).toBe(200);
    }
    const unknown = await bench.post(call(1, "echo"), { ...session, "mcp-protocol-version": "1999-01-01" });
    expect(unknown.status).toBe(400);
    expect(unknown.json).toMatchObject({ id: 1, error: { data: { requested: "1999-01-01" } } });
  });
});

describe("messages", () => {
  it("[gate-01a] a request is answered with JSON of a known length, umlauts and bytes included", async () => {
    const session = await bench.initialize();
    const text = await bench.post(call("ä", "echo", { text: "größer" }), session);
    expect(text.json).toEqual({ jsonrpc: "2.0", id: "ä", result: { echo: { text: "größer" } } });
    const bytes = await bench.post(call(3, "bytes"), session);
    expect(bytes.json).toEqual({ jsonrpc: "2.0", id: 3, result: { ü: 1 } });
    for (const { headers, text: body } of [text, bytes]) {
      expect(Number(headers["content-length"])).toBe(Buffer.byteLength(body));
    }
  });

  it("[gate-01a] notifications and answers of the client get 202 and no body", async () => {
    const session = await bench.initialize();
    const notified = await bench.post({ jsonrpc: "2.0", method: "notifications/initialized" }, session);
    const answered = await bench.post({ jsonrpc: "2.0", id: 5, result: { roots: [] } }, session);
    const failed = await bench.post({ jsonrpc: "2.0", id: 6, error: { code: -1, message: "no" } }, session);
    for (const answer of [notified, answered, failed]) expect([answer.status, answer.text]).toEqual([202, ""]);
    expect(engine.sessions[0]?.notified).toEqual(["notifications/initialized"]);
    expect(engine.sessions[0]?.answered.map(({ id }) => id)).toEqual([5, 6]);
  });

  it("[gate-01a] what is no message is refused with a JSON-RPC error", async () => {
    const session = await bench.initialize();
    const wrong: [unknown, number, number | null, number][] = [
      ["{", 400, null, -32700],
      [{ id: 1, method: "ping" }, 400, 1, -32600],
      [{ jsonrpc: "2.0", id: null, method: "ping" }, 400, null, -32600],
      [{ jsonrpc: "2.0", id: 1, method: 5 }, 400, 1, -32600],
      [{ jsonrpc: "2.0", id: 1, method: "ping", params: [] }, 400, 1, -32600],
      [{ jsonrpc: "2.0", id: 1 }, 400, 1, -32600],
      ["5", 400, null, -32600],
    ];
    for (const [body, status, id, code] of wrong) {
      const answer = await bench.post(body, session);
      expect([answer.status, answer.json["id"], answer.json["error"]], JSON.stringify(body)).toEqual([
        status,
        id,
        expect.objectContaining({ code }),
      ]);
    }
    const large = await bench.post(call(1, "echo", { text: "x".repeat(5 * 1024 * 1024) }), session);
    expect(large.status).toBe(413);
    expect(large.json).toMatchObject({ id: null, error: { code: expect.any(Number) } });
    expect((await bench.post(call(1, "echo"), { ...session, "content-type": "text/plain" })).status).toBe(415);
  });

  it("[gate-01a] batches only in versions that have them", async () => {
    const old = await bench.initialize("2025-03-26");
    const batch = [call(1, "echo"), { jsonrpc: "2.0", method: "notifications/initialized" }, call(2, "bytes")];
    const answer = await bench.post(batch, old);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual([
      { jsonrpc: "2.0", id: 1, result: { echo: {} } },
      { jsonrpc: "2.0", id: 2, result: { ü: 1 } },
    ]);
    expect(engine.sessions[0]?.notified).toHaveLength(1);
    const ofOne = await bench.post([call(3, "echo")], old);
    expect(ofOne.json).toEqual([{ jsonrpc: "2.0", id: 3, result: { echo: {} } }]);
    expect((await bench.post([{ jsonrpc: "2.0", method: "notifications/x" }], old)).status).toBe(202);
    for (const bad of [
      [],
      [{}],
      [initializeRequest("2025-03-26")],
      Array.from({ length: 101 }, () => call(1, "echo")),
    ]) {
      expect((await bench.post(bad, old)).status).toBe(400);
    }
    const recent = await bench.post(batch, await bench.initialize("2025-06-18"));
    expect([recent.status, recent.json["error"]]).toEqual([400, expect.objectContaining({ code: -32600 })]);
  });

  it("[gate-01a] a batch streams if one of its requests does", async () => {
    const old = await bench.initialize("2025-03-26");
    const stream = await bench.postStream([call(1, "echo"), call(2, "progress")], old);
    const events = await stream.rest();
    expect(stream.headers["content-type"]).toBe("text/event-stream");
    expect(events[0]?.message["method"]).toBe("notifications/progress");
    expect(
      events
        .slice(1)
        .map(({ message }) => message["id"])
        .toSorted(),
    ).toEqual([1, 2]);
  });

  it("[gate-01a] a caller without the scope is refused before anything runs", async () => {
    bench.callers.set("reader", callerOf("reader", { scopes: new Set(["read"]) }));
    const session = await bench.initialize("2025-11-25", { "x-caller": "reader" });
    const answer = await bench.post(call(1, "hold"), session);
    expect([answer.status, answer.headers["www-authenticate"]]).toEqual([403, 'Bearer scope="call"']);
    expect(engine.held.size).toBe(0);
  });

  it("[gate-01a] 200 requests at once on one session get their own answers", async () => {
    const session = await bench.initialize();
    const names = ["echo", "progress", "bytes"];
    await Promise.all(
      Array.from({ length: 200 }, async (_, id) => {
        const name = names[id % 3] ?? "";
        if (name === "progress") {
          const events = await (await bench.postStream(call(id, name), session)).rest();
          expect(events.at(-1)?.message).toEqual({ jsonrpc: "2.0", id, result: { done: true } });
          return;
        }
        const { json } = await bench.post(call(id, name, { id }), session);
        expect(json).toEqual({ jsonrpc: "2.0", id, result: name === "echo" ? { echo: { id } } : { ü: 1 } });
      }),
    );
  });
});

describe("Accept", () => {
  it("[gate-01a] decides how an answer comes, and neither kind is 406", async () => {
    const session = await bench.initialize();
    expect((await bench.post(call(1, "echo"), { ...session, accept: "text/html" })).status).toBe(406);
    const json = await bench.post(call(1, "progress"), { ...session, accept: "application/json" });
    expect(json.json).toEqual({ jsonrpc: "2.0", id: 1, result: { done: true } });
    const stream = await bench.postStream(call(2, "echo"), { ...session, accept: "text/event-stream" });
    const events = await stream.rest();
    expect(events.at(-1)?.message).toEqual({ jsonrpc: "2.0", id: 2, result: { echo: {} } });
    // What could not go with the answer waits for the session's own stream.
    const own = await bench.getStream(session);
    await own.next();
    expect((await own.next())?.message["method"]).toBe("notifications/progress");
  });

  it("[gate-01a] GET wants text/event-stream, and other methods are not known", async () => {
    const session = await bench.initialize();
    expect((await bench.send("GET", "/mcp", { ...session, accept: "application/json" })).status).toBe(406);
    const put = await bench.send("PUT", "/mcp", session);
    expect([put.status, put.headers["allow"]]).toEqual([405, "GET, POST, DELETE"]);
  });
});

describe("views", () => {
  it("[gate-05a] the path chooses the role, unless the caller is bound to one", async () => {
    bench.callers.set("bound", callerOf("bound", { role: "reviewer" }));
    await bench.initialize("2025-11-25", {}, "/mcp/reviewer");
    await bench.initialize("2025-11-25", { "x-caller": "bound" });
    await bench.initialize("2025-11-25", { "x-caller": "bound" }, "/mcp/reviewer");
    expect(engine.origins.map(({ scope }) => scope)).toEqual([1, 2, 3].map(() => ({ role: "reviewer" })));
    const other = await bench.post(initializeRequest("2025-11-25"), { "x-caller": "bound" }, "/mcp/admin");
    expect(other.status).toBe(403);
    expect(other.json).toMatchObject({ error: { message: expect.stringContaining("role") } });
    expect((await bench.post(initializeRequest("2025-11-25"), {}, "/mcp/a/b")).status).toBe(404);
  });

  it("[gate-05b] servers and tags narrow, and equal narrowings are equal", async () => {
    await bench.initialize("2025-11-25", {}, "/mcp?servers=b,a&tags=x");
    await bench.initialize("2025-11-25", {}, "/mcp?tags=x&servers=a&servers=b,b");
    await bench.initialize("2025-11-25", {}, "/mcp?servers=&other=1");
    const [first, second, third] = engine.origins.map(({ scope }) => scope);
    expect(first).toEqual({ servers: ["a", "b"], tags: ["x"] });
    expect(second).toEqual(first);
    expect(third).toEqual({});
  });

  it("[gate-05b] a session is known only with the view that it was opened with", async () => {
    const session = await bench.initialize("2025-11-25", {}, "/mcp?servers=a");
    expect((await bench.post(call(1, "echo"), session, "/mcp?servers=a")).status).toBe(200);
    for (const path of ["/mcp", "/mcp?servers=a,b", "/mcp/admin?servers=a"]) {
      expect((await bench.post(call(1, "echo"), session, path)).status, path).toBe(404);
    }
  });
});

describe("a client that goes away", () => {
  it("[gate-11c] cancels its call at once if nothing was sent yet", async () => {
    const session = await bench.initialize();
    const sent = bench.cut("/mcp", session, call("gone", "hold"));
    await eventually(() => engine.held.has("gone"));
    expect(engine.sessions[0]?.abandoned).toEqual([]);
    sent.cut();
    await eventually(() => engine.sessions[0]?.abandoned.length === 1);
    expect(engine.sessions[0]?.abandoned).toEqual(["gone"]);
  });

  it("[gate-11c] keeps its call for a while if it can come back for the answer", async () => {
    const session = await bench.initialize();
    const stream = await startHeld("kept", session);
    stream.cut();
    await eventually(() => bench.http.streams === 0);
    await bench.clock.advance(9_999);
    expect(engine.sessions[0]?.abandoned).toEqual([]);
    await bench.clock.advance(1);
    expect(engine.sessions[0]?.abandoned).toEqual(["kept"]);
  });
});

async function startHeld(id: string, session: Record<string, string>): ReturnType<Bench["postStream"]> {
  const opening = bench.postStream(call(id, "hold"), session);
  await eventually(() => engine.held.has(id));
  engine.held.get(id)?.sink.send(['{"jsonrpc":"2.0","method":"notifications/progress","params":{}}']);
  return opening;
}
