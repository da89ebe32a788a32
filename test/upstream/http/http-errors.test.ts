import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { HttpClient } from "../../../src/upstream/http/http-client.ts";
import { connectionError } from "../../../src/upstream/http/http-errors.ts";
import { StreamableWire } from "../../../src/upstream/http/streamable-wire.ts";
import { ask, json, listenTo, result, serve } from "./http-bench.ts";

const OPENSSL = "openssl";
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

async function failure(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  const wire = new StreamableWire({ url, headers });
  listenTo(wire);
  return wire.open(new AbortController().signal).then(
    () =>
      wire.send(ask(1)).then(
        () => "sent",
        (error: unknown) => error,
      ),
    (error: unknown) => error,
  );
}

describe("[spine-08b] what a failed request tells a person", () => {
  it("nobody listens", async () => {
    const server = createServer();
    const port = await portOf(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await failure(`http://127.0.0.1:${port}/mcp`)).toMatchObject({
      code: "server_unavailable",
      message: `nothing answers at 127.0.0.1:${port} (connection refused)`,
      hint: expect.stringContaining("running"),
      details: { sent: false },
    });
  });

  it("there is no such host", async () => {
    expect(await failure("http://no-such-host.invalid/mcp")).toMatchObject({
      message: expect.stringMatching(/no-such-host\.invalid/),
      details: { sent: false },
    });
  });

  // A key in the repository would be one more thing for scanners to find.
  it.skipIf(spawnSync(OPENSSL, ["version"]).status !== 0)("a self-signed certificate", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-tls-"));
    const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-days", "2"];
    execFileSync(OPENSSL, ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject], {
      stdio: "pipe",
    });
    const port = await portOf(createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }));
    expect(await failure(`https://127.0.0.1:${port}/mcp`)).toMatchObject({
      message: `the certificate of 127.0.0.1:${port} is self-signed`,
      hint: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
      details: { sent: false },
    });
  });

  it("https to a port that speaks http", async () => {
    const { url } = await serve((_seen, response) => response.end());
    expect(await failure(url.replace("http:", "https:"))).toMatchObject({
      message: expect.stringContaining("does not answer with TLS"),
    });
  });

  it("no HTTP at all, and a connection that is cut", async () => {
    const other = await portOf(createServer((socket) => socket.on("error", () => {}).end("SSH-2.0-OpenSSH\r\n")));
    expect(await failure(`http://127.0.0.1:${other}`)).toMatchObject({
      message: `127.0.0.1:${other} does not answer with HTTP`,
    });
    const cut = await portOf(
      createServer((socket) => socket.on("error", () => {}).once("data", () => socket.destroy())),
    );
    expect(await failure(`http://127.0.0.1:${cut}`)).toMatchObject({
      message: `the connection to 127.0.0.1:${cut} was cut`,
      details: { sent: true },
    });
  });

  it.each([
    ["CERT_HAS_EXPIRED", "has expired"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "is for another host name"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "not signed by an authority"],
    ["CERT_NOT_YET_VALID", "not valid yet"],
    ["ETIMEDOUT", "within the time allowed"],
    ["EHOSTUNREACH", "cannot reach"],
    ["WHATEVER", "failed: odd thing"],
  ])("%s", (code, text) => {
    const error = Object.assign(new Error("odd thing"), { code });
    expect(connectionError(error, new URL("https://host.example/mcp"), false).message).toContain(text);
  });

  it.each([
    [401, "unauthorized", "asks for credentials (HTTP 401)"],
    [403, "unauthorized", "denies access (HTTP 403)"],
    [404, "server_unavailable", "nothing is at"],
    [405, "server_unavailable", "does not take this kind of request"],
    [429, "rate_limited", "too many requests"],
    [500, "server_unavailable", "an internal error (HTTP 500)"],
    [418, "server_unavailable", "refused the request (HTTP 418)"],
  ])("HTTP %i", async (status, code, text) => {
    const { url } = await serve((_seen, response) =>
      response.writeHead(status, { "www-authenticate": "Bearer" }).end("no"),
    );
    expect(await failure(`${url}/mcp?token=hunter2`, { authorization: "Bearer hunter2" })).toMatchObject({
      code,
      message: expect.stringContaining(text),
      details: { status, challenge: "Bearer" },
    });
  });

  it("an error status with a JSON-RPC error in its body", async () => {
    const rpc = { code: -32022, message: "unsupported", data: { supported: ["2025-11-25"] } };
    const { url } = await serve((_seen, response) => json(response, { jsonrpc: "2.0", id: null, error: rpc }, {}, 400));
    expect(await failure(url)).toMatchObject({
      message: expect.stringContaining("unsupported"),
      details: { status: 400, rpc },
    });
  });

  it.each([
    ["text/html; charset=utf-8", 200, "it answered with text/html"],
    [undefined, 202, "it answered with no content"],
  ])("an answer of kind %s", async (contentType, status, text) => {
    const { url } = await serve((_seen, response) =>
      response.writeHead(status, contentType === undefined ? {} : { "content-type": contentType }).end("<html>"),
    );
    expect(await failure(`${url}/page`)).toMatchObject({
      message: expect.stringContaining(`${url}/page is not an MCP server: ${text}`),
    });
  });

  it("a header that HTTP does not allow, without its value", async () => {
    const error = await failure("http://127.0.0.1:1", { Authorization: "Bearer hunter2\n" });
    expect(error).toMatchObject({ code: "invalid_config", message: expect.stringContaining('"Authorization"') });
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
  });

  it.each(["not a url", "ftp://host/x", ""])("the address %j", async (url) => {
    expect(await failure(url)).toMatchObject({ code: "invalid_config" });
  });

  it("never a header, user, password or query", async () => {
    const { url } = await serve((_seen, response) => response.writeHead(500).end());
    const error = await failure(url.replace("http://", "http://user:hunter2@").concat("/mcp?key=hunter2"), {
      "x-key": "hunter2",
    });
    expect(error).toMatchObject({ details: { status: 500 } });
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
  });
});

