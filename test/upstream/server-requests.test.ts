import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { SessionContext } from "../../src/model/source.ts";
import { bench, contextOf, sessionOf } from "../support/connection-bench.ts";
import { settle } from "../support/fake-clock.ts";
import { FakeWire, legacyHandlers } from "../support/fake-wire.ts";

const use = { kind: "tool", name: "work", arguments: {} } as const;

/** A server whose calls stay open until the test answers them. */
async function connected(hubSession: SessionContext = sessionOf("hub")) {
  const wire = new FakeWire(
    "http",
    legacyHandlers({ capabilities: { logging: {} }, handlers: { "tools/call": () => undefined } }),
  );
  const made = bench({ url: "https://x.example/mcp", transport: "http" }, { hubSession, openWire: () => wire });
  await made.connection.connect();
  let asked = 0;
  return {
    ...made,
    wire,
    /** Begins a call for a session and gives the id that it has on the wire. */
    async begin(session: SessionContext): Promise<number> {
      made.connection.run(use, contextOf({ session })).catch(() => {});
      await settle();
      const call = wire.sent.findLast(({ message }) => "method" in message && message.method === "tools/call")?.message;
      return call !== undefined && "id" in call ? Number(call.id) : -1;
    },
    async ask(method: string, params: JsonObject = {}, related?: number): Promise<JsonObject> {
      const id = `q${++asked}`;
      wire.ask(id, method, params, related);
      await settle();
      const answer = wire.answers().find((message) => "id" in message && message.id === id);
      // What was found has an id and no method, so it is an answer.
      return (answer ?? {}) as unknown as JsonObject;
    },
  };
}

const withRoot = (id: string): SessionContext => sessionOf(id, { roots: [{ uri: `file:///${id}` }] });

describe("roots", () => {
  it("[spine-12a] are those of the hub while no call is in flight", async () => {
    const { ask } = await connected(withRoot("hub"));
    expect(await ask("roots/list")).toMatchObject({ result: { roots: [{ uri: "file:///hub" }] } });
  });

  it("[spine-12d] are those of the one session with a call in flight", async () => {
    const { ask, begin } = await connected(withRoot("hub"));
    await begin(withRoot("a"));
    await begin(withRoot("a"));
    expect(await ask("roots/list")).toMatchObject({ result: { roots: [{ uri: "file:///a" }] } });
  });

  it("[spine-12d] are those of the session on whose stream the request came", async () => {
    const { ask, begin } = await connected();
    const first = await begin(withRoot("a"));
    const second = await begin(withRoot("b"));
    expect(await ask("roots/list", {}, first)).toMatchObject({ result: { roots: [{ uri: "file:///a" }] } });
    expect(await ask("roots/list", {}, second)).toMatchObject({ result: { roots: [{ uri: "file:///b" }] } });
  });

  it("[gate-02a] are those of the newest of a client's calls, even if they come in several sessions", async () => {
    const { ask, begin, connection, wire } = await connected(withRoot("hub"));
    await begin(withRoot("a"));
    const client = { ...withRoot("b").client, key: "a" };
    connection.run(use, contextOf({ session: sessionOf("another"), client })).catch(() => {});
    await settle();
    expect(wire.methods().filter((method) => method === "tools/call")).toHaveLength(2);
    expect(await ask("roots/list")).toMatchObject({ result: { roots: [{ uri: "file:///b" }] } });
  });

  it("[gate-02a] are none for a client that has none", async () => {
    const { ask, begin } = await connected(withRoot("hub"));
    await begin(sessionOf("a"));
    expect(await ask("roots/list")).toMatchObject({ result: { roots: [] } });
  });

  it("[spine-12d] are refused when it is unclear whose are meant, naming the way out", async () => {
    const { ask, begin } = await connected(withRoot("hub"));
    await begin(withRoot("a"));
    await begin(withRoot("b"));
    expect(await ask("roots/list")).toMatchObject({
      error: { code: -32600, message: expect.stringContaining('isolation: "session"') },
    });
  });
});

