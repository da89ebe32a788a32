import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { McpDoor } from "../../../src/doors/mcp/mcp-door.ts";
import { StdioDoor } from "../../../src/doors/mcp/stdio-door.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { doorOn, OWNER } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A client at the other end of two pipes. */
class Pipe {
  readonly input = new PassThrough();
  readonly received: JsonObject[] = [];
  readonly stdio: StdioDoor;
  readonly ended: Promise<void>;

  constructor(door: McpDoor) {
    const output = new PassThrough();
    let rest = "";
    output.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.received.push(JSON.parse(line) as JsonObject);
    });
    this.stdio = new StdioDoor(door, { caller: OWNER, scope: {} }, { input: this.input, output });
    this.ended = this.stdio.run();
  }

  send(...messages: (JsonObject | JsonObject[] | string)[]): void {
    const lines = messages.map((message) => (typeof message === "string" ? message : JSON.stringify(message)));
    this.input.write(`${lines.join("\n")}\n`);
  }

  answerTo(id: number | null): Promise<JsonObject> {
    return eventually(() => this.received.find((message) => message["id"] === id && !("method" in message)));
  }
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

function registry(): ToolRegistry {
  const tools = new ToolRegistry();
  const parameters = { type: "object" };
  tools.register({
    name: "say",
    description: "",
    parameters,
    execute: async (_id, { text }) => ({ content: [{ type: "text", text: String(text) }] }),
  });
  tools.register({ name: "hang", description: "", parameters, execute: () => new Promise(() => {}) });
  return tools;
}

describe("[gate-01d] the door over stdio", () => {
  it("serves a legacy client, in the order that answers are ready", async () => {
    const { door } = await doorOn({}, { registry: registry() });
    const pipe = new Pipe(door);
    pipe.send(INITIALIZE, { jsonrpc: "2.0", method: "notifications/initialized" });
    expect(await pipe.answerTo(1)).toMatchObject({ result: { protocolVersion: "2025-06-18" } });
    pipe.send({
      jsonrpc: "2.0",
      id: 2,
      method: "tools/call",
      params: { name: "say", arguments: { text: "a\u2028b\nc" } },
    });
    expect(await pipe.answerTo(2)).toMatchObject({ result: { content: [{ type: "text", text: "a\u2028b\nc" }] } });
    pipe.input.end();
    await pipe.ended;
  });

  it("serves a modern client on the same pipe, without any handshake", async () => {
    const { door } = await doorOn({}, { registry: registry() });
    const pipe = new Pipe(door);
    pipe.send({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: META } });
    expect(await pipe.answerTo(1)).toMatchObject({ result: { resultType: "complete" } });
    pipe.send({
      jsonrpc: "2.0",
      id: 2,
      method: "tools/call",
      params: { name: "say", arguments: { text: "x" }, _meta: META },
    });
    expect(await pipe.answerTo(2)).toMatchObject({ result: { resultType: "complete" } });
    pipe.send({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "hang", _meta: META } });
    await eventually(() => door.busy === 1);
    pipe.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 3 } });
    await eventually(() => door.busy === 0);
    expect(pipe.received.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("refuses an envelope that is incomplete or of another version", async () => {
    const { door } = await doorOn({});
    const pipe = new Pipe(door);
    pipe.send({ jsonrpc: "2.0", id: 1, method: "server/discover" });
    expect(await pipe.answerTo(1)).toMatchObject({ error: { code: -32602 } });
    const other = { ...META, "io.modelcontextprotocol/protocolVersion": "2030-01-01" };
    pipe.send({ jsonrpc: "2.0", id: 2, method: "tools/list", params: { _meta: other } });
    expect(await pipe.answerTo(2)).toMatchObject({ error: { code: -32022, data: { requested: "2030-01-01" } } });
  });

  it("answers what is no message with an error, and goes on", async () => {
    const { door } = await doorOn({});
    const pipe = new Pipe(door);
    pipe.send("this is no JSON", "", '{"jsonrpc":"2.0"}', "[]");
    await eventually(() => pipe.received.length === 3);
    const codes = pipe.received.map(({ id, error }) => [id, (error as { code: number }).code]);
    expect(codes).toEqual([
      [null, -32700],
      [null, -32600],
      [null, -32600],
    ]);
    pipe.send(INITIALIZE);
    expect(await pipe.answerTo(1)).toMatchObject({ result: {} });
  });

  it("survives params and ids that are none", async () => {
    const { door } = await doorOn({});
    const pipe = new Pipe(door);
    pipe.send(
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}',
      '{"jsonrpc":"2.0","id":5,"method":"server/discover","params":null}',
      '{"jsonrpc":"2.0","id":{},"method":"ping"}',
      '{"jsonrpc":"2.0","id":null,"method":"ping"}',
      { jsonrpc: "2.0", id: 6, method: "ping" },
    );
    expect(await pipe.answerTo(6)).toMatchObject({ result: {} });
    const codes = pipe.received.map(({ id, error }) => [id, (error as { code: number } | undefined)?.code]);
    expect(codes.filter(([id]) => id !== 6)).toEqual([
      [null, -32600],
      [5, -32600],
      [null, -32600],
      [null, -32600],
    ]);
  });

  it("takes batches from the version that has them, and from no other", async () => {
    const { door } = await doorOn({});
    const batch = [
      { jsonrpc: "2.0", id: 7, method: "ping" },
      { jsonrpc: "2.0", method: "notifications/initialized" },
    ];
    const newer = new Pipe(door);
    newer.send(INITIALIZE);
    await newer.answerTo(1);
    newer.send(batch);
    expect(await newer.answerTo(null)).toMatchObject({ error: { code: -32600 } });
    const old = new Pipe(door);
    old.send({ ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion: "2025-03-26" } });
    await old.answerTo(1);
    old.send(batch);
    expect(await eventually(() => old.received[1])).toEqual([{ jsonrpc: "2.0", id: 7, result: {} }]);
  });

  it("ends when the client closes its end, and cancels what is under way", async () => {
    const { door, hub } = await doorOn({}, { registry: registry() });
    const outcomes: string[] = [];
    hub.on("call", ({ outcome }) => outcomes.push(outcome));
    const pipe = new Pipe(door);
    pipe.send(INITIALIZE);
    await pipe.answerTo(1);
    pipe.send({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "hang" } });
    await eventually(() => door.busy === 1);
    pipe.input.end();
    await pipe.ended;
    pipe.stdio.close();
    await eventually(() => outcomes.length > 0);
    expect(outcomes).toEqual(["cancelled"]);
  });
});
