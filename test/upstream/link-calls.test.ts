import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Progress } from "../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import type { Use } from "../../src/model/source.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { bench, contextOf, sessionOf } from "../support/connection-bench.ts";
import { settle } from "../support/fake-clock.ts";
import { FakeWire, type Handlers, legacyHandlers, modernHandlers, RpcFailure } from "../support/fake-wire.ts";

const HTTP: ServerEntryInput = { url: "https://example.com/mcp", transport: "http", toolTimeout: 1000 };
const tool = (name: string, more: JsonObject = {}): JsonObject => ({ name, inputSchema: { type: "object" }, ...more });
const call = (name = "echo", args: JsonObject = {}): Use => ({ kind: "tool", name, arguments: args });

async function connected(makeWire: () => FakeWire, entry = HTTP, more: Partial<ConnectionDeps> = {}) {
  const wires: FakeWire[] = [];
  const made = bench(entry, {
    openWire: () => {
      const wire = makeWire();
      wires.push(wire);
      return wire;
    },
    ...more,
  });
  await made.connection.connect();
  const [wire] = wires;
  if (wire === undefined) throw new Error("no wire");
  return { ...made, wires, wire };
}

const legacy =
  (handlers: Handlers, tools = [tool("echo")], capabilities?: JsonObject) =>
  () =>
    new FakeWire("http", legacyHandlers({ tools, handlers, ...(capabilities && { capabilities }) }));
const modern =
  (handlers: Handlers, tools = [tool("echo")], capabilities?: JsonObject) =>
  () =>
    new FakeWire("http", modernHandlers({ tools, handlers, ...(capabilities && { capabilities }) }));

describe("uses", () => {
  it("[spine-13c] become the requests of the protocol, with the caller's _meta", async () => {
    const handlers: Handlers = {
      "tools/call": () => ({ content: [], structuredContent: { n: 1 }, isError: true }),
      "resources/read": () => ({ contents: [] }),
      "prompts/get": () => ({ messages: [] }),
      "completion/complete": () => ({ completion: { values: ["Paris"], hasMore: false } }),
    };
    const { connection, wire } = await connected(legacy(handlers));
    const context = contextOf({ meta: { traceparent: "00-abc" } });
    expect(await connection.run(call("echo", { text: "hi" }), context)).toEqual({
      content: [],
      structuredContent: { n: 1 },
      isError: true,
    });
    expect(wire.params("tools/call")).toMatchObject({
      name: "echo",
      arguments: { text: "hi" },
      _meta: { traceparent: "00-abc" },
    });
    await connection.run({ kind: "resource", uri: "file:///a" }, context);
    expect(wire.params("resources/read")).toEqual({ uri: "file:///a", _meta: { traceparent: "00-abc" } });
    await connection.run({ kind: "prompt", name: "p", arguments: { city: "x" } }, contextOf());
    expect(wire.params("prompts/get")).toEqual({ name: "p", arguments: { city: "x" } });
    const completion = {
      kind: "completion",
      ref: { type: "ref/prompt", name: "p" },
      argument: { name: "city", value: "P" },
    } as const;
    expect(await connection.run(completion, contextOf())).toEqual({
      completion: { values: ["Paris"], hasMore: false },
    });
  });

  it("[spine-11a] time out after toolTimeout, ten times that at most", async () => {
    const { connection, wire, clock } = await connected(legacy({ "tools/call": () => undefined }));
    const seen: Progress[] = [];
    let failure: unknown;
    const done = connection
      .run(call(), contextOf({ onProgress: (progress) => seen.push(progress) }))
      .catch((e) => (failure = e));
    await settle();
    const id = wire.params("tools/call")["_meta"] as JsonObject;
    for (let step = 0; step < 19; step++) {
      await clock.advance(500);
      wire.notify("notifications/progress", { progressToken: id["progressToken"], progress: step });
    }
    expect(failure).toBeUndefined();
    await clock.advance(500);
    await done;
    expect(failure).toMatchObject({ code: "timeout", details: { afterMs: 10_000 } });
    expect(seen).toHaveLength(19);
  });

  it("[whole-35a] by default a silent call may take five minutes, as in clients, and progress restarts them", async () => {
    const { toolTimeout: _none, ...entry } = HTTP;
    const { connection, wire, clock } = await connected(legacy({ "tools/call": () => undefined }), entry);
    let failure: unknown;
    const done = connection.run(call(), contextOf()).catch((e) => (failure = e));
    await settle();
    const { progressToken } = wire.params("tools/call")["_meta"] as JsonObject;
    await clock.advance(299_000);
    wire.notify("notifications/progress", { progressToken, progress: 1 });
    await clock.advance(299_000);
    expect(failure).toBeUndefined();
    await clock.advance(1000);
    await done;
    expect(failure).toMatchObject({ code: "timeout", details: { afterMs: 599_000 } });
  });

  it("[spine-11a] ask for progress of a tool also when nobody watches it", async () => {
    const { connection, wire } = await connected(legacy({ "tools/call": () => ({ content: [] }) }));
    await connection.run(call(), contextOf());
    expect(wire.params("tools/call")["_meta"]).toHaveProperty("progressToken");
  });

  it("pass a server's own error on as it came", async () => {
    const rpc = new RpcFailure(-32042, "URL elicitation required", { elicitations: [{ url: "https://x" }] });
    const { connection } = await connected(legacy({ "tools/call": () => Promise.reject(rpc) }));
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({
      code: "tool_error",
      message: "URL elicitation required",
      details: { rpc: { code: -32042, data: { elicitations: [{ url: "https://x" }] } } },
    });
  });
});

