import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EventText } from "../../bench/client/answer-text.ts";
import { connect, listTools } from "../../bench/client/connect.ts";
import type { Answer } from "../../bench/client/protocol.ts";
import { StreamableClient } from "../../bench/client/streamable.ts";
import { directHttp, relay } from "../../bench/subjects/floor.ts";
import { whenComplete } from "../../bench/subjects/subject.ts";

describe("the load client", () => {
  const one = { upstream: "stdio", servers: 1, tools: 3 } as const;

  it.each([directHttp, relay])("[gate-12a] reaches $name", async (subject) => {
    const running = await subject.start(one, []);
    try {
      const { client, tools } = await whenComplete(running, one);
      expect(tools).toEqual(["echo", "echo_1", "echo_2"]);
      const answers = await Promise.all(
        ["a", "b", "c"].map((text) => client.request("tools/call", { name: "echo", arguments: { text } })),
      );
      expect(answers.map(({ result }) => result)).toEqual(
        ["a", "b", "c"].map((text) => ({ content: [{ type: "text", text }] })),
      );
      await client.close();
    } finally {
      await running.stop();
    }
  });

  it("[gate-12a] relays to an HTTP server too", async () => {
    const load = { upstream: "http", servers: 1, tools: 2 } as const;
    const upstream = await directHttp.start(load, []);
    const url = upstream.endpoint.url;
    await (await whenComplete(upstream, load)).client.close();
    const running = await relay.start(load, [url]);
    try {
      const { client } = await whenComplete(running, load);
      expect(await listTools(client)).toEqual(["echo", "echo_1"]);
      await client.close();
    } finally {
      await running.stop();
      await upstream.stop();
    }
  });

  it("[gate-12a] says what it saw when a subject does not start", async () => {
    const running = await relay.start({ ...one, upstream: "http" }, ["no address"]);
    await expect(whenComplete(running, one)).rejects.toThrow(/It ended: .*ERR_INVALID_URL/s);
    await running.stop();
  });
});

describe("answers of a Streamable HTTP server", () => {
  let server: Server;
  let url = "";
  let answer: (id: number) => { type: string; body: string };
  beforeAll(async () => {
    server = createServer((incoming, outgoing) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      incoming.on("end", () => {
        const { id }: { id: number } = JSON.parse(text);
        const { type, body } = answer(id);
        outgoing.writeHead(200, { "content-type": type }).end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    // A server that listens on a port has an address with one.
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const ask = async (onStray?: (stray: Answer) => void): Promise<Answer> => {
    const client = await StreamableClient.open({ url, era: "modern", ...(onStray && { onStray }) });
    try {
      return await client.request("tools/call", { name: "echo" });
    } finally {
      await client.close();
    }
  };
  const event = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

  it("[gate-12a] are read as JSON and as an event stream", async () => {
    answer = (id) => ({ type: "application/json", body: JSON.stringify({ id, result: { as: "json" } }) });
    expect((await ask()).result).toEqual({ as: "json" });
    answer = (id) => ({
      type: "text/event-stream",
      body: event({ method: "notifications/progress", params: {} }) + event({ id, result: { as: "events" } }),
    });
    expect((await ask()).result).toEqual({ as: "events" });
  });

  it("[gate-17b] count as doubled if a stream carries two", async () => {
    const strays: Answer[] = [];
    answer = (id) => ({ type: "text/event-stream", body: event({ id, result: {} }).repeat(2) });
    await ask((stray) => strays.push(stray));
    expect(strays).toHaveLength(1);
  });

  it("[gate-17b] are refused if they belong to another request, or if there is none", async () => {
    answer = (id) => ({ type: "application/json", body: JSON.stringify({ id: id + 1, result: {} }) });
    await expect(ask()).rejects.toThrow("an answer for 2 came for 1");
    answer = () => ({ type: "text/event-stream", body: ": nothing\n\n" });
    await expect(ask()).rejects.toThrow("without an answer");
  });

  it("[gate-12a] fail where nothing listens", async () => {
    await expect(connect({ kind: "streamable", url: "http://127.0.0.1:1/mcp" })).rejects.toThrow("ECONNREFUSED");
  });
});

it("[gate-12a] splits events wherever the network has cut them", () => {
  const seen: string[] = [];
  const events = new EventText((data, type) => seen.push(`${type}:${data}`));
  for (const piece of ["event: endpoi", "nt\ndata: /m", "essages\n", "\ndata: {", "}\r\n\r\ndata: last"])
    events.push(piece);
  expect(seen).toEqual(["endpoint:/messages", "message:{}"]);
});
