import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { SseWire } from "../../../src/upstream/http/sse-wire.ts";
import { type Answer, ask, event, type Heard, type HttpBench, listenTo, result, serve, stream } from "./http-bench.ts";

const never = new AbortController().signal;

interface Bench extends HttpBench {
  readonly wire: SseWire;
  readonly heard: Heard;
}

async function bench(answer: Answer): Promise<Bench> {
  const http = await serve(answer);
  const wire = new SseWire({ url: `${http.url}/sse`, headers: { "X-API-Key": "k" } });
  return { ...http, wire, heard: listenTo(wire) };
}

/** A server of 2024-11-05 that echoes on its stream. */
function oldServer(endpoint = "/messages?session=1"): { answer: Answer; streams: ServerResponse[] } {
  const streams: ServerResponse[] = [];
  const answer: Answer = (seen, response) => {
    if (seen.method === "GET") {
      streams.push(stream(response));
      response.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    response.writeHead(202).end("Accepted");
    streams.at(-1)?.write(event(result(seen.body["id"])));
  };
  return { answer, streams };
}

describe("SseWire", () => {
  it("[spine-07a] posts to the endpoint it was told and hears the answers on the stream", async () => {
    const { wire, heard, seen } = await bench(oldServer().answer);
    await wire.open(never);
    wire.agreed({ era: "legacy", version: "2024-11-05" });
    await wire.send(ask(1, "ping"));
    await expect.poll(() => heard.messages).toEqual([{ message: result(1) }]);
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /sse", "POST /messages?session=1"]);
    expect(seen.map(({ headers }) => headers["x-api-key"])).toEqual(["k", "k"]);
    expect(seen[1]?.headers["mcp-protocol-version"]).toBe("2024-11-05");
  });

  it.each(["https://evil.example/messages", "http://[bad"])(
    "refuses the endpoint %s, where our headers must not go",
    async (endpoint) => {
      const { wire, seen } = await bench(oldServer(endpoint).answer);
      await expect(wire.open(never)).rejects.toMatchObject({
        code: "server_unavailable",
        message: expect.stringContaining("another origin"),
      });
      expect(seen).toHaveLength(1);
    },
  );

  it("refuses an endpoint that has the stream's origin without being HTTP", async () => {
    const { wire, seen } = await bench((one, response) => {
      stream(response).write(`event: endpoint\ndata: blob:http://${one.headers.host}/messages\n\n`);
    });
    await expect(wire.open(never)).rejects.toThrow("another origin");
    expect(seen).toHaveLength(1);
  });

  it("is lost, once, when the stream ends", async () => {
    const { answer, streams } = oldServer();
    const { wire, heard } = await bench(answer);
    await wire.open(never);
    streams[0]?.end();
    await expect.poll(() => heard.lost.length).toBe(1);
    expect(heard.lost[0]).toMatchObject({ code: "server_unavailable" });
    await expect(wire.send(ask(1))).rejects.toMatchObject({ details: { sent: false } });
  });

  it("is not lost by close, which ends the stream", async () => {
    const { answer, streams } = oldServer();
    const { wire, heard } = await bench(answer);
    await wire.open(never);
    const closed = new Promise((resolve) => streams[0]?.on("close", resolve));
    await wire.close();
    await closed;
    expect(heard.lost).toEqual([]);
  });

  it("gives up opening when told, and when the stream ends before the endpoint", async () => {
    const silent = await bench((_seen, response) => void stream(response));
    await expect(silent.wire.open(AbortSignal.timeout(50))).rejects.toMatchObject({ code: "cancelled" });
    const short = await bench((_seen, response) => stream(response).end());
    await expect(short.wire.open(never)).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("[spine-08b] says what a refusal means, on the stream and on a message", async () => {
    const closed = await bench((_seen, response) => response.writeHead(401).end());
    await expect(closed.wire.open(never)).rejects.toMatchObject({ code: "unauthorized", details: { status: 401 } });
    const page = await bench((_seen, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>"));
    await expect(page.wire.open(never)).rejects.toThrow("is not an MCP server: it answered with text/html");
    const { answer } = oldServer();
    const deaf = await bench((seen, response) =>
      seen.method === "GET" ? answer(seen, response) : response.writeHead(500).end(),
    );
    await deaf.wire.open(never);
    await expect(deaf.wire.send(ask(1))).rejects.toMatchObject({ details: { status: 500 } });
  });
});