describe("a lost session", () => {
  const gone = (more: JsonObject): ToolcribError =>
    new ToolcribError("server_unavailable", "no such session", { details: { sessionLost: true, ...more } });

  /** The first session is forgotten at the first call; later ones hold. */
  function forgetful(error: ToolcribError, tools = [tool("echo")]) {
    let calls = 0;
    return legacy({ "tools/call": () => (++calls <= 1 ? Promise.reject(error) : { content: [], calls }) }, tools);
  }

  it("[spine-09b] is made anew and the call is run once more", async () => {
    const { connection, wires, states } = await connected(forgetful(gone({ sent: false, status: 404 })));
    expect(await connection.run(call(), contextOf())).toMatchObject({ calls: 2 });
    expect(wires).toHaveLength(2);
    expect(wires[1]?.methods()).toContain("tools/list");
    expect(states.slice(-2)).toEqual(["connecting", "ready"]);
  });

  it("[spine-09b] does not repeat a call that may have run, unless it is read-only or idempotent", async () => {
    const { connection } = await connected(forgetful(gone({ sent: true })));
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({ code: "server_unavailable" });
    await settle();
    expect(connection.state.kind).toBe("ready");
    for (const annotations of [{ readOnlyHint: true }, { idempotentHint: true }]) {
      const safe = await connected(forgetful(gone({ sent: true }), [tool("echo", { annotations })]));
      expect(await safe.connection.run(call(), contextOf())).toMatchObject({ calls: 2 });
    }
  });

  it("[spine-09b] is made anew once for many calls", async () => {
    let calls = 0;
    const handlers: Handlers = {
      "tools/call": () => (++calls <= 10 ? Promise.reject(gone({ sent: false, status: 404 })) : { content: [] }),
    };
    const { connection, wires } = await connected(legacy(handlers));
    const results = await Promise.all(Array.from({ length: 10 }, () => connection.run(call(), contextOf())));
    expect(results).toHaveLength(10);
    expect(wires).toHaveLength(2);
  });

  it("[spine-09b] gives up after one retry", async () => {
    const { connection } = await connected(
      legacy({ "tools/call": () => Promise.reject(gone({ sent: false, status: 404 })) }),
    );
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("that the stream tells of is made anew without a pause", async () => {
    const { connection, wires, wire } = await connected(legacy({ "tools/call": () => ({ content: [] }) }));
    wire.lose("the server has ended the session", { sessionLost: true, status: 404 });
    await settle();
    expect(connection.state.kind).toBe("ready");
    expect(wires).toHaveLength(2);
  });
});

describe("a server that cannot be reached", () => {
  it("is tried once more, then looked at again with backoff", async () => {
    const refused = new ToolcribError("server_unavailable", "connection refused", {
      details: { sent: false, reason: "ECONNREFUSED" },
    });
    const { connection, wire, wires } = await connected(legacy({ "tools/call": () => ({ content: [] }) }));
    wire.sendError = refused;
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({
      message: expect.stringContaining("connection refused"),
    });
    await settle();
    expect(wires).toHaveLength(2);
    expect(connection.state.kind).toBe("ready");
  });
});

describe("input that a modern server asks for", () => {
  const asking = (inputRequests: JsonObject | undefined, rounds = 1): Handlers => {
    let asked = 0;
    return {
      "tools/call": (params) => {
        if (asked++ < rounds) {
          return {
            resultType: "input_required",
            ...(inputRequests && { inputRequests }),
            requestState: `state-${asked}`,
          };
        }
        return { resultType: "complete", content: [], got: params["inputResponses"], state: params["requestState"] };
      },
    };
  };
  const ask = {
    name: { method: "elicitation/create", params: { mode: "form", message: "Who?" } },
    capital: { method: "sampling/createMessage", params: { messages: [] } },
    roots: { method: "roots/list" },
  };

  it("[spine-12b] comes from the callbacks and goes back with the state", async () => {
    const { connection, wire } = await connected(modern(asking(ask)));
    const session = sessionOf("s", {
      roots: [{ uri: "file:///w" }],
      onElicit: (params, { server }) =>
        Promise.resolve({ action: "accept", content: { message: params["message"], server } }),
      onSample: () => Promise.resolve({ role: "assistant", content: { type: "text", text: "Paris" } }),
    });
    expect(await connection.run(call("echo", { a: 1 }), contextOf({ session }))).toMatchObject({
      got: {
        name: { action: "accept", content: { message: "Who?", server: "fake" } },
        capital: { content: { text: "Paris" } },
        roots: { roots: [{ uri: "file:///w" }] },
      },
      state: "state-1",
    });
    expect(wire.params("tools/call")).toMatchObject({ name: "echo", arguments: { a: 1 } });
  });

  it("[spine-12b] fails clearly when there is nobody to answer", async () => {
    const { connection } = await connected(modern(asking(ask)));
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({
      code: "denied",
      message: expect.stringMatching(/elicitation\/create|sampling\/createMessage/),
      hint: expect.stringMatching(/onElicit|onSample/),
    });
  });

  it("is retried with the state alone if nothing is asked", async () => {
    const { connection, wire } = await connected(modern(asking(undefined)));
    expect(await connection.run(call(), contextOf())).toMatchObject({ state: "state-1" });
    expect(wire.params("tools/call")).not.toHaveProperty("inputResponses");
  });

  it("is not asked for without end", async () => {
    const { connection, wire } = await connected(modern(asking(undefined, 1000)));
    await expect(connection.run(call(), contextOf())).rejects.toMatchObject({ code: "tool_error" });
    expect(wire.methods().filter((method) => method === "tools/call")).toHaveLength(11);
  });
});

describe("parameters as headers", () => {
  const region = (header: string): JsonObject =>
    tool("echo", {
      inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": header } } },
    });

  it("are sent to a modern HTTP server", async () => {
    const { connection, wire } = await connected(modern({ "tools/call": () => ({ content: [] }) }, [region("Region")]));
    await connection.run(call("echo", { region: "Zürich" }), contextOf());
    const sent = wire.sent.find(({ message }) => "method" in message && message.method === "tools/call");
    expect(sent?.options?.headers).toEqual({
      "Mcp-Param-Region": `=?base64?${Buffer.from("Zürich").toString("base64")}?=`,
    });
  });

  it("are looked up again after a mismatch, once", async () => {
    let tools = [region("Old")];
    let calls = 0;
    const handlers: Handlers = {
      "tools/list": () => ({ tools }),
      "tools/call": () => {
        calls++;
        if (calls === 1) throw new RpcFailure(-32020, "Header mismatch");
        return { content: [] };
      },
    };
    const { connection, wire } = await connected(() => new FakeWire("http", modernHandlers({ handlers })));
    tools = [region("New")];
    await connection.run(call("echo", { region: "x" }), contextOf());
    const headers = wire.sent.flatMap(({ message, options }) =>
      "method" in message && message.method === "tools/call" ? [options?.headers] : [],
    );
    expect(headers).toEqual([{ "Mcp-Param-Old": "x" }, { "Mcp-Param-New": "x" }]);
  });
});

describe("subscriptions", () => {
  const uri = "file:///a";
  const subscribe = { kind: "subscribe", uri } as const;
  const unsubscribe = { kind: "unsubscribe", uri } as const;

  it("[spine-13c] reach a legacy server for the first follower and the last, and survive a reconnect", async () => {
    const handlers: Handlers = {
      "resources/subscribe": () => ({}),
      "resources/unsubscribe": () => ({}),
      "resources/list": () => ({ resources: [] }),
    };
    const { connection, wires, wire, clock } = await connected(
      legacy(handlers, [], { resources: { subscribe: true } }),
    );
    const updates: string[] = [];
    connection.on("resource-updated", (event) => updates.push(event.uri));
    const [one, two] = [contextOf({ session: sessionOf("one") }), contextOf({ session: sessionOf("two") })];
    await connection.run(subscribe, one);
    await connection.run(subscribe, two);
    expect(wire.methods().filter((method) => method === "resources/subscribe")).toHaveLength(1);
    wire.notify("notifications/resources/updated", { uri });
    expect(updates).toEqual([uri]);
    wire.lose("cut");
    await clock.advance(1000);
    expect(wires[1]?.params("resources/subscribe")).toEqual({ uri });
    await connection.run(unsubscribe, one);
    expect(wires[1]?.methods()).not.toContain("resources/unsubscribe");
    await connection.run(unsubscribe, two);
    expect(wires[1]?.params("resources/unsubscribe")).toEqual({ uri });
  });

  it("[spine-13c] end with the session that made them", async () => {
    const handlers: Handlers = {
      "resources/subscribe": () => ({}),
      "resources/unsubscribe": () => ({}),
      "resources/list": () => ({ resources: [] }),
    };
    const { connection, wire } = await connected(legacy(handlers, [], { resources: { subscribe: true } }));
    await connection.run(subscribe, contextOf({ session: sessionOf("one") }));
    await connection.run(subscribe, contextOf({ session: sessionOf("two") }));
    connection.endSession("one");
    expect(wire.methods()).not.toContain("resources/unsubscribe");
    connection.endSession("two");
    expect(wire.params("resources/unsubscribe")).toEqual({ uri });
  });

  it("[spine-13c] go into the filter of a modern server's stream", async () => {
    const capabilities = { resources: { subscribe: true, listChanged: true } };
    const { connection, wire } = await connected(
      modern({ "resources/list": () => ({ resources: [] }) }, [], capabilities),
    );
    const filters = (): unknown[] =>
      wire.sent.flatMap(({ message }) =>
        "method" in message && message.method === "subscriptions/listen" ? [message.params?.["notifications"]] : [],
      );
    expect(filters()).toEqual([{ resourcesListChanged: true }]);
    await connection.run(subscribe, contextOf());
    expect(filters()).toHaveLength(2);
    expect(filters()[1]).toEqual({ resourcesListChanged: true, resourceSubscriptions: [uri] });
    const streams = wire.sent.filter(({ message }) => "method" in message && message.method === "subscriptions/listen");
    expect(streams.map(({ options }) => options?.signal?.aborted)).toEqual([true, false]);
    await connection.run(unsubscribe, contextOf());
    expect(filters()[2]).toEqual({ resourcesListChanged: true });
  });

  it("are refused by a modern server that will not tell of that resource", async () => {
    const listen: Handlers = {
      "subscriptions/listen": (_params, { wire }) =>
        wire.notify("notifications/subscriptions/acknowledged", { notifications: {} }),
    };
    const { connection } = await connected(modern(listen, [], { resources: {} }));
    await expect(connection.run(subscribe, contextOf())).rejects.toMatchObject({ code: "not_found" });
  });
});
