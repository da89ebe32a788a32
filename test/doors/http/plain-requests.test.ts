import { once } from "node:events";
import { ServerResponse } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { type HttpResponse, type HttpRoute, onceClosed } from "../../../src/doors/http/http-exchange.ts";
import { eventually } from "../../support/eventually.ts";
import { place, type Raw } from "./support.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const BODY = '{"hello":"world"}';
const HEAD = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json"];
const WHOLE = [...HEAD, `Content-Length: ${BODY.length}`];

/** Answers with what it was given, and keeps whether it was given Node's own response. */
function seeing(isFrequent: boolean): HttpRoute & { readonly byNode: boolean[] } {
  const byNode: boolean[] = [];
  return {
    path: "/mcp",
    access: "read",
    isFrequent,
    byNode,
    async handle(exchange) {
      const { request, response, path, query } = exchange;
      byNode.push(response instanceof ServerResponse);
      const body = (await exchange.readBody()).toString("utf8");
      const text = JSON.stringify({ method: request.method, path, query: [...query], headers: request.headers, body });
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
      response.end(text);
    },
  };
}

/** What comes back, without the time. */
async function answerTo(isFrequent: boolean, pieces: readonly string[]): Promise<{ text: string; byNode: boolean[] }> {
  const route = seeing(isFrequent);
  const { open } = await place({ limits: { headerBytes: 4096, bodyBytes: 2000 } }, { routes: [route] });
  const raw = await open();
  for (const [index, piece] of pieces.entries()) {
    // Each in a packet of its own.
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, 30));
    raw.socket.write(piece, "latin1");
  }
  const text = await raw.ended();
  return { text: text.replaceAll(/^date: .*$/gim, "Date: now"), byNode: route.byNode };
}

const lines = (...all: readonly string[]): string => all.join("\r\n");
const whole = lines(...WHOLE, "", BODY);
/** Ends the connection, so that the answer does. */
const last = lines(...WHOLE, "Connection: close", "", BODY);

