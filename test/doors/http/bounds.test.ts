import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { requestsPerMinute } from "../../../src/doors/http/http-access.ts";
import { addressKey, addressList, clientAddress, RateLimit } from "../../../src/doors/http/rate-limit.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { config, echo, place } from "./support.ts";

const HEAD = ["Host: localhost"];
/** Short enough for a test; nothing here asks how long anything took. */
const SOON = { requestTimeoutMs: 400 };

describe("[gate-08e] sizes", () => {
  it("headers above the limit are 431, in one piece or many", async () => {
    const { open } = await place({ limits: { headerBytes: 4096 } });
    const one = await (await open()).send("GET /mcp HTTP/1.1", ...HEAD, `X: ${"x".repeat(5000)}`, "", "").ended();
    expect(one).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":"too_large"/);
    const many = Array.from({ length: 2000 }, (_, index) => `X-${index}: 1`);
    expect(await (await open()).send("GET /mcp HTTP/1.1", ...HEAD, ...many, "", "").ended()).toMatch(
      /^HTTP\/1\.1 431 /,
    );
    expect(await (await open()).send(`GET /mcp?${"q".repeat(6000)} HTTP/1.1`, ...HEAD, "", "").ended()).toMatch(
      /^HTTP\/1\.1 4(31|14) /,
    );
  });

  it("a second Host is found behind any number of other headers", async () => {
    const { open } = await place({ limits: { headerBytes: 65_536 } });
    const many = Array.from({ length: 3000 }, (_, index) => `a${index}: 1`);
    const raw = (await open()).send(
      "GET /mcp HTTP/1.1",
      ...HEAD,
      ...many,
      "Host: evil.example",
      "Connection: close",
      "",
      "",
    );
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("a body up to the limit is read whole; above it the answer is 413, which the sender gets to read", async () => {
    const { ask } = await place({ limits: { bodyBytes: 100_000 } });
    const fits = await ask("/mcp", { method: "POST", body: Buffer.alloc(100_000, "a") });
    expect(fits.json<object>()).toMatchObject({ body: 100_000 });
    const announced = await ask("/mcp", { method: "POST", body: Buffer.alloc(5_000_000, "a") });
    expect(announced.status).toBe(413);
    expect(announced.json().error).toMatchObject({ code: "too_large", hint: expect.stringContaining("bodyBytes") });
    const chunked = await ask("/mcp", {
      method: "POST",
      body: Buffer.alloc(5_000_000, "a"),
      headers: { "transfer-encoding": "chunked" },
    });
    expect(chunked.status).toBe(413);
  });

  it("a body without end is cut off, and nothing of it is kept", async () => {
    const { open } = await place({ limits: { bodyBytes: 1000 } });
    const raw = (await open()).send("POST /mcp HTTP/1.1", ...HEAD, "Transfer-Encoding: chunked", "", "");
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    const pump = (): void => {
      while (!raw.socket.destroyed && raw.socket.write(chunk));
    };
    raw.socket.on("drain", pump);
    pump();
    const answer = await raw.ended();
    expect(answer).toContain("413");
    expect(raw.socket.bytesWritten).toBeLessThan(256 * 1024 * 1024);
  });

  it("a compressed body is refused rather than misread", async () => {
    const { ask } = await place();
    const answer = await ask("/mcp", { method: "POST", body: "x", headers: { "content-encoding": "gzip" } });
    expect(answer.status).toBe(400);
  });

  it("live changes of limits hold for the next request", async () => {
    const { ask, listener } = await place();
    await listener.reconfigure(config({ limits: { bodyBytes: 10 } }));
    expect((await ask("/mcp", { method: "POST", body: "0123456789x" })).status).toBe(413);
  });
});

describe("[gate-08e] requests per minute", () => {
  it("a caller above the rate gets 429 with Retry-After; others do not notice", async () => {
    const clock = new FakeClock();
    const tokens = [{ token: "one-token-0123456789" }, { token: "two-token-0123456789" }];
    const { ask } = await place({ auth: { tokens }, limits: { requestsPerMinute: 3 } }, { clock });
    const [one, two] = ["one-token-0123456789", "two-token-0123456789"];
    for (let count = 0; count < 3; count++) expect((await ask("/mcp", { token: one })).status).toBe(200);
    const refused = await ask("/mcp", { token: one });
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe("20");
    expect(refused.json().error.code).toBe("rate_limited");
    expect((await ask("/mcp", { token: two })).status).toBe(200);
    await clock.advance(20_000);
    expect((await ask("/mcp", { token: one })).status).toBe(200);
    expect((await ask("/mcp", { token: one })).status).toBe(429);
  });

  it("guessing tokens is limited per address, and does not lock out those who know theirs", async () => {
    const clock = new FakeClock();
    const tokens = [{ token: "one-token-0123456789" }];
    const { ask } = await place({ auth: { tokens }, limits: { requestsPerMinute: 3 } }, { clock });
    const guesses = [];
    for (let count = 0; count < 5; count++) guesses.push((await ask("/mcp", { token: `guess-${count}` })).status);
    expect(guesses).toEqual([401, 401, 401, 429, 429]);
    expect((await ask("/healthz")).status).toBe(429);
    expect((await ask("/mcp", { token: "one-token-0123456789" })).status).toBe(200);
  });

  it("[sound-04b] behind a proxy of the config each client has its own limit, and forges no other's", async () => {
    const clock = new FakeClock();
    const tokens = [{ token: "one-token-0123456789" }];
    const http = { auth: { tokens }, limits: { requestsPerMinute: 3 }, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] };
    const { ask } = await place(http, { clock });
    const from = async (forwarded: string): Promise<number> =>
      (await ask("/mcp", { headers: { "x-forwarded-for": forwarded } })).status;
    // A stranger says to be many others, and to come through a proxy of ours.
    const tried = [];
    for (let count = 0; count < 5; count++) tried.push(await from(`198.51.100.${count}, 203.0.113.9, 10.1.2.3`));
    expect(tried).toEqual([401, 401, 401, 429, 429]);
    expect(await from("198.51.100.0")).toBe(401);
    const { ask: plain } = await place({ auth: { tokens }, limits: { requestsPerMinute: 3 } }, { clock });
    const direct = [];
    for (let count = 0; count < 5; count++)
      direct.push((await plain("/mcp", { headers: { "x-forwarded-for": `198.51.100.${count}` } })).status);
    expect(direct).toEqual([401, 401, 401, 429, 429]);
  });

  it("[sound-04b] the address of a client is the last that a proxy of the config did not add itself", () => {
    const proxies = addressList(["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
    const address = (remoteAddress: string, forwarded?: string): string | undefined =>
      // Nothing else of a request is read.
      clientAddress({ socket: { remoteAddress }, headers: { "x-forwarded-for": forwarded } } as never, proxies);
    expect(address("203.0.113.9", "198.51.100.1")).toBe("203.0.113.9");
    expect(address("127.0.0.1")).toBe("127.0.0.1");
    expect(address("::ffff:127.0.0.1", "198.51.100.1")).toBe("198.51.100.1");
    expect(address("127.0.0.1", "evil, 198.51.100.1, fd00::7,10.0.0.1")).toBe("198.51.100.1");
    expect(address("127.0.0.1", "198.51.100.1, nonsense")).toBe("127.0.0.1");
    expect(address("127.0.0.1", `198.51.100.1${", 10.0.0.1".repeat(100_000)}`)).toBe("10.0.0.1");
    expect(address("127.0.0.1", "[2001:db8::1]")).toBe("2001:db8::1");
  });

  it("is 60 times the calls per minute unless it is set", async () => {
    const clock = new FakeClock();
    const { ask, listener } = await place({}, { clock, callsPerMinute: 1 });
    for (let count = 0; count < 60; count++) expect((await ask("/mcp")).status).toBe(200);
    expect((await ask("/mcp")).status).toBe(429);
    await listener.reconfigure(config(), 100);
    expect((await ask("/mcp")).status).toBe(200);
  });

  it("[whole-12a] there is none without auth unless one is set", () => {
    expect(requestsPerMinute(config(), undefined)).toBe(Infinity);
    expect(requestsPerMinute(config(), 10)).toBe(600);
    expect(requestsPerMinute(config({ auth: { tokens: [{ token: "one-token-0123456789" }] } }), undefined)).toBe(6000);
    const limit = new RateLimit(new FakeClock(), Infinity);
    for (let count = 0; count < 20_000; count++) expect(limit.take("owner")).toBe(0);
  });

  it("forgets keys that are owed nothing, and keeps a bounded number of the others", async () => {
    const clock = new FakeClock();
    const limit = new RateLimit(clock, 60);
    for (let index = 0; index < 50_000; index++) limit.take(`k${index}`);
    expect(limit.keys).toBeLessThanOrEqual(20_000);
    await clock.advance(60_000);
    for (let index = 0; index < 20_001; index++) limit.take(`m${index}`);
    expect(limit.keys).toBeLessThanOrEqual(20_000);
  });

  it("a clock that is set back shuts nobody out for long", () => {
    let now = 1_000_000_000;
    const limit = new RateLimit({ now: () => now, after: () => () => {} }, 2);
    expect([limit.take("a"), limit.take("a")]).toEqual([0, 0]);
    now -= 500_000_000;
    expect(limit.take("a")).toBeLessThanOrEqual(60_000);
  });

  it("counts an IPv6 network as one address", () => {
    expect(addressKey("2001:db8:1:2:3:4:5:6")).toBe(addressKey("2001:db8:1:2::9"));
    expect(addressKey("2001:db8::1")).toBe(addressKey("2001:db8:0:0:ffff::"));
    expect(addressKey("2001:db8:1:3::9")).not.toBe(addressKey("2001:db8:1:2::9"));
    expect(addressKey("::ffff:10.0.0.1")).toBe("10.0.0.1");
    expect(addressKey("10.0.0.1")).toBe("10.0.0.1");
    expect(addressKey("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
    expect(addressKey("::1")).toBe("0:0:0:0::/64");
    expect(addressKey(undefined)).toBe("unknown");
  });
});

describe("[gate-08e] connections", () => {
  it("above the limit are dropped", async () => {
    const { open } = await place({ limits: { connections: 2 } });
    const ask = ["GET /healthz HTTP/1.1", ...HEAD, "", ""];
    const first = (await open()).send(...ask);
    const second = (await open()).send(...ask);
    await Promise.all([first.until(/ok/), second.until(/ok/)]);
    const third = (await open()).send(...ask);
    expect(await third.ended()).toBe("");
    first.socket.destroy();
    await first.ended();
    // The listener notices a moment later than we do.
    let answer = "";
    while (answer === "") answer = await (await open()).send(...ask.slice(0, 2), "Connection: close", "", "").ended();
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("[gate-08f] slow and half-open connections end", () => {
  it("one that never sends anything", async () => {
    const { open } = await place({ limits: SOON });
    expect(await (await open()).ended()).toMatch(/^$|^HTTP\/1\.1 408 /);
  });

  it("one that sends its headers a byte at a time", async () => {
    const { open } = await place({ limits: SOON });
    const raw = (await open()).send("GET /mcp HTTP/1.1", ...HEAD, "");
    const drip = setInterval(() => raw.socket.write("X"), 20);
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"timeout"/);
    clearInterval(drip);
  });

  it("one that sends its body a byte at a time; the route learns that it will not come", async () => {
    let reason: unknown;
    const route: HttpRoute = {
      path: "/slow",
      access: "read",
      handle: async (exchange) => {
        await exchange.readBody().catch((error: unknown) => {
          reason = error;
          throw error;
        });
      },
    };
    const { open } = await place({ limits: SOON }, { routes: [route] });
    const raw = (await open()).send("POST /slow HTTP/1.1", ...HEAD, "Content-Length: 1000", "", "");
    const drip = setInterval(() => raw.socket.write("x"), 20);
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(drip);
    await expect.poll(() => reason).toMatchObject({ code: "cancelled" });
  });

  it("a client that goes away while it sends is noticed", async () => {
    let reason: unknown;
    const came = Promise.withResolvers<void>();
    const route: HttpRoute = {
      path: "/slow",
      access: "read",
      handle: (exchange) => {
        came.resolve();
        return exchange.readBody().then(
          () => {},
          (error: unknown) => void (reason = error),
        );
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = (await open()).send("POST /slow HTTP/1.1", ...HEAD, "Content-Length: 1000", "", "x");
    await came.promise;
    raw.socket.destroy();
    await expect.poll(() => reason).toMatchObject({ code: "cancelled" });
  });

  it("a client that reads nothing of a long answer", async () => {
    const closed = Promise.withResolvers<void>();
    const route: HttpRoute = {
      path: "/big",
      access: "read",
      handle: ({ response }) => {
        response.once("close", () => closed.resolve());
        response.end(Buffer.alloc(64 * 1024 * 1024));
      },
    };
    const { open } = await place({ limits: SOON }, { routes: [route] });
    const raw = (await open()).send("GET /big HTTP/1.1", ...HEAD, "", "");
    raw.socket.pause();
    await closed.promise;
    raw.socket.resume();
    await raw.ended();
    expect(raw.received.length).toBeLessThan(64 * 1024 * 1024);
  });

  it("but a call that takes long and a stream with nothing to say stay", async () => {
    const route: HttpRoute = {
      path: "/quiet",
      access: "read",
      handle: ({ response, query }) => {
        if (query.has("stream")) response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        setTimeout(() => response.end("data: late\n\n"), 4 * SOON.requestTimeoutMs);
      },
    };
    const { ask } = await place({ limits: SOON }, { routes: [route] });
    const [call, stream] = await Promise.all([ask("/quiet"), ask("/quiet?stream")]);
    expect(call.text).toContain("late");
    expect(stream.text).toContain("late");
  });

  it("a slow answer is not what a slow request is: a reader that takes its time is served", async () => {
    const size = 8 * 1024 * 1024;
    const route: HttpRoute = {
      path: "/big",
      access: "read",
      handle: ({ response }) => void response.end(Buffer.alloc(size)),
    };
    const { url } = await place({ limits: { requestTimeoutMs: 1000 } }, { routes: [route] });
    const received = await new Promise<number>((resolve, reject) => {
      httpRequest(`${url}/big`, { agent: false }, (response) => {
        let count = 0;
        response.on("data", (chunk: Buffer) => {
          count += chunk.length;
          response.pause();
          setTimeout(() => response.resume(), count < size / 2 ? 25 : 0);
        });
        response.on("end", () => resolve(count));
        response.on("error", reject);
      }).end();
    });
    expect(received).toBe(size);
  });
});

describe("[gate-08e] what is no HTTP", () => {
  it.each([
    ["garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["a wrong version", "GET /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n"],
    ["two lengths", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"],
    [
      "a length and chunks",
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a bare line feed in a header", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\nY: b\r\n\r\n"],
    ["a folded header", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n"],
    ["a blank before the colon", "GET /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n"],
  ])("%s is 400 with an error object", async (_title, bytes) => {
    const { open } = await place();
    const raw = await open();
    raw.socket.write(Buffer.from(bytes, "latin1"));
    const answer = await raw.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual({
      error: { code: "invalid_arguments", message: "The request is not valid HTTP." },
    });
  });

  it("what a route throws becomes an error object without a stack, and secrets are masked", async () => {
    const failing = (path: string, error: unknown): HttpRoute => ({
      path,
      access: "read",
      handle: path.endsWith("a")
        ? () => Promise.reject(error)
        : () => {
            throw error;
          },
    });
    const there = await place(
      {},
      { routes: [failing("/a", new Error("secret path /x")), failing("/b", "text"), echo] },
    );
    for (const path of ["/a", "/b"]) {
      const answer = await there.ask(path);
      expect(answer.status).toBe(500);
      expect(answer.json().error.code).toBe("internal");
      expect(answer.text).not.toMatch(/secret path|text"|at .*\.ts/);
    }
    expect(there.warnings.join("\n")).toContain("secret path /x");
    expect((await there.ask("/mcp")).status).toBe(200);
  });

  it("half an answer is cut off, not finished", async () => {
    const route: HttpRoute = {
      path: "/half",
      access: "read",
      handle: async ({ response }) => {
        response.writeHead(200, { "content-length": 100 });
        response.write("half");
        await Promise.resolve();
        throw new Error("broken");
      },
    };
    const { ask } = await place({}, { routes: [route] });
    await expect(ask("/half")).rejects.toMatchObject({ code: "ECONNRESET" });
  });
});
