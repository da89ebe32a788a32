import { once } from "node:events";
import { Agent, createServer, IncomingMessage, request, ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { PendingResponses } from "../../../src/doors/http/http-connections.ts";
import { type HttpResponse, type HttpRoute, onceClosed } from "../../../src/doors/http/http-exchange.ts";
import { eventually } from "../../support/eventually.ts";
import { place } from "./support.ts";

it("knows the answer that a connection waits for, and lets go of what is complete", async () => {
  const answers = new PendingResponses();
  const seen: { socket: Socket; response: ServerResponse }[] = [];
  const server = createServer((incoming, response) => {
    answers.begin(incoming.socket, response);
    seen.push({ socket: incoming.socket, response });
    server.emit("asked");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server on a port has an address with one.
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (const turn of [0, 1, 2]) {
      const asked = once(server, "asked");
      const outgoing = request({ host: "127.0.0.1", port, agent }).end();
      await asked;
      const { socket, response } = seen[turn] ?? expect.fail("no request");
      expect(answers.of(socket)).toBe(response);
      expect(answers.underWay()).toEqual([response]);
      const closed = once(response, "close");
      response.end("done");
      await closed;
      expect(answers.of(socket)).toBeUndefined();
      expect(answers.underWay()).toEqual([]);
      const [incoming] = await once(outgoing, "response");
      await once(incoming.resume(), "end");
    }
    const [first, , last] = seen;
    expect(last?.socket).toBe(first?.socket);
    expect(first?.socket.listenerCount("close")).toBeLessThan(10);
  } finally {
    agent.destroy();
    server.close();
  }
});

it("knows all answers of a client that sends its next request before it has the answer", async () => {
  const answers = new PendingResponses();
  const seen: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    answers.begin(incoming.socket, response);
    if (seen.push(response) === 3) server.emit("asked");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server on a port has an address with one.
  const { port } = server.address() as AddressInfo;
  const asked = once(server, "asked");
  const client = connect(port, "127.0.0.1");
  try {
    client.resume().write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3));
    await asked;
    const [first = expect.fail("no request"), second, third] = seen;
    const { socket } = first.req;
    expect(answers.of(socket)).toBe(third);
    expect(answers.underWay()).toEqual(seen);
    expect(answers.hasBegun(socket)).toBe(false);
    first.flushHeaders();
    expect(answers.hasBegun(socket)).toBe(true);
    const closed = once(first, "close");
    first.end();
    await closed;
    expect(answers.hasBegun(socket)).toBe(false);
    expect(answers.underWay()).toEqual([second, third]);
    const gone = new Promise((resolve) => socket.once("close", resolve));
    client.destroy();
    await gone;
    expect(answers.underWay()).toEqual([]);
  } finally {
    client.destroy();
    server.close();
  }
});

it("[gate-08f] ends the connection of an answer that is cut while it waits for the one before it", async () => {
  const seen: HttpResponse[] = [];
  const route: HttpRoute = { path: "/mcp", access: "read", handle: ({ response }) => void seen.push(response) };
  const { open } = await place({}, { routes: [route] });
  const raw = await open();
  raw.socket.write("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3));
  await eventually(() => seen.length === 3);
  const [first, second, third] = seen;
  // More than a connection takes before it is paused.
  third?.write("x".repeat(256 * 1024));
  second?.destroy();
  first?.writeHead(200, { "Content-Length": 3 }).end("one");
  expect(await raw.ended()).not.toContain("xxx");
  await eventually(() => seen.every(({ closed }) => closed));
});

it("[gate-08f] tells answers that wait for others when their connection is gone, as not every version of Node does", async () => {
  const answers = new PendingResponses();
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server on a port has an address with one.
  const { port } = server.address() as AddressInfo;
  const client = connect(port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  try {
    const told: number[] = [];
    // None has been given its connection.
    const waiting = [1, 2, 3].map((number) => {
      const response = new ServerResponse(new IncomingMessage(socket));
      answers.begin(socket, response);
      onceClosed(response, () => told.push(number));
      return response;
    });
    client.destroy();
    socket.resume();
    await eventually(() => told.length === 3);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(told).toEqual([1, 2, 3]);
    expect(waiting.every(({ destroyed }) => destroyed)).toBe(true);
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
});
