import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { SseConnection } from "../../../src/doors/http/open-streams.ts";
import { settle } from "../../support/fake-clock.ts";
import { EventReader } from "../mcp/http/bench.ts";

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const undo of cleanUp.splice(0)) undo();
});

async function connect(maxBuffered: number): Promise<[SseConnection, EventReader, ServerResponse]> {
  const opened = Promise.withResolvers<[SseConnection, ServerResponse]>();
  const server = createServer((_incoming, response) => {
    const connection = new SseConnection(response, undefined, maxBuffered);
    connection.open();
    opened.resolve([connection, response]);
  });
  cleanUp.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A listener on a port has an address with one.
  const { port } = server.address() as AddressInfo;
  const reader = await new Promise<EventReader>((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", agent: false }, (incoming) => resolve(new EventReader(incoming)));
    sent.on("error", reject).end();
  });
  const [connection, response] = await opened.promise;
  return [connection, reader, response];
}

const LARGE = "x".repeat(16 * 1024 * 1024);

it("[gate-08f] nothing more is written to a client that leaves too much unread", async () => {
  const [connection, reader] = await connect(1024 * 1024);
  reader.pauseReading();
  expect(connection.send([LARGE])).toBe(true);
  await settle(50);
  expect(connection.isOpen).toBe(true);
  expect(connection.send(["one more"])).toBe(false);
  expect(connection.isOpen).toBe(false);
});

it("[gate-08f] a heartbeat adds nothing to what a client leaves unread", async () => {
  const [connection, reader, response] = await connect(Number.POSITIVE_INFINITY);
  reader.pauseReading();
  connection.send([LARGE]);
  await settle(50);
  const waiting = response.writableLength;
  for (let beat = 0; beat < 3; beat++) connection.beat();
  expect(waiting).toBeGreaterThan(0);
  expect(response.writableLength).toBe(waiting);
  reader.resumeReading();
  while (response.writableLength > 0) await settle(1);
  connection.beat();
  while (reader.comments.length === 0) await settle(1);
});

it("[gate-01a] bytes and text of one message are one event", async () => {
  const [connection, reader] = await connect(1024);
  connection.send(['{"a":', Buffer.from('"ü"'), "}"], "1-1");
  connection.event({ event: "endpoint" }, ["messages"]);
  connection.end();
  const events = await reader.rest();
  expect(events[0]).toMatchObject({ id: "1-1", event: "message", message: { a: "ü" } });
  expect(events[1]).toMatchObject({ event: "endpoint", data: "messages" });
});