describe("sampling and elicitation", () => {
  it("[spine-12b] reach the callbacks with params untouched, and their answers go back untouched", async () => {
    const seen: unknown[] = [];
    const session = sessionOf("a", {
      onSample: (params, { server }) => {
        seen.push([server, params]);
        return Promise.resolve({ role: "assistant", content: { type: "text", text: "4" }, "x-extra": 1 });
      },
      onElicit: (params) => Promise.resolve({ action: "accept", content: params["requestedSchema"] }),
    });
    const { ask, begin } = await connected();
    await begin(session);
    const params = {
      messages: [{ role: "user", content: { type: "text", text: "2+2?" } }],
      maxTokens: 5,
      "x-new": true,
    };
    expect(await ask("sampling/createMessage", params)).toMatchObject({ result: { "x-extra": 1 } });
    expect(seen).toEqual([["fake", params]]);
    expect(await ask("elicitation/create", { message: "?", requestedSchema: { type: "object" } })).toMatchObject({
      result: { action: "accept", content: { type: "object" } },
    });
  });

  it.each([
    ["sampling/createMessage", "onSample"],
    ["elicitation/create", "onElicit"],
  ])("[spine-12b] without a callback %s is refused, and the error names %s", async (method, option) => {
    const { ask, begin } = await connected();
    await begin(sessionOf("a"));
    expect(await ask(method)).toMatchObject({ error: { code: -32601, message: expect.stringContaining(option) } });
  });

  it("[spine-09h] are refused above a thousand that wait, also where all have one id", async () => {
    let waiting = 0;
    const session = sessionOf("a", {
      onElicit: () => {
        waiting += 1;
        return new Promise(() => {});
      },
    });
    const { ask, begin, wire } = await connected();
    await begin(session);
    for (let asked = 0; asked < 1100; asked += 1) wire.ask("same", "elicitation/create", { message: "?" });
    expect(await ask("elicitation/create", { message: "?" })).toMatchObject({
      error: { code: -32600, message: "1000 requests of this server wait for an answer already." },
    });
    expect(waiting).toBe(1000);
  });

  it("[spine-12b] of one session never go to the callback of another", async () => {
    const hub = sessionOf("hub", { onSample: () => Promise.resolve({ from: "hub" }) });
    const { ask, begin } = await connected(hub);
    expect(await ask("sampling/createMessage")).toMatchObject({ result: { from: "hub" } });
    await begin(sessionOf("a"));
    expect(await ask("sampling/createMessage")).toMatchObject({ error: { code: -32601 } });
  });

  it.each(["the stream of a call", "no stream"])(
    "that came on %s end with the calls that they can belong to",
    async (how) => {
      const asked: AbortSignal[] = [];
      const onElicit = (_: unknown, { signal }: { signal: AbortSignal }) => {
        asked.push(signal);
        return new Promise<JsonObject>(() => {});
      };
      const { ask, begin, connection, wire } = await connected(sessionOf("hub", { onElicit }));
      const session = sessionOf("a", { onElicit });
      const giveUp = new AbortController();
      const given = connection.run(use, contextOf({ session, signal: giveUp.signal })).catch(() => "given up");
      await settle();
      const related = how === "no stream" ? undefined : await lastCall();
      const other = await begin(session);
      await ask("elicitation/create", {}, related);
      // Of the client's own calls, this one cannot be why the server asked.
      const later = await begin(session);
      giveUp.abort();
      expect(await given).toBe("given up");
      expect(asked.map(({ aborted }) => aborted)).toEqual([related !== undefined]);
      wire.answer(other, { content: [] });
      await settle();
      expect(asked.map(({ aborted }) => aborted)).toEqual([true]);
      expect(wire.answers()).toMatchObject([{ error: { message: expect.stringContaining("has ended") } }]);
      wire.answer(later, { content: [] });
      // What a server asks by itself ends with nobody's call.
      await settle();
      await ask("elicitation/create");
      wire.answer(await begin(session), { content: [] });
      await settle();
      expect(asked.map(({ aborted }) => aborted)).toEqual([true, false]);

      async function lastCall(): Promise<number> {
        const call = wire.sent.findLast(
          ({ message }) => "method" in message && message.method === "tools/call",
        )?.message;
        return call !== undefined && "id" in call ? Number(call.id) : -1;
      }
    },
  );

  it("tell the server when the callback fails", async () => {
    const { ask } = await connected(sessionOf("hub", { onElicit: () => Promise.reject(new Error("window closed")) }));
    expect(await ask("elicitation/create")).toMatchObject({ error: { message: "window closed" } });
  });

  it("by url are refused, because only forms were offered", async () => {
    const { ask } = await connected(sessionOf("hub", { onElicit: () => Promise.resolve({ action: "accept" }) }));
    expect(await ask("elicitation/create", { mode: "url" })).toMatchObject({ error: { code: -32602 } });
  });

  it("[gate-02a] by url are passed on to a client that takes them", async () => {
    const client = {
      key: "a",
      capabilities: { elicitation: { url: {} } },
      elicit: (params: JsonObject) => Promise.resolve({ action: "accept", saw: params["url"] }),
    };
    const { ask } = await connected(sessionOf("hub", { client }));
    expect(await ask("elicitation/create", { mode: "url", url: "https://x.example" })).toMatchObject({
      result: { action: "accept", saw: "https://x.example" },
    });
  });
});

describe("other messages", () => {
  it("with an unknown method are answered with -32601", async () => {
    const { ask } = await connected();
    expect(await ask("tasks/steal")).toMatchObject({ error: { code: -32601 } });
  });

  it("[spine-12c] that are log messages become events, whole", async () => {
    const { connection, wire } = await connected();
    const logs: unknown[] = [];
    connection.on("log", ({ message }) => logs.push(message));
    wire.notify("notifications/message", { level: "warning", logger: "db", data: { slow: true }, "x-id": 9 });
    wire.notify("notifications/message", { data: "no level" });
    expect(logs).toEqual([
      { level: "warning", logger: "db", data: { slow: true }, "x-id": 9 },
      { level: "info", data: "no level" },
    ]);
  });

  it("[spine-12c] are asked for from the level that is wanted", async () => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({ capabilities: { logging: {} }, handlers: { "logging/setLevel": () => ({}) } }),
    );
    await bench({ command: "x" }, { logLevel: "debug", openWire: () => wire }).connection.connect();
    expect(wire.params("logging/setLevel")).toEqual({ level: "debug" });
  });

  it("tell a legacy server that roots changed, if roots were offered", async () => {
    const wire = new FakeWire("stdio", legacyHandlers());
    const offers = { roots: { listChanged: true } };
    const { connection } = bench({ command: "x" }, { offers, openWire: () => wire });
    await connection.connect();
    await connection.rootsChanged();
    expect(wire.methods()).toContain("notifications/roots/list_changed");
  });
});
