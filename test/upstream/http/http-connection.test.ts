import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { HttpClient, type HttpRequest } from "../../../src/upstream/http/http-client.ts";
import { ResponseParser } from "../../../src/upstream/http/http-connection.ts";
import { readText } from "../../../src/upstream/http/response-body.ts";

const MIB = 1024 * 1024;

interface Parsed {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  body: string;
  isKept?: boolean;
}

function parse(pieces: readonly (string | Buffer)[], sizes?: number[]): Parsed[] {
  const parsed: Parsed[] = [];
  const parser = new ResponseParser({
    onHead: (status, headers) => parsed.push({ status, headers, body: "" }),
    onData: (chunk) => {
      sizes?.push(chunk.length);
      Object.assign(parsed.at(-1) ?? {}, { body: (parsed.at(-1)?.body ?? "") + chunk.toString() });
    },
    onEnd: (isKept) => Object.assign(parsed.at(-1) ?? {}, { isKept }),
  });
  for (const piece of pieces) parser.push(Buffer.from(piece));
  parser.endInput();
  return parsed;
}

const lines = (...all: string[]): string => all.join("\r\n");

describe("[spine-09f] the responses of a server over HTTP", () => {
  const plain = lines("HTTP/1.1 200 OK", "Content-Type: application/json", "X-A:  b ", "Content-Length: 2", "", "{}");
  const chunked = lines(
    "HTTP/1.1 100 Continue",
    "",
    "HTTP/1.1 200",
    "transfer-encoding: Chunked",
    "",
    "5;ext=1",
    "hello",
    "00D",
    ", \r\n\r\nworld!!",
    "0",
    "X-Trailer: 1",
    "",
    "",
  );
  const none = lines("HTTP/1.1 204 No Content", "Connection: close", "", "");

  it.each([
    ["with a length", plain, { status: 200, body: "{}", isKept: true }],
    ["in chunks", chunked, { status: 200, body: "hello, \r\n\r\nworld!!", isKept: true }],
    ["without a body", none, { status: 204, body: "", isKept: false }],
    ["that end with the connection", "HTTP/1.1 200 OK\r\n\r\nabc", { status: 200, body: "abc", isKept: false }],
    ["of HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", { status: 200, body: "", isKept: false }],
  ])("are read wherever they are cut: %s", (_kind, text, expected) => {
    for (let cut = 0; cut < text.length; cut++) {
      expect(parse([text.slice(0, cut), text.slice(cut)]), `cut at ${cut}`).toMatchObject([expected]);
    }
    expect(parse([...text])).toMatchObject([expected]);
  });

  it("have headers with names in lower case, and lists of those that come twice", () => {
    const text = lines(
      "HTTP/1.1 200 OK",
      "A: 1",
      "a: 2",
      "Content-Type: x",
      "content-type: y",
      "Content-Length: 0",
      "",
      "",
    );
    expect(parse([text])[0]?.headers).toEqual({ a: "1, 2", "content-type": "x", "content-length": "0" });
  });

  it.each([
    ["no HTTP", "220 smtp.example ready"],
    ["HTTP/2", "HTTP/2 200\r\n\r\n"],
    ["two lengths", lines("HTTP/1.1 200 OK", "content-length: 2", "content-length: 3", "", "{}")],
    ["a length that is not a number", lines("HTTP/1.1 200 OK", "content-length: +2", "", "{}")],
    ["a length and chunks", lines("HTTP/1.1 200 OK", "content-length: 2", "transfer-encoding: chunked", "", "{}")],
    ["another coding", lines("HTTP/1.1 200 OK", "transfer-encoding: gzip, chunked", "", "{}")],
    ["a space before the colon", lines("HTTP/1.1 200 OK", "content-length : 2", "", "{}")],
    ["a folded header", lines("HTTP/1.1 200 OK", "a: 1", " b: 2", "", "{}")],
    ["a line break without its half", lines("HTTP/1.1 200 OK", "a: 1\nb: 2", "", "{}")],
    ["a line break in the status", lines("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", "content-length: 2", "", "{}")],
    ["half of a line break at the end", lines("HTTP/1.1 200 OK", "content-length: 2\r", "", "{}")],
    ["a control for a blank", lines("HTTP/1.1 200 OK", "transfer-encoding:\x0bchunked", "", "0", "", "")],
    ["another blank", Buffer.from(lines("HTTP/1.1 200 OK", "content-length:\xa02", "", "{}"), "latin1")],
    [
      "a line break in a trailer",
      lines("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "0", "a: 1\nb: 2", "", ""),
    ],
    ["a chunk without a size", lines("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "zz", "")],
    [
      "a chunk that is longer than its size",
      lines("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "1", "abc", ""),
    ],
    ["another protocol", lines("HTTP/1.1 101 Switching Protocols", "upgrade: x", "", "")],
    ["interim responses without an end", "HTTP/1.1 102 Processing\r\n\r\n".repeat(2000)],
    ["a head without an end", `HTTP/1.1 200 OK\r\na: ${"x".repeat(20_000)}`],
    [
      "trailers without an end",
      lines(
        "HTTP/1.1 200 OK",
        "transfer-encoding: chunked",
        "",
        "0",
        ..."x"
          .repeat(4000)
          .split("")
          .map(() => "a: bcd"),
        "",
      ),
    ],
  ])("are refused if it is unclear where they end: %s", (_kind, text) => {
    const bytes = Buffer.from(text);
    const each = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    expect(() => parse([bytes])).toThrow(expect.objectContaining({ code: "HPE_INVALID_RESPONSE" }));
    expect(() => parse(each)).toThrow(expect.objectContaining({ code: "HPE_INVALID_RESPONSE" }));
  });

  it("[spine-09g] cost no more where blanks are in a header than where letters are", { retry: 2 }, () => {
    const cost = (filler: string): number => {
      const head = lines("HTTP/1.1 103 Early Hints", `a: b${filler.repeat(16_000)}b`, "", "");
      const start = process.cpuUsage();
      parse(Array<string>(10).fill(head));
      const { user, system } = process.cpuUsage(start);
      // Below this it is noise.
      return Math.max(5000, user + system);
    };
    expect(cost(" ") / cost("x")).toBeLessThan(20);
  });

  it("[spine-09g] are given on as they come, not as many pieces as they have chunks", () => {
    const sizes: number[] = [];
    const body = "a chunk for each of its bytes";
    const text = lines(
      "HTTP/1.1 200 OK",
      "transfer-encoding: chunked",
      "",
      ...[...body].flatMap((each) => ["1", each]),
      "0",
      "",
      "",
    );
    for (let cut = 0; cut < text.length; cut++) {
      sizes.length = 0;
      expect(parse([text.slice(0, cut), text.slice(cut)], sizes)).toMatchObject([{ body, isKept: true }]);
      expect(sizes.length).toBeLessThan(3);
    }
  });
});

const servers: Server[] = [];
const sockets = new Set<Socket>();
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

/** @param answer Gets each piece that arrives; the number counts the connections. */
async function raw(answer: (socket: Socket, text: string, connection: number) => void): Promise<URL> {
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const number = (connections += 1);
    sockets.add(socket.setNoDelay(true).on("error", () => {}));
    socket.on("data", (data) => answer(socket, data.toString(), number));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

function newClient(): HttpClient {
  const client = new HttpClient();
  onTestFinished(() => client.destroy());
  return client;
}

const post = (url: URL, rest: Partial<HttpRequest> = {}): HttpRequest => ({
  method: "POST",
  url,
  headers: {},
  body: "{}",
  ...rest,
});

async function textOf(client: HttpClient, request: HttpRequest): Promise<string> {
  const { body, url } = await client.request(request);
  return readText(body, url, MIB);
}

const ok = (body: string, ...headers: string[]): string =>
  lines("HTTP/1.1 200 OK", `Content-Length: ${Buffer.byteLength(body)}`, ...headers, "", body);

describe("requests over HTTP", () => {
  it("[speed-07d] are one write each, on a connection that is used again", async () => {
    const got: string[] = [];
    const url = await raw((socket, text, connection) => {
      got.push(text);
      socket.write(ok(`on ${connection}`));
    });
    const client = newClient();
    for (const body of ["{}", '{"a":"ä"}', "{}"]) expect(await textOf(client, post(url, { body }))).toBe("on 1");
    expect(got).toHaveLength(3);
    expect(got[1]).toBe(
      lines("POST /mcp HTTP/1.1", `host: ${url.host}`, "connection: keep-alive", "content-length: 10", "", '{"a":"ä"}'),
    );
  });

  it("get a body that ends with its connection, and one that comes in pieces", async () => {
    const url = await raw((socket, text) => {
      if (text.startsWith("GET")) {
        socket.end("HTTP/1.1 200 OK\r\n\r\nabc");
        return;
      }
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab");
      setTimeout(() => socket.write("c\r\n2\r\nde\r\n0\r\n\r\n"), 20);
    });
    const client = newClient();
    expect(await textOf(client, { method: "GET", url, headers: {} })).toBe("abc");
    for (let times = 0; times < 2; times++) expect(await textOf(client, post(url))).toBe("abcde");
  });

  it("are not sent with a header that would end it", async () => {
    const url = await raw(() => expect.fail("something was sent"));
    const broken: Record<string, string>[] = [{ a: "1\r\nb: 2" }, { "a: 1\r\nb": "2" }];
    for (const headers of broken)
      await expect(newClient().request(post(url, { headers }))).rejects.toThrow(/Invalid character|valid HTTP token/);
  });

  it.each([
    ["more than the response", (): string => `${ok("{}")}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`],
    ["something later that nobody asked for", (): string => ok("{}")],
    ["that it closes", (): string => ok("{}", "Connection: close")],
    ["that it soon closes", (): string => ok("{}", "Keep-Alive: timeout=1")],
  ])("[spine-09f] never use a connection again whose server sent %s", async (kind, answer) => {
    const url = await raw((socket, _text, connection) => {
      socket.write(connection === 1 ? answer() : ok("good"));
      if (kind.includes("later")) setImmediate(() => socket.write(ok("evil")));
    });
    const client = newClient();
    expect(await textOf(client, post(url))).toBe("{}");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await textOf(client, post(url))).toBe("good");
  });

  it("[spine-09g] end when the server says that it is done, though it has not read them", async () => {
    const url = await raw((socket) => socket.pause().end());
    const request = post(url, { body: "x".repeat(16 * MIB) });
    await expect(newClient().request(request)).rejects.toMatchObject({ details: { reason: "ECONNRESET" } });
  });

  it("[spine-09g] do not go on with a body without an end that nobody wants", async () => {
    const closed = Promise.withResolvers<string>();
    const url = await raw((socket) => {
      const more = (): void => {
        while (socket.write("x".repeat(64 * 1024)));
      };
      socket.on("drain", more).on("close", () => closed.resolve("closed"));
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      more();
    });
    const { body } = await newClient().request(post(url));
    void body.discard();
    expect(await closed.promise).toBe("closed");
  });

  it("[spine-09h] leave no connection open for a body that nobody wants and that does not end", async () => {
    const closed = Promise.withResolvers<string>();
    const url = await raw((socket) => {
      socket.on("end", () => closed.resolve("closed"));
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    });
    const { body } = await newClient().request(post(url));
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    void body.discard();
    vi.advanceTimersByTime(60_000);
    expect(await closed.promise).toBe("closed");
  });

  it("are stale if the server closes a kept connection instead of answering", async () => {
    let requests = 0;
    const url = await raw((socket) => {
      requests += 1;
      if (requests === 1) socket.write(ok("{}"));
      else socket.destroy();
    });
    const client = newClient();
    await textOf(client, post(url));
    await expect(client.request(post(url))).rejects.toMatchObject({ details: { sent: true, stale: true } });
    // A new connection is not.
    await expect(client.request(post(url))).rejects.toMatchObject({ details: { sent: true, reason: "ECONNRESET" } });
  });

  it("do not take more of a body than fits until it is read", async () => {
    const sent = "x".repeat(8 * MIB);
    let written = 0;
    const url = await raw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${sent.length}\r\n\r\n`);
      const more = (): void => {
        for (let room = true; room && written < sent.length; written += 64 * 1024)
          room = socket.write(sent.slice(written, written + 64 * 1024));
      };
      socket.on("drain", more);
      more();
    });
    const { body } = await newClient().request(post(url));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(body.unreadBytes).toBeLessThan(256 * 1024);
    expect(written).toBeLessThan(sent.length);
    expect(await readText(body, url, 16 * MIB)).toHaveLength(sent.length);
  });

  it("cut a body off that is cancelled, and go on with another connection", async () => {
    const url = await raw((socket, _text, connection) => {
      socket.write(connection === 1 ? "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc" : ok("good"));
    });
    const client = newClient();
    const cancel = new AbortController();
    const { body } = await client.request(post(url, { signal: cancel.signal }));
    const reading = readText(body, url, MIB);
    cancel.abort();
    await expect(reading).rejects.toMatchObject({ code: "server_unavailable" });
    expect(await textOf(client, post(url))).toBe("good");
  });

  const canTrust = "setDefaultCACertificates" in tls && spawnSync("openssl", ["version"]).status === 0;
  it.skipIf(!canTrust)("go over TLS to a server whose certificate is trusted for its name", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-tls-"));
    const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"];
    execFileSync(
      "openssl",
      ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject],
      {
        stdio: "pipe",
      },
    );
    const before = tls.getCACertificates("default");
    tls.setDefaultCACertificates([...before, readFileSync(cert, "utf8")]);
    onTestFinished(() => tls.setDefaultCACertificates(before));
    const resumed: boolean[] = [];
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
      if (request.url === "/close") response.setHeader("connection", "close");
      request.resume().on("end", () => response.end("x".repeat(200_000)));
    }).on("secureConnection", (socket) => resumed.push(socket.isSessionReused()));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    const client = newClient();
    for (let times = 0; times < 3; times++)
      expect(await textOf(client, post(new URL(`https://localhost:${port}/`)))).toHaveLength(200_000);
    expect(resumed).toEqual([false]);
    for (let times = 0; times < 2; times++) await textOf(client, post(new URL(`https://localhost:${port}/close`)));
    expect(resumed).toEqual([false, true]);
    await expect(client.request(post(new URL(`https://127.0.0.1:${port}/`)))).rejects.toMatchObject({
      message: expect.stringContaining("is for another host name"),
    });
  });
});
