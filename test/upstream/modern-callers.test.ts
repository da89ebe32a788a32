/** What a server of the modern era learns of the client behind each request. */
import { describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClientSide } from "../../src/model/source.ts";
import { ALL_CAPABILITIES } from "../../src/upstream/server-requests.ts";
import { bench, clientOf, contextOf } from "../support/connection-bench.ts";
import { FakeWire, type Handlers, legacyHandlers, modernHandlers } from "../support/fake-wire.ts";

const use = { kind: "tool", name: "work", arguments: { n: 1 } } as const;
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const LEVEL = "io.modelcontextprotocol/logLevel";

async function connected(era: "legacy" | "modern", handlers: Handlers = {}) {
  const server = { capabilities: { tools: { listChanged: true } }, handlers };
  const wire = new FakeWire("stdio", era === "modern" ? modernHandlers(server) : legacyHandlers(server));
  const made = bench({ command: "x" }, { offers: ALL_CAPABILITIES, logLevel: "info", openWire: () => wire });
  await made.connection.connect();
  return { ...made, wire };
}

const done = (): JsonObject => ({ resultType: "complete", content: [] });

function metaOf(wire: FakeWire, method: string): JsonObject {
  const meta = wire.params(method)["_meta"];
  return isJsonObject(meta) ? meta : {};
}

describe("[shape-02c] other parameters of a request", () => {
  it.each(["legacy", "modern"] as const)(
    "go on, but for those that a %s server may take for decided ones",
    async (era) => {
      const { connection, wire } = await connected(era, { "tools/call": done });
      const extra = {
        "x-own": 1,
        Arguments: { n: 2, force: true },
        NAME: "other",
        argu_ments: {},
        _Meta: {},
        Task: {},
      };
      await connection.run(use, contextOf({ extra: { ...extra, name: "third", arguments: { n: 3 } } }));
      const { _meta: _, ...params } = wire.params("tools/call");
      expect(params).toEqual({ name: "work", arguments: { n: 1 }, "x-own": 1 });
    },
  );
});

describe("capabilities", () => {
  it("[gate-02a] in each call are those of the caller's client", async () => {
    const { connection, wire } = await connected("modern", { "tools/call": done });
    const asker: ClientSide = {
      key: "a",
      capabilities: { roots: { listChanged: true, "x-deep": 1 }, elicitation: { url: {} } },
    };
    await connection.run(use, contextOf({ client: asker }));
    expect(metaOf(wire, "tools/call")[CAPABILITIES]).toEqual({ roots: { "x-deep": 1 }, elicitation: { url: {} } });
    await connection.run(use, contextOf({ client: clientOf("b") }));
    expect(metaOf(wire, "tools/call")[CAPABILITIES]).toEqual({});
  });

  it("[gate-02a] in the hub's own requests are what the hub offers", async () => {
    const { wire } = await connected("modern");
    const offered = { ...ALL_CAPABILITIES, roots: {} };
    for (const method of ["server/discover", "tools/list", "subscriptions/listen"]) {
      expect(metaOf(wire, method)[CAPABILITIES]).toEqual(offered);
    }
  });

  it("[gate-02a] told to a legacy server are what the hub offers", async () => {
    const { wire } = await connected("legacy");
    expect(wire.params("initialize")["capabilities"]).toEqual(ALL_CAPABILITIES);
  });
});

describe("the log level", () => {
  it("[gate-02c] of a call is the caller's, else the hub's, and never one that came in its `_meta`", async () => {
    const { connection, wire } = await connected("modern", { "tools/call": done });
    await connection.run(use, contextOf({ logLevel: "debug", meta: { [LEVEL]: "emergency", trace: "t" } }));
    expect(metaOf(wire, "tools/call")).toMatchObject({ [LEVEL]: "debug", trace: "t" });
    await connection.run(use, contextOf({ meta: { [LEVEL]: "emergency" } }));
    expect(metaOf(wire, "tools/call")).toMatchObject({ [LEVEL]: "info" });
    expect(metaOf(wire, "tools/list")).toMatchObject({ [LEVEL]: "info" });
  });

  it("[gate-02c] can be changed while the server is connected, and holds after a reconnect", async () => {
    const { connection, wire } = await connected("modern", { "tools/call": done });
    await connection.setLogLevel("error");
    await connection.run(use, contextOf());
    expect(metaOf(wire, "tools/call")[LEVEL]).toBe("error");
    await connection.disconnect();
    wire.closed = false;
    await connection.connect();
    expect(metaOf(wire, "server/discover")[LEVEL]).toBe("error");
  });

  it("[gate-02c] is set at a legacy server that has logs, now and after a reconnect", async () => {
    const levels: unknown[] = [];
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({
        capabilities: { logging: {} },
        handlers: { "logging/setLevel": ({ level }) => (levels.push(level), {}) },
      }),
    );
    const { connection } = bench({ command: "x" }, { openWire: () => wire });
    await connection.connect();
    await connection.setLogLevel("warning");
    await connection.disconnect();
    wire.closed = false;
    await connection.connect();
    expect(levels).toEqual(["warning", "warning"]);
  });

  it("[gate-02c] that a server refuses is a warning, and one without logs is not asked", async () => {
    const refusing = new FakeWire("stdio", legacyHandlers({ capabilities: { logging: {} } }));
    const one = bench({ command: "x" }, { openWire: () => refusing });
    await one.connection.connect();
    await one.connection.setLogLevel("debug");
    expect(one.warnings).toEqual([expect.stringContaining("logging/setLevel")]);
    const without = new FakeWire("stdio", legacyHandlers({ capabilities: {} }));
    const two = bench({ command: "x" }, { openWire: () => without });
    await two.connection.connect();
    await two.connection.setLogLevel("debug");
    expect(without.methods()).not.toContain("logging/setLevel");
  });
});

describe("input that a modern server asks for", () => {
  const asked = {
    resultType: "input_required",
    inputRequests: { who: { method: "elicitation/create", params: { message: "Who?" } } },
    requestState: { step: 1 },
    "x-extra": true,
  };

  it("[gate-02a] goes back to a caller that takes it, as it came, and nobody is asked", async () => {
    const { connection } = await connected("modern", { "tools/call": () => asked });
    const client = clientOf("a", { onElicit: () => Promise.reject(new Error("must not be asked")) });
    expect(await connection.run(use, contextOf({ client, input: {} }))).toEqual(asked);
  });

  it("[gate-02a] is sent along on the retry, exactly what there is of it", async () => {
    const { connection, wire } = await connected("modern", { "tools/call": done });
    await connection.run(use, contextOf({ input: {} }));
    expect(Object.keys(wire.params("tools/call")).toSorted()).toEqual(["_meta", "arguments", "name"]);
    await connection.run(use, contextOf({ input: { responses: { who: { action: "accept" } }, state: { step: 1 } } }));
    expect(wire.params("tools/call")).toMatchObject({
      inputResponses: { who: { action: "accept" } },
      requestState: { step: 1 },
    });
    await connection.run(use, contextOf({ input: { state: null } }));
    expect(wire.params("tools/call")).toMatchObject({ requestState: null });
    expect(wire.params("tools/call")).not.toHaveProperty("inputResponses");
  });

  it("[gate-02a] is left out for a legacy server", async () => {
    const { connection, wire } = await connected("legacy", { "tools/call": () => ({ content: [] }) });
    await connection.run(use, contextOf({ input: { responses: {}, state: "s" } }));
    expect(Object.keys(wire.params("tools/call")).toSorted()).toEqual(["_meta", "arguments", "name"]);
  });
});
