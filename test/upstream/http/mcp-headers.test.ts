import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { claimedVersion, encodeHeaderValue, modernHeaders } from "../../../src/upstream/http/mcp-headers.ts";

describe("encodeHeaderValue", () => {
  // The examples of the specification.
  it.each([
    ["us-west1", "us-west1"],
    ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
    ["file:///a b.txt", "file:///a b.txt"],
  ])("writes %j as %j", (value, header) => {
    expect(encodeHeaderValue(value)).toBe(header);
  });

  it("gives a legal header that can be read back, for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const header = encodeHeaderValue(value);
        expect(header).toMatch(/^[\x20-\x7e\t]*$/);
        const encoded = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
        const back = encoded === undefined ? header : Buffer.from(encoded, "base64").toString("utf8");
        expect(back).toBe(Buffer.from(value, "utf8").toString("utf8"));
      }),
    );
  });
});

describe("modernHeaders", () => {
  const send = (method: string, params: Record<string, unknown>) =>
    modernHeaders({ jsonrpc: "2.0", id: 1, method, params }, "2026-07-28");

  it("mirrors method and name", () => {
    expect(send("tools/call", { name: "größe" })).toEqual({
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "=?base64?Z3LDtsOfZQ==?=",
    });
    expect(send("resources/read", { uri: "file:///x" })["mcp-name"]).toBe("file:///x");
    expect(send("prompts/get", { name: "p" })["mcp-name"]).toBe("p");
    expect(send("tools/list", { name: "not mirrored" })).not.toHaveProperty("mcp-name");
  });

  it("finds the version that a message claims", () => {
    const params = { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } };
    expect(claimedVersion({ jsonrpc: "2.0", id: 1, method: "server/discover", params })).toBe("2026-07-28");
    expect(claimedVersion({ jsonrpc: "2.0", id: 1, method: "initialize", params: {} })).toBeUndefined();
  });
});
