import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { replayWithoutUpgrade } from "../../../src/doors/http/http-connections.ts";
import { livePlace } from "./live/live-setup.ts";
import { config, echo, place, type Place, Raw } from "./support.ts";

const TOKEN = "reader-token-0123456789";
const WISH = ["Host: localhost", "Connection: Upgrade", "Upgrade: websocket"];
const SOCKET = ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="];
const H2C = ["Host: localhost", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"];

const taking: HttpRoute = {
  path: "/ws",
  access: "read",
  handle: ({ response }) => void response.end("no socket"),
  upgrade: ({ socket }) => void socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
};

describe("[oper-05a] a request for another protocol behind one that is not answered yet", () => {
  it("waits for its turn, and ends nothing but itself", async () => {
    const finish = Promise.withResolvers<void>();
    const slow: HttpRoute = {
      path: "/slow",
      access: "read",
      handle: async ({ response }) => {
        await finish.promise;
        response.end("slow answer");
      },
    };
    const there = await place({}, { routes: [echo, taking, slow] });
    const quick = (await there.open()).send(
      "GET /healthz HTTP/1.1",
      "Host: localhost",
      "",
      "GET /ws HTTP/1.1",
      ...WISH,
      "",
      "",
    );
    expect(await quick.until(/101/)).toMatch(/^HTTP\/1\.1 200 [\s\S]*"ok"[\s\S]*HTTP\/1\.1 101 /);
    const late = (await there.open()).send(
      "GET /slow HTTP/1.1",
      "Host: localhost",
      "",
      "GET /ws HTTP/1.1",
      ...WISH,
      "",
      "",
    );
    expect((await there.ask("/healthz")).status).toBe(200);
    expect(late.received).toBe("");
    finish.resolve();
    expect(await late.until(/101/)).toMatch(/slow answer[\s\S]*HTTP\/1\.1 101 /);
  });

  it("is refused after the answer before it, if it is refused", async () => {
    const there = await place({ auth: { tokens: [{ token: TOKEN }] } }, { routes: [taking] });
    const raw = (await there.open()).send(
      "GET /healthz HTTP/1.1",
      "Host: localhost",
      "",
      "GET /ws HTTP/1.1",
      ...WISH,
      "",
      "",
    );
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 401 /);
    expect((await there.ask("/healthz")).status).toBe(200);
  });

  it("ends with the connection while it waits", async () => {
    const forever: HttpRoute = {
      path: "/slow",
      access: "read",
      handle: ({ response }) => void response.write("begun"),
    };
    const there = await place({}, { routes: [taking, forever] });
    const raw = (await there.open()).send(
      "GET /slow HTTP/1.1",
      "Host: localhost",
      "",
      "GET /ws HTTP/1.1",
      ...WISH,
      "",
      "",
    );
    await raw.until(/begun/);
    await there.listener.close();
    expect(await raw.ended()).not.toContain("101");
  });
});

describe("[oper-05a] refused takeovers leave no connection behind", () => {
  /** Reads the answer and keeps its own side open. */
  async function stay(port: number, ...lines: string[]): Promise<void> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.write(lines.join("\r\n"));
    await once(socket, "data");
  }

  const health = (there: Place): Promise<number> =>
    there.ask("/healthz").then(
      ({ status }) => status,
      () => 0,
    );

  it("of the listener, whether its client goes or stays", async () => {
    const limits = { connections: 3 };
    const there = await place({ limits, auth: { tokens: [{ token: TOKEN }] } }, { routes: [taking] });
    for (let count = 0; count < 3; count++) {
      const raw = (await there.open()).send("GET /ws HTTP/1.1", ...WISH, "", "");
      await raw.until(/ 401 /);
      raw.socket.destroy();
    }
    for (let count = 0; count < 3; count++) await stay(there.listener.port, "GET /ws HTTP/1.1", ...WISH, "", "");
    await expect.poll(() => health(there)).toBe(200);
  });

  it("of the door that the connection was handed to", async () => {
    const http = config({ limits: { connections: 3 }, auth: { tokens: [{ token: TOKEN }] } });
    const there = await livePlace({ listener: { http } });
    const bad = ["GET /ws?after=x HTTP/1.1", ...WISH, ...SOCKET, `Authorization: Bearer ${TOKEN}`, "", ""];
    for (let count = 0; count < 3; count++) {
      const raw = (await there.open()).send(...bad);
      await raw.until(/ 400 /);
      raw.socket.destroy();
    }
    for (let count = 0; count < 3; count++) await stay(there.listener.port, ...bad);
    await expect.poll(() => health(there)).toBe(200);
  });
});

describe("[oper-05a] a wish that nobody here fulfils", () => {
  const body = JSON.stringify({ jsonrpc: "2.0" });
  const post = ["POST /mcp HTTP/1.1", ...H2C, `Content-Length: ${body.length}`, "", body];

  it("is passed over: such requests are answered as any other", async () => {
    const there = await place({}, { routes: [echo, taking] });
    const raw = (await there.open()).send(...post);
    expect(await raw.until(/"body"/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(raw.received).toContain(JSON.stringify(body));
    raw.send("GET /mcp?n=2 HTTP/1.1", ...H2C, "", "");
    await raw.until(/\["n","2"\]/);
    for (const [line, status] of [
      ["GET /mcp HTTP/1.1", 200],
      ["GET /nowhere HTTP/1.1", 404],
      ["GET /ws/../mcp HTTP/1.1", 400],
    ] as const) {
      const other = (await there.open()).send(line, ...WISH, "", "");
      expect(await other.until(/\r\n\r\n/)).toContain(`HTTP/1.1 ${status} `);
    }
    const chunked = (await there.open()).send("POST /mcp HTTP/1.1", ...H2C, "Transfer-Encoding: chunked", "", "2", "");
    await wait(20);
    chunked.send("hi", "0", "", "");
    expect(await chunked.until(/"body"/)).toContain('"body":"hi"');
  });

  it("is taken back where Node gives us every such request, however it arrives", async () => {
    const seen: string[] = [];
    const listeners: number[][] = [];
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
      request.on("end", () => {
        const { connection = "-", upgrade = "-", "x-kept": kept } = request.headers;
        seen.push(`${connection} ${upgrade} ${String(kept)}`);
        const { socket } = request;
        listeners.push(["close", "timeout", "error", "data", "end"].map((name) => socket.listenerCount(name)));
        response.end(`got ${request.url} ${text};`);
      });
    });
    server.on("upgrade", (request, _, head) => replayWithoutUpgrade(server, request, request.socket, head));
    // As the older ones do.
    Object.assign(server, { shouldUpgradeCallback: () => true });
    server.listen(0, "127.0.0.1");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, "listening");
    // A server on a port has an address with one.
    const raw = await Raw.open((server.address() as AddressInfo).port);
    // Nodes that keep the body of such a request apart ask us before, and are not in need of this.
    const hasBody = Number(process.versions.node.split(".")[0]) < 25;
    for (let turn = 0; turn < 5; turn++) {
      raw.send(`POST /${turn} HTTP/1.1`, ...H2C, "X-Kept: \xe9", `Content-Length: ${hasBody ? 6 : 0}`, "", "");
      if (hasBody) {
        raw.send("ab");
        await wait(1);
        raw.send("cdef");
      }
      await raw.until(new RegExp(`got /${turn} ${hasBody ? "abcdef" : ""};`));
    }
    expect(listeners.at(-1)).toEqual(listeners[1]);
    expect(new Set(seen)).toEqual(new Set([" - \xc3\xa9"]));
  });
});