describe("redirects", () => {
  const get = async (url: string): Promise<unknown> => {
    const client = new HttpClient();
    try {
      const { status, url: from } = await client.request({
        method: "POST",
        url: new URL(url),
        headers: { authorization: "Bearer secret" },
        body: '{"a":1}',
      });
      return { status, from: from.pathname };
    } catch (error) {
      return error;
    } finally {
      client.destroy();
    }
  };

  it.each([307, 308])("follows %i on the same origin with method and body", async (status) => {
    const { url, seen } = await serve((one, response) => {
      if (one.path === "/old") response.writeHead(status, { location: "/new" }).end();
      else response.end();
    });
    expect(await get(`${url}/old`)).toEqual({ status: 200, from: "/new" });
    expect(seen.at(-1)).toMatchObject({
      method: "POST",
      path: "/new",
      body: { a: 1 },
      headers: { authorization: "Bearer secret" },
    });
  });

  it("never sends anything to another origin", async () => {
    const other = await serve((_one, response) => response.end());
    const { url } = await serve((_one, response) =>
      response.writeHead(307, { location: `${other.url}/mcp?x=1` }).end(),
    );
    expect(await get(url)).toMatchObject({
      message: expect.stringContaining(`redirects to ${other.url}/mcp, which is not followed`),
    });
    expect(other.seen).toEqual([]);
  });

  it("nor to this machine, by an address that has the server's origin without being HTTP", async () => {
    const { url, seen } = await serve((one, response) =>
      response.writeHead(307, { location: `blob:http://${one.headers.host}/mcp` }).end(),
    );
    expect(await get(url)).toMatchObject({ message: expect.stringContaining("which is not followed (HTTP 307)") });
    expect(seen).toHaveLength(1);
  });

  it.each([301, 302, 303])("does not follow %i, which would lose the body", async (status) => {
    const { url, seen } = await serve((_one, response) => response.writeHead(status, { location: "/new" }).end());
    expect(await get(url)).toMatchObject({ hint: expect.stringContaining("`url`") });
    expect(seen).toHaveLength(1);
  });

  it.each([
    [302, false],
    [303, true],
  ])("[spine-09b] of which %i makes it %s that a call may have run", async (status, sent) => {
    const { url } = await serve((_one, response) => response.writeHead(status, { location: "/result" }).end());
    expect(await get(url)).toMatchObject({ code: "server_unavailable", details: { status, sent } });
  });

  it("ends a circle", async () => {
    const { url, seen } = await serve((_one, response) => response.writeHead(308, { location: "/again" }).end());
    expect(await get(url)).toMatchObject({ code: "server_unavailable" });
    expect(seen.length).toBeLessThan(10);
  });
});

describe("a kept connection that the server closes as it is used", () => {
  /** Answers the first message on each connection and cuts it at the second. */
  async function fickle(): Promise<{ wire: StreamableWire; posts: () => number }> {
    const perConnection = new Map<unknown, number>();
    let posts = 0;
    const bench = await serve((seen, response) => {
      const count = (perConnection.get(response.socket) ?? 0) + 1;
      perConnection.set(response.socket, count);
      posts++;
      if (count === 2) response.socket?.resetAndDestroy();
      else json(response, result(seen.body["id"]));
    });
    const wire = new StreamableWire({ url: bench.url, headers: {} });
    const heard = listenTo(wire);
    await wire.open(new AbortController().signal);
    await wire.send(ask(1, "ping"));
    await expect.poll(() => heard.messages.length).toBe(1);
    // Until the connection is free again.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { wire, posts: () => posts };
  }

  it("is tried again on a new one for everything but a call", async () => {
    const { wire, posts } = await fickle();
    await wire.send(ask(2, "tools/list"));
    expect(posts()).toBe(3);
  });

  it("fails a call, which may have run", async () => {
    const { wire, posts } = await fickle();
    await expect(wire.send(ask(2, "tools/call"))).rejects.toMatchObject({ details: { sent: true, stale: true } });
    expect(posts()).toBe(2);
  });
});
