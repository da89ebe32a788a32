import { describe, expect, it } from "vitest";
import { type ErrorCode, ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { describeFailure } from "../../src/upstream/connection-failures.ts";
import { isLoopback } from "../../src/base/network-address.ts";
import { checkRemoteAddress } from "../../src/upstream/http/address-policy.ts";
import { bench } from "../support/connection-bench.ts";
import { FakeWire } from "../support/fake-wire.ts";

const describeIt = (code: ErrorCode, message: string, details: JsonObject = {}) =>
  describeFailure(new ToolcribError(code, message, { details }), (text) => text);

describe("describeFailure", () => {
  it.each<[string, ErrorCode, JsonObject]>([
    ["a missing command", "server_unavailable", { reason: "ENOENT" }],
    ["a command without permission", "server_unavailable", { reason: "EACCES" }],
    ["an expired certificate", "server_unavailable", { reason: "CERT_HAS_EXPIRED" }],
    ["a self-signed certificate", "server_unavailable", { reason: "DEPTH_ZERO_SELF_SIGNED_CERT" }],
    ["missing credentials", "unauthorized", { status: 401 }],
    ["a reference that does not resolve", "invalid_config", {}],
    ["a web page", "server_unavailable", { contentType: "text/html" }],
    ["a wrong path", "server_unavailable", { status: 404 }],
    ["an error to initialize", "tool_error", { rpc: { code: -32000, message: "no" } }],
  ])("[spine-08b] sees that waiting does not mend %s", (_name, code, details) => {
    expect(describeIt(code, "why", details)).toMatchObject({ heals: false, reason: expect.stringContaining("why") });
  });

  it.each<[string, ErrorCode, JsonObject]>([
    ["an exit", "server_unavailable", { exitCode: 1 }],
    ["a refused connection", "server_unavailable", { reason: "ECONNREFUSED", sent: false }],
    ["a timeout", "timeout", {}],
    ["a fault of the server", "server_unavailable", { status: 503 }],
    ["a busy server", "rate_limited", { status: 429 }],
  ])("[spine-08b] tries again after %s", (_name, code, details) => {
    expect(describeIt(code, "why", details)).toMatchObject({ heals: true, reason: expect.stringContaining("why") });
  });

  it("finds the code of the error that caused it", () => {
    const cause = Object.assign(new Error("tls"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    expect(describeFailure(new ToolcribError("server_unavailable", "why", { cause }), String)).toMatchObject({
      heals: false,
    });
  });

  it("shows a reason that can be read, however much a server has to say", () => {
    const { reason } = describeIt("server_unavailable", `begin ${"x".repeat(400_000)} end`);
    expect(reason.length).toBeLessThanOrEqual(8192);
    expect(reason).toMatch(/^begin x+\n\[\.\.\. cut here \.\.\.\]\nx+ end$/);
  });

  it("masks what it shows", () => {
    const error = new ToolcribError("server_unavailable", "token abc", { hint: "not abc" });
    expect(describeFailure(error, (text) => text.replaceAll("abc", "***"))).toEqual({
      reason: "token ***",
      hint: "not ***",
      heals: true,
    });
  });
});

describe("remote addresses", () => {
  it.each([
    "https://example.com/mcp",
    "http://localhost:3000",
    "http://127.0.0.1",
    "http://127.9.9.9:1",
    "http://[::1]:8080/x",
    "http://app.localhost/",
  ])("[spine-06d] allow %s", (url) => {
    expect(checkRemoteAddress(url).href).toContain("://");
  });

  it.each([
    "http://example.com",
    "http://127.0.0.1.evil.com",
    "http://10.0.0.1",
    "http://localhost.evil.com",
    "ftp://example.com",
    "nonsense",
  ])("[spine-06d] refuse %s", (url) => {
    expect(() => checkRemoteAddress(url)).toThrow(ToolcribError);
  });

  it("allow plain http where the operator said so of the very server", () => {
    expect(checkRemoteAddress("http://mcp-files:8080/mcp", undefined, true).host).toBe("mcp-files:8080");
    expect(() => checkRemoteAddress("ftp://mcp-files", undefined, true)).toThrow(ToolcribError);
  });

  it("see through other spellings of loopback", () => {
    expect(isLoopback(new URL("http://0x7f000001/").hostname)).toBe(true);
    expect(isLoopback(new URL("http://2130706433/").hostname)).toBe(true);
  });

  it("[spine-06d] are checked after references are resolved, before anything is sent", async () => {
    const opened: FakeWire[] = [];
    const { connection } = bench(
      { url: "http://${HOST}/mcp?key=abc" },
      { env: { HOST: "example.com" }, openWire: (kind) => (opened.push(new FakeWire(kind)), new FakeWire(kind)) },
    );
    await connection.connect();
    expect(connection.state).toMatchObject({ kind: "failed", reason: expect.stringContaining("https") });
    expect(connection.state).toMatchObject({ reason: expect.not.stringContaining("abc") });
    expect(opened).toEqual([]);
  });

  it("[spine-06b] that hold an unknown reference stop this server, and the reason names the reference", async () => {
    const { connection } = bench(
      { url: "https://x.example", headers: { Authorization: "Bearer ${NOPE_TOKEN}" } },
      { env: {} },
    );
    await connection.connect();
    expect(connection.state).toMatchObject({ kind: "failed", reason: expect.stringContaining("NOPE_TOKEN") });
  });
});