describe("[speed-07e] a POST that came whole", () => {
  it.each<[string, boolean | undefined, string[]]>([
    ["a plain one", false, [last]],
    ["one with other headers", false, [lines(...WHOLE, "X-One: a b, c", "Connection: close", "", BODY)]],
    ["one for a part of the door", false, [last.replace("/mcp", "/mcp/role?servers=a")]],
    ["one without a body", false, [lines(...HEAD, "Content-Length: 0", "Connection: close", "", "")]],
    [
      "one whose body is too large",
      false,
      [lines(...HEAD, "Content-Length: 2001", "Connection: close", "", "x".repeat(2001))],
    ],
    ["one that is compressed", false, [lines(...WHOLE, "Content-Encoding: gzip", "Connection: close", "", BODY)]],
    ["a target that is none", false, [last.replace("/mcp", "/mcp/%2e%2e")]],
    ["a Host of another name", false, [last.replace("localhost", "evil.example")]],
    [
      "a page of another origin",
      false,
      [lines(...WHOLE, "Origin: https://evil.example", "Connection: close", "", BODY)],
    ],
    ["two pieces", undefined, [last.slice(0, 60), last.slice(60)]],
    ["a body that comes later", undefined, [last.slice(0, -BODY.length), BODY]],
    ["two requests in one piece", true, [whole + last]],
    [
      "a chunked body",
      true,
      [lines(...HEAD, "Transfer-Encoding: chunked", "Connection: close", "", "2", "{}", "0", "", "")],
    ],
    ["two lengths of a body", true, [lines(...WHOLE, "Transfer-Encoding: chunked", "", "0", "", "")]],
    ["a header twice", true, [lines(...WHOLE, "Content-Length: 3", "Connection: close", "", BODY)]],
    ["Host twice", true, [lines(...WHOLE, "Host: evil.example", "Connection: close", "", BODY)]],
    ["no Host", true, [lines(...WHOLE.filter((line) => !line.startsWith("Host")), "Connection: close", "", BODY)]],
    ["a length that is none", true, [lines(...HEAD, "Content-Length: +17", "Connection: close", "", BODY)]],
    ["a length with a zero before it", true, [lines(...HEAD, "Content-Length: 017", "Connection: close", "", BODY)]],
    [
      "a header that goes on in the next line",
      true,
      [lines(...WHOLE, "X-One: a", " b", "Connection: close", "", BODY)],
    ],
    ["a blank before the colon", true, [lines(...WHOLE, "X-One : a", "Connection: close", "", BODY)]],
    ["a header without a value", true, [lines(...WHOLE, "X-One:", "Connection: close", "", BODY)]],
    ["a value with letters beyond ASCII", true, [lines(...WHOLE, "X-One: \u00e4", "Connection: close", "", BODY)]],
    ["a control character", true, [lines(...WHOLE, "X-One: a\u0001b", "Connection: close", "", BODY)]],
    ["line feeds alone", true, [last.replaceAll("\r\n", "\n")]],
    ["a header that every object has", true, [lines(...WHOLE, "constructor: a", "Connection: close", "", BODY)]],
    ["a header that Node gives as a list", true, [lines(...WHOLE, "Set-Cookie: a=b", "Connection: close", "", BODY)]],
    ["an expectation", true, [lines(...WHOLE, "Expect: 100-continue", "Connection: close", "", BODY)]],
    ["an upgrade", true, [lines(...WHOLE, "Upgrade: websocket", "Connection: close", "", BODY)]],
    ["HTTP/1.0", true, [last.replace("HTTP/1.1", "HTTP/1.0")]],
    ["another method", true, [last.replace("POST", "PUT")]],
    ["a whole address", true, [last.replace("/mcp", "http://localhost/mcp")]],
    ["headers above the limit", true, [lines(...WHOLE, `X-One: ${"x".repeat(5000)}`, "Connection: close", "", BODY)]],
    ["what is not HTTP", true, ["hello\r\n\r\n"]],
  ])("%s is answered as Node's own code answers it", async (_what, isNodes, pieces) => {
    const [plain, byNode] = await Promise.all([answerTo(true, pieces), answerTo(false, pieces)]);
    expect(plain.text).toBe(byNode.text);
    // Otherwise nothing here would have been compared. On a busy machine pieces may come as one.
    if (isNodes !== undefined) expect(plain.byNode.every((own) => own === isNodes)).toBe(true);
  });

  it("goes on with a request that came while the one before was not answered, and in that order", async () => {
    const answers: (() => void)[] = [];
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      async handle(exchange) {
        const body = (await exchange.readBody()).toString("utf8");
        answers.push(() => void exchange.response.writeHead(200, { "Content-Length": body.length }).end(body));
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    await eventually(() => answers.length === 1);
    raw.socket.write(whole.replace("world", "earth"));
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(answers).toHaveLength(1);
    answers[0]?.();
    await eventually(() => answers.length === 2);
    answers[1]?.();
    expect(await raw.until(/earth/)).toMatch(/world[\s\S]*earth/);
    // And from here on as ever.
    raw.socket.write(whole.replace("world", "ocean"));
    await eventually(() => answers.length === 3);
    answers[2]?.();
    await raw.until(/ocean/);
  });

  it("answers many on one connection, with how long it is kept, and puts no listener on it for each", async () => {
    const route = seeing(true);
    const counts = new Set<number>();
    const counting: HttpRoute = {
      ...route,
      handle(exchange) {
        counts.add(exchange.request.socket.listenerCount("close"));
        return route.handle(exchange);
      },
    };
    const { open } = await place({}, { routes: [counting] });
    const raw = await open();
    for (let turn = 1; turn <= 5; turn += 1) {
      raw.socket.write(whole);
      await eventually(() => raw.received.split("HTTP/1.1 200 OK").length === turn + 1);
    }
    expect(raw.received).toContain("Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n");
    expect(route.byNode).toEqual([false, false, false, false, false]);
    // The first request of a connection adds one for good.
    expect(counts.size).toBeLessThanOrEqual(2);
  });

  it("becomes a stream where its answer comes in parts, and its connection takes the next request", async () => {
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      async handle({ response }) {
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.flushHeaders();
        response.write("data: 1\n\n");
        await new Promise((resolve) => setTimeout(resolve, 20));
        response.write("data: 2\n\n");
        response.end();
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    expect(await raw.until(/0\r\n\r\n$/)).toMatch(/Transfer-Encoding: chunked[\s\S]*data: 1\n\n[\s\S]*data: 2\n\n/);
    raw.socket.write(whole);
    await raw.until(/data: 2[\s\S]*HTTP\/1\.1 200[\s\S]*0\r\n\r\n$/);
  });

  it("tells who writes more than the client reads when there is room again", async () => {
    const part = "x".repeat(256 * 1024);
    let drained = 0;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      async handle({ response }) {
        response.writeHead(200, { "Content-Type": "text/plain" });
        for (let turn = 0; turn < 40; turn += 1) {
          if (response.write(part)) continue;
          expect(response.writableNeedDrain).toBe(true);
          await new Promise<void>((resolve) => response.once("drain", resolve));
          expect(response.writableNeedDrain).toBe(false);
          drained += 1;
        }
        response.end("all");
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(last);
    expect(await raw.ended()).toMatch(/all\r\n0\r\n\r\n$/);
    expect(drained).toBeGreaterThan(0);
  });

  it.each<[string, (raw: Raw) => void]>([
    ["closes its connection", (raw) => void raw.socket.destroy()],
    ["ends its side of it", (raw) => void raw.socket.end()],
  ])("a client that %s before the answer is noticed", async (_how, leave) => {
    let closed = false;
    let begun = false;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      handle({ response }) {
        begun = true;
        onceClosed(response, () => (closed = true));
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    await eventually(() => begun);
    expect(closed).toBe(false);
    leave(raw);
    await eventually(() => closed);
  });

  it("is answered with the end of its connection by a hub that stops, and open ones are cut when it closes", async () => {
    const { open, listener } = await place({}, { routes: [seeing(true)] });
    const [asking, silent] = [await open(), await open()];
    asking.socket.write(whole);
    await asking.until(/world/);
    listener.beginStopping();
    asking.socket.write(whole);
    expect(await asking.ended()).toMatch(/world[\s\S]*Connection: close[\s\S]*world/);
    const cut = once(silent.socket, "close");
    await listener.close();
    await cut;
  });

  it("keeps the connection of an answer that said so before the hub began to stop", async () => {
    let first: HttpResponse | undefined;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      handle({ response }) {
        if (first !== undefined) return void response.writeHead(200, { "Content-Length": 6 }).end("second");
        first = response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.flushHeaders();
      },
    };
    const { open, listener } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    expect(await raw.until(/\r\n\r\n$/)).toContain("Connection: keep-alive");
    listener.beginStopping();
    first?.end("data: 1\n\n");
    await raw.until(/0\r\n\r\n$/);
    raw.socket.write(whole);
    expect(await raw.ended()).toMatch(/data: 1[\s\S]*Connection: close[\s\S]*second$/);
  });

  it.each<[string, (over: HttpResponse) => void]>([
    ["writes to it", (over) => void over.write("more")],
    ["opens it", (over) => over.flushHeaders()],
    ["destroys it", (over) => void over.destroy()],
  ])("leaves the next request alone when someone %s after its end", async (_what, disturb) => {
    let over: HttpResponse | undefined;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      handle({ response }) {
        if (over !== undefined) disturb(over);
        over = response;
        response.writeHead(200, { "Content-Length": 2 }).end("ok");
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    await raw.until(/ok$/);
    await eventually(() => over?.closed === true);
    raw.socket.write(last);
    expect((await raw.ended()).match(/HTTP\/1\.1|more|ok/g)).toEqual(["HTTP/1.1", "ok", "HTTP/1.1", "ok"]);
  });

  it("is the last one if its answer said so, also where more has arrived before the connection ends", async () => {
    let requests = 0;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      handle({ request, response }) {
        requests += 1;
        onceClosed(response, () => process.nextTick(() => request.socket.emit("data", Buffer.from(whole))));
        response.writeHead(200, { "Content-Length": 2 }).end("ok");
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(last);
    expect(await raw.ended()).toMatch(/ok$/);
    expect(requests).toBe(1);
  });

  it("is let go of while its connection is idle", async () => {
    let body: WeakRef<Buffer> | undefined;
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      async handle(exchange) {
        const { response } = exchange;
        onceClosed(response, () => void exchange.path);
        body = new WeakRef(await exchange.readBody());
        response.writeHead(200, { "Content-Length": 2 }).end("ok");
      },
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    raw.socket.write(whole);
    await raw.until(/ok$/);
    await eventually(() => {
      collect();
      return body !== undefined && body.deref() === undefined;
    });
    expect(raw.socket.destroyed).toBe(false);
  });

  it("is answered in one write, whatever its characters are", async () => {
    const text = JSON.stringify("ä € 😀");
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      isFrequent: true,
      handle: ({ response }) => void response.writeHead(200, { "Content-Length": Buffer.byteLength(text) }).end(text),
    };
    const { open } = await place({}, { routes: [route] });
    const raw = await open();
    const chunks: Buffer[] = [];
    raw.socket.on("data", (chunk) => chunks.push(chunk));
    raw.socket.write(last);
    await raw.ended();
    expect(chunks).toHaveLength(1);
    expect(chunks[0]?.toString("utf8").endsWith(`\r\n\r\n${text}`)).toBe(true);
  });
});
