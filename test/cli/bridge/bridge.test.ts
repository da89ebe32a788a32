import { once } from "node:events";
import { Duplex, PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { Bridge } from "../../../src/cli/bridge/bridge.ts";

type Message = Record<string, unknown>;

/** The hub's end of a connection: what it got, and a way to answer. */
class HubEnd {
  readonly lines: string[] = [];
  readonly #toBridge = new PassThrough();
  readonly #fromBridge = new PassThrough();
  readonly socket: Duplex;
  #rest = "";

  constructor(answer: (message: Message, hub: HubEnd) => void = () => {}) {
    this.socket = Duplex.from({ readable: this.#toBridge, writable: this.#fromBridge });
    this.#fromBridge.on("data", (chunk: Buffer) => {
      const lines = (this.#rest + chunk.toString()).split("\n");
      this.#rest = lines.pop() ?? "";
      this.lines.push(...lines);
      for (const line of lines) if (line.startsWith("{")) answer(JSON.parse(line) as Message, this);
    });
    // What is in progress is answered first.
    this.#fromBridge.once("finish", () => setTimeout(() => this.#toBridge.end(), 60));
  }

  get received(): Message[] {
    return this.lines.map((line) => JSON.parse(line) as Message);
  }

  async got(count: number): Promise<void> {
    while (this.lines.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  say(message: Message): void {
    this.#toBridge.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Without the beginning that the hub's own messages have. */
  sayRaw(text: string): void {
    this.#toBridge.write(text);
  }

  die(): void {
    this.socket.destroy();
  }
}

function scene(...hubs: (HubEnd | Error)[]) {
  const input = new PassThrough();
  const output = new PassThrough();
  const said: string[] = [];
  const got: Message[] = [];
  let rest = "";
  output.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) got.push(JSON.parse(line) as Message);
  });
  const connect = async (): Promise<Duplex> => {
    const next = hubs.length > 1 ? hubs.shift() : hubs[0];
    if (!(next instanceof HubEnd)) throw next ?? new Error("no hub");
    return next.socket;
  };
  const bridge = new Bridge({ input, output, connect, tell: (text) => said.push(text), reconnectMs: 300 });
  const exit = bridge.run();
  return {
    ...{ input, got, said, exit },
    send: (message: Message) => input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    until: async (isThere: () => boolean) => {
      while (!isThere()) await once(output, "data");
    },
  };
}

const initialize = { id: 0, method: "initialize", params: { protocolVersion: "2025-06-18" } };
const initialized = { method: "notifications/initialized" };
const echo = ({ id, method }: Message, hub: HubEnd): void => {
  if (id !== undefined && method !== undefined) hub.say({ id, result: { of: method } });
};

describe("[counter-02a] the bridge of a stdio client", () => {
  it("carries messages both ways as they are, whatever their size and however they are cut", async () => {
    const hub = new HubEnd((message, end) => {
      const text = JSON.stringify({ jsonrpc: "2.0", id: message["id"], result: message["params"] });
      for (let at = 0; at < text.length; at += 50_000) end.sayRaw(text.slice(at, at + 50_000));
      end.sayRaw("\n");
    });
    const { send, got, until, input, exit } = scene(hub);
    const params = { text: "ä€\u2028".repeat(60_000), deep: [{ n: 1.5e-7 }] };
    send({ id: "a", method: "tools/call", params });
    await until(() => got.length === 1);
    expect(got[0]).toEqual({ jsonrpc: "2.0", id: "a", result: params });
    input.end();
    expect(await exit).toBe(0);
  });

  it("passes on what is not JSON: the hub answers it", async () => {
    const hub = new HubEnd();
    const { input } = scene(hub);
    const lines = ["not json", '[1,{"jsonrpc":"2.0","id":1,"method":"ping"}]', "null", '"text"'];
    input.write(lines.map((line) => `${line}\n`).join(""));
    await hub.got(4);
    expect(hub.lines).toEqual(lines);
  });

  it("[counter-02b] opens the session again at the next hub, and says that lists may be others", async () => {
    const [first, second] = [new HubEnd(echo), new HubEnd(echo)];
    const { send, got, until } = scene(first, second);
    send(initialize);
    send(initialized);
    send({ id: 1, method: "logging/setLevel", params: { level: "debug" } });
    send({ id: 2, method: "resources/subscribe", params: { uri: "a:1" } });
    send({ id: 3, method: "resources/subscribe", params: { uri: "a:2" } });
    send({ id: 4, method: "resources/unsubscribe", params: { uri: "a:1" } });
    await until(() => got.length === 5);
    first.die();
    await until(() => got.length === 8);
    expect(got.slice(5).map(({ method }) => method)).toEqual([
      "notifications/tools/list_changed",
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed",
    ]);
    send({ id: 5, method: "tools/list" });
    await until(() => got.length === 9);
    expect(got[8]).toMatchObject({ id: 5, result: { of: "tools/list" } });
    expect(second.received.map(({ method, params }) => [method, params])).toEqual([
      ["initialize", initialize.params],
      ["notifications/initialized", undefined],
      ["logging/setLevel", { level: "debug" }],
      ["resources/subscribe", { uri: "a:2" }],
      ["tools/list", undefined],
    ]);
  });

  it("[counter-02c] a call in progress ends with an error that says whether it may have run", async () => {
    const [first, second] = [new HubEnd(), new HubEnd(echo)];
    const { send, got, until } = scene(first, second);
    send({ id: "c", method: "tools/call", params: { name: "x" } });
    send({ id: "r", method: "resources/read", params: { uri: "x" } });
    send({ id: "l", method: "tools/list" });
    await first.got(3);
    first.die();
    await until(() => got.length === 3);
    expect(got.find(({ id }) => id === "c")).toMatchObject({
      error: { code: -32013, data: { code: "server_unavailable", details: { mayHaveRun: true } } },
    });
    expect(got.find(({ id }) => id === "r")).toMatchObject({ error: { data: { details: { mayHaveRun: false } } } });
    // A list changes nothing, so the next hub answers it.
    expect(got.find(({ id }) => id === "l")).toMatchObject({ result: { of: "tools/list" } });
  });

  it("keeps what the client says while there is no hub", async () => {
    const first = new HubEnd(echo);
    const second = new HubEnd(echo);
    const { send, got, until } = scene(first, new Error("not yet"), new Error("not yet"), second);
    first.die();
    await new Promise((resolve) => setTimeout(resolve, 20));
    send({ id: 1, method: "tools/call", params: { name: "late" } });
    await until(() => got.length === 1);
    expect(got).toEqual([{ jsonrpc: "2.0", id: 1, result: { of: "tools/call" } }]);
    expect(second.received).toHaveLength(1);
  });

  it("an answer to a question of a hub that has ended reaches no other hub", async () => {
    const [first, second] = [new HubEnd(), new HubEnd()];
    const { send, got, until } = scene(first, second);
    first.say({ id: 1, method: "elicitation/create", params: {} });
    await until(() => got.length === 1);
    first.die();
    await new Promise((resolve) => setTimeout(resolve, 20));
    second.say({ id: 1, method: "elicitation/create", params: {} });
    await until(() => got.length === 2);
    send({ id: 1, result: { action: "decline" } });
    send({ id: 1, result: { action: "accept" } });
    await second.got(1);
    expect(second.received).toEqual([{ jsonrpc: "2.0", id: 1, result: { action: "accept" } }]);
  });

  it("gives up when no hub comes back, and says so", async () => {
    const first = new HubEnd();
    const { send, got, said, exit } = scene(first, new Error("nothing listens"));
    first.die();
    await new Promise((resolve) => setTimeout(resolve, 20));
    send({ id: 7, method: "tools/call", params: { name: "x" } });
    expect(await exit).toBe(1);
    expect(said.join(" ")).toContain("nothing listens");
    expect(got).toMatchObject([{ id: 7, error: { data: { details: { mayHaveRun: false } } } }]);
  });

  it("waits for the answers when the client closes its end", async () => {
    const hub = new HubEnd(({ id }, end) => void setTimeout(() => end.say({ id, result: {} }), 30));
    const { send, input, got, exit } = scene(hub);
    send({ id: 1, method: "tools/call", params: { name: "x" } });
    input.end();
    expect(await exit).toBe(0);
    expect(got).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });
});
