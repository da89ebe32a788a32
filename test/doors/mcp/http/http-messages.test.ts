import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { acceptsOf, decodeHeaderValue, isJson, respondJson } from "../../../../src/doors/mcp/http/http-messages.ts";
import { EventLog, type LoggedEvent } from "../../../../src/doors/mcp/http/streamable-session.ts";
import { requestedScope, scopeKey } from "../../../../src/doors/mcp/view-scope.ts";
import { encodeHeaderValue } from "../../../../src/upstream/http/mcp-headers.ts";
import { callerOf } from "./bench.ts";

describe("Accept", () => {
  it.each([
    [undefined, { json: true, stream: true }],
    ["*/*", { json: true, stream: true }],
    ["text/event-stream, application/json", { json: true, stream: true }],
    ["Application/JSON;q=0.9", { json: true, stream: false }],
    ["text/*", { json: false, stream: true }],
    ["application/json, text/event-stream;q=0", { json: true, stream: false }],
    ["text/html", undefined],
    ["application/json+x", undefined],
  ])("[gate-01a] %s", (accept, expected) => {
    expect(acceptsOf(accept)).toEqual(expected);
  });

  it("[gate-01a] only JSON is a message", () => {
    expect(["application/json", "application/json; charset=utf-8", "Application/Json"].map(isJson)).toEqual([
      true,
      true,
      true,
    ]);
    expect(["text/plain", "application/jsonx", undefined, ""].map(isJson)).toEqual([false, false, false, false]);
  });
});

describe("the event log", () => {
  const event = (stream: number, seq: number, message: string, delivered = true): LoggedEvent => ({
    stream,
    seq,
    message: [message],
    at: seq,
    delivered,
  });

  it("[gate-01a] is bounded by count; what nobody got stays longest", () => {
    const log = new EventLog();
    log.add(event(0, 1, "waits", false));
    for (let seq = 1; seq <= 1000; seq++) log.add(event(1, seq, "x"));
    expect(log.after(1, 0)).toHaveLength(255);
    expect(log.undelivered(0)).toHaveLength(1);
    expect(log.after(1, 0)[0]?.seq).toBe(746);
    expect(log.after(1, 998).map(({ seq }) => seq)).toEqual([999, 1000]);
  });

  it("[gate-01a] is bounded by bytes, but keeps the newest event", () => {
    const log = new EventLog();
    const large = "x".repeat(400_000);
    for (let seq = 1; seq <= 4; seq++) log.add(event(1, seq, large));
    expect(log.after(1, 0).map(({ seq }) => seq)).toEqual([3, 4]);
    log.add(event(1, 5, "x".repeat(3_000_000)));
    expect(log.after(1, 0).map(({ seq }) => seq)).toEqual([5]);
    log.add(event(1, 6, "small"));
    expect(log.after(1, 0).map(({ seq }) => seq)).toEqual([6]);
  });

  it("[gate-01a] forgets what was delivered long ago", () => {
    const log = new EventLog();
    log.add(event(0, 1, "waits", false));
    log.add(event(1, 2, "old"));
    log.add(event(1, 9, "new"));
    log.expire(5);
    expect([log.undelivered(0).length, log.after(1, 0).map(({ seq }) => seq)]).toEqual([1, [9]]);
  });
});

describe("header values", () => {
  it("[gate-01b] what our own client encodes is read back", () => {
    for (const value of ["plain", "", " padded ", "größe", "a\nb", "=?base64?x?=", "日本語", "\ufeffx"]) {
      expect(decodeHeaderValue(encodeHeaderValue(value))).toBe(value);
    }
  });

  it("[gate-01b] what is no valid value is none", () => {
    for (const value of ["gr\xfc\xdfe", "\x01", "=?base64?SGVsbG8?=", "=?base64?/w==?="]) {
      expect(decodeHeaderValue(value), value).toBeUndefined();
    }
    expect(decodeHeaderValue("=?BASE64?SGVsbG8=?=")).toBe("=?BASE64?SGVsbG8=?=");
  });
});

describe("view scopes", () => {
  it("[gate-05b] [gate-14a] have one key however a narrowing is written, and nothing of them is kept", () => {
    const keyOf = (query: string): string | undefined => {
      const choice = requestedScope("/mcp", "/mcp", new URLSearchParams(query), callerOf("a"));
      return choice.ok ? scopeKey(choice.scope) : undefined;
    };
    expect(keyOf("servers=b,a&tags=x")).toBe(keyOf("tags=x&servers=a&servers=%20b,a,"));
    expect(keyOf("servers=a")).not.toBe(keyOf("servers=b"));
    expect(keyOf("servers=,")).toBe(keyOf(""));
  });
});

describe("a JSON answer", () => {
  it.each([
    ["of one text", ['{"a":1}']],
    ["of parts", ['{"tools":', Buffer.from("[1,2]"), "}"]],
  ])("[speed-07b] %s is one write", async (_what, body) => {
    let writes = 0;
    const server = createServer((_incoming, outgoing) => respondJson(outgoing, 200, body));
    server.on("connection", (socket) => {
      for (const method of ["_write", "_writev"] as const) {
        const spied = vi.spyOn(socket, method);
        socket.on("close", () => (writes += spied.mock.calls.length));
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    // A server that listens on a port has an address with one.
    const { port } = server.address() as AddressInfo;
    const closed = once(server, "close");
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
    expect(await answer.json()).toEqual(JSON.parse(body.map(String).join("")));
    server.close();
    await closed;
    expect(writes).toBe(1);
  });
});
