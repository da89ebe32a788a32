import { describe, expect, it } from "vitest";
import { decodeMessages, isRequest, isResponse } from "../../src/upstream/wire.ts";

describe("decodeMessages", () => {
  it("[spine-13d] passes messages on as they came, unknown fields included", () => {
    const message = { jsonrpc: "2.0", id: 1, result: { extra: [1, { deep: null }] }, trace: "kept" };
    expect(decodeMessages(JSON.stringify(message))).toEqual([message]);
  });

  it("unpacks a batch", () => {
    const batch = [
      { jsonrpc: "2.0", method: "a" },
      { jsonrpc: "2.0", id: 1, result: {} },
    ];
    expect(decodeMessages(JSON.stringify(batch))).toEqual(batch);
  });

  it.each([
    "",
    "text",
    "42",
    "null",
    '"text"',
    "[]",
    "[1]",
    "{}",
    '{"level":30,"msg":"a log line"}',
    '{"id":1}',
    '{"id":1,"error":"x"}',
    '{"id":1,"error":null}',
  ])("[spine-09e] has no message in %j", (text) => {
    expect(decodeMessages(text)).toBeNull();
  });

  it.each([
    ['{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}', { result: { a: 1 } }],
    ['{"jsonrpc":"2.0","id":1,"error":null}', {}],
    ['{"jsonrpc":"2.0","id":1,"error":"the disk is full"}', { error: { code: -32603, message: "the disk is full" } }],
    ['{"jsonrpc":"2.0","id":1,"error":true}', { error: { code: -32603, message: "" } }],
    ['\uFEFF{"jsonrpc":"2.0","id":1,"result":{}}', { result: {} }],
  ])("[whole-05a] reads the answer of a server without a library: %s", (text, answer) => {
    expect(decodeMessages(text)).toEqual([{ jsonrpc: "2.0", id: 1, ...answer }]);
    if (!text.startsWith("\uFEFF")) expect(decodeMessages(`[${text}]`)).toEqual([{ jsonrpc: "2.0", id: 1, ...answer }]);
  });

  it("tells requests, notifications and answers apart", () => {
    const [request] = decodeMessages('{"id":1,"method":"ping"}') ?? [];
    const [notification] = decodeMessages('{"method":"note"}') ?? [];
    const [answer] = decodeMessages('{"id":1,"result":{}}') ?? [];
    expect([request, notification, answer].map((message) => message !== undefined && isRequest(message))).toEqual([
      true,
      false,
      false,
    ]);
    expect([request, notification, answer].map((message) => message !== undefined && isResponse(message))).toEqual([
      false,
      false,
      true,
    ]);
  });
});
