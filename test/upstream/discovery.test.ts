import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { bench } from "../support/connection-bench.ts";
import { settle } from "../support/fake-clock.ts";
import { FakeWire, type Handlers, legacyHandlers, modernHandlers, RpcFailure } from "../support/fake-wire.ts";

const ALL = { tools: { listChanged: true }, resources: { listChanged: true }, prompts: { listChanged: true } };
const tool = (name: string, more: JsonObject = {}): JsonObject => ({ name, inputSchema: { type: "object" }, ...more });

async function connected(wire: FakeWire, entry: ServerEntryInput = { command: "x" }) {
  const made = bench(entry, { openWire: () => wire });
  await made.connection.connect();
  return made;
}

/** Ten entries a page, each with its number. */
function paged(key: string, total: number, entry: (n: number) => JsonObject): Handlers[string] {
  return ({ cursor }) => {
    const start = Number(cursor ?? 0);
    const page = Array.from({ length: Math.min(10, total - start) }, (_, n) => entry(start + n));
    return { [key]: page, ...(start + 10 < total && { nextCursor: String(start + 10) }) };
  };
}

describe("reading lists", () => {
  it("[spine-13a] goes through all pages of all four", async () => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({
        capabilities: ALL,
        handlers: {
          "tools/list": paged("tools", 35, (n) => tool(`t${n}`)),
          "resources/list": paged("resources", 21, (n) => ({ uri: `file:///${n}`, name: `r${n}` })),
          "resources/templates/list": paged("resourceTemplates", 11, (n) => ({
            uriTemplate: `f:///{${n}}`,
            name: `m${n}`,
          })),
          "prompts/list": paged("prompts", 10, (n) => ({ name: `p${n}` })),
        },
      }),
    );
    const { connection } = await connected(wire);
    const { tools, resources, templates, prompts } = connection.definitions();
    expect(tools.map(({ name }) => name)).toEqual(Array.from({ length: 35 }, (_, n) => `t${n}`));
    expect([resources.length, templates.length, prompts.length]).toEqual([21, 11, 10]);
  });

  it("[spine-13d] keeps every field, known or not", async () => {
    const odd = tool("odd", {
      title: "Odd",
      icons: [{ src: "data:," }],
      annotations: { readOnlyHint: true, "x-hint": 1 },
      outputSchema: { type: "object" },
      execution: { taskSupport: "optional" },
      _meta: { "vendor/x": [1, 2] },
      "x-unknown": { deep: { er: null } },
    });
    const { connection } = await connected(new FakeWire("stdio", legacyHandlers({ tools: [odd] })));
    expect(connection.definitions().tools).toEqual([odd]);
  });

  it("asks only for what the server declares", async () => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({ capabilities: { prompts: {} }, handlers: { "prompts/list": () => ({ prompts: [] }) } }),
    );
    await connected(wire);
    expect(wire.methods().filter((method) => method.endsWith("/list"))).toEqual(["prompts/list"]);
  });

  it("leaves out what has no name, with a warning, and keeps the rest", async () => {
    const tools = [tool("a"), null, "text", { name: 7 }, { inputSchema: {} }, tool("b")];
    const { connection, warnings } = await connected(
      new FakeWire("stdio", legacyHandlers({ handlers: { "tools/list": () => ({ tools }) } })),
    );
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(warnings).toEqual([expect.stringMatching(/4 entries without a name/)]);
    expect(connection.info().warnings).toEqual(warnings);
  });

  it("survives a list that fails, and does not mind missing templates", async () => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({
        capabilities: ALL,
        tools: [tool("a")],
        handlers: {
          "resources/list": () => ({ resources: [{ uri: "f:///a", name: "a" }] }),
          "prompts/list": () => Promise.reject(new RpcFailure(-32603, "database is down")),
        },
      }),
    );
    const { connection, warnings } = await connected(wire);
    expect(connection.state.kind).toBe("ready");
    expect(connection.definitions()).toMatchObject({ tools: [{ name: "a" }], resources: [{ name: "a" }], prompts: [] });
    expect(warnings).toEqual([expect.stringMatching(/prompts\/list.*database is down/)]);
  });

  it("[sound-14a] cuts what a server says at length of itself and of its faults", async () => {
    const long = "x".repeat(1_000_000);
    const initialize: Handlers[string] = ({ protocolVersion }) => ({
      ...{ protocolVersion, capabilities: { prompts: {}, experimental: { long } } },
      serverInfo: { name: long, version: long },
    });
    const list: Handlers[string] = () => Promise.reject(new RpcFailure(-32603, `begin ${long} end`));
    const wire = new FakeWire("stdio", legacyHandlers({ handlers: { initialize, "prompts/list": list } }));
    const { connection, warnings } = await connected(wire);
    wire.answer(long, {});
    await settle();
    const info = connection.info();
    expect(info.warnings).toEqual(warnings);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^prompts\/list could not be read: begin x+\n\[\.\.\. cut here \.\.\.\]\nx+ end$/);
    expect(JSON.stringify(info).length).toBeLessThan(20_000);
  });

  it("keeps the resources that it knows where their lists fail", async () => {
    const failing = (): Promise<never> => Promise.reject(new RpcFailure(-32603, "database is down"));
    const handlers = { "resources/list": failing, "resources/templates/list": failing };
    const { connection } = await connected(
      new FakeWire("stdio", legacyHandlers({ capabilities: { resources: {} }, handlers })),
    );
    expect(connection.definitions()).toMatchObject({ resources: [], templates: [] });
  });

  it("does not follow cursors in a circle", async () => {
    let pages = 0;
    const handlers: Handlers = { "tools/list": () => ({ tools: [tool(`t${pages++}`)], nextCursor: "again" }) };
    const { connection, warnings } = await connected(new FakeWire("stdio", legacyHandlers({ handlers })));
    expect(pages).toBe(2);
    expect(connection.definitions().tools).toHaveLength(2);
    expect(warnings).toEqual([expect.stringContaining("same cursor")]);
  });

  it("[trust-06d] does not take lists without end, page by page or at once", async () => {
    const text = "x".repeat(1_000_000);
    let pages = 0;
    const wide: Handlers = {
      "tools/list": () => ({ tools: [{ ...tool(`t${pages}`), description: text }], nextCursor: String(pages++) }),
    };
    const heavy = await connected(new FakeWire("stdio", legacyHandlers({ handlers: wide })));
    expect([pages, heavy.connection.definitions().tools.length]).toEqual([17, 16]);
    expect(heavy.warnings).toEqual([expect.stringMatching(/cut short after 16 entries.*16 MB/)]);
    const tools = Array.from({ length: 200_000 }, (_, index) => ({ name: `t${index}` }));
    const many = await connected(
      new FakeWire("stdio", legacyHandlers({ handlers: { "tools/list": () => ({ tools }) } })),
    );
    expect(many.connection.definitions().tools).toHaveLength(50_000);
    expect(many.warnings).toEqual([expect.stringContaining("cut short after 50000 entries")]);
  });

  it("does not read pages without end", async () => {
    let pages = 0;
    const handlers: Handlers = { "tools/list": () => ({ tools: [], nextCursor: String(pages++) }) };
    const { warnings } = await connected(new FakeWire("stdio", legacyHandlers({ handlers })));
    expect(pages).toBe(1000);
    expect(warnings).toEqual([expect.stringContaining("1000 pages")]);
  });

  it("[sound-14a] keeps no more of the cursors of a list than of the list itself", async () => {
    const long = "x".repeat(1024 * 1024);
    let pages = 0;
    const handlers: Handlers = { "tools/list": () => ({ tools: [], nextCursor: `${long}${pages++}` }) };
    const { warnings } = await connected(new FakeWire("stdio", legacyHandlers({ handlers })));
    expect(pages).toBe(16);
    expect(warnings).toEqual([expect.stringContaining("a list may have 50000 entries and 16 MB")]);
  });

  it("[sound-14a] takes no more skills of a server than a list may have bytes", async () => {
    const long = "x".repeat(1024 * 1024);
    let pages = 0;
    const list: Handlers[string] = () => ({ skills: [{ name: `s${pages++}`, long }], nextCursor: String(pages) });
    const capabilities = { tools: {}, extensions: { "io.modelcontextprotocol/skills": {} } };
    const handlers = legacyHandlers({ capabilities, handlers: { "skills/list": list } });
    const { connection } = await connected(new FakeWire("stdio", handlers));
    expect(await connection.skillOffer()?.list()).toHaveLength(15);
  });

  it("bounds the time for a list", async () => {
    const wire = new FakeWire("stdio", legacyHandlers({ handlers: { "tools/list": () => undefined } }));
    const { connection, clock, warnings } = bench({ command: "x", timeout: 3000 }, { openWire: () => wire });
    const connecting = connection.connect();
    await clock.advance(3000);
    await connecting;
    expect(connection.state.kind).toBe("ready");
    expect(warnings).toEqual([expect.stringMatching(/tools\/list could not be read/)]);
  });

  it("leaves out tools with invalid header annotations on modern HTTP only", async () => {
    const bad = tool("bad", {
      inputSchema: { type: "object", properties: { a: { type: "number", "x-mcp-header": "A" } } },
    });
    const http = await connected(new FakeWire("http", modernHandlers({ tools: [bad, tool("good")] })), {
      url: "https://x.example/mcp",
    });
    expect(http.connection.definitions().tools.map(({ name }) => name)).toEqual(["good"]);
    expect(http.warnings).toEqual([expect.stringMatching(/"bad".*not a string, integer or boolean/)]);
    const stdio = await connected(new FakeWire("stdio", modernHandlers({ tools: [bad] })));
    expect(stdio.connection.definitions().tools).toEqual([bad]);
  });
});

describe("changes", () => {
  it("[spine-13b] in a burst of 100 cost at most three reads, and the last state is seen", async () => {
    let reads = 0;
    let names = ["a"];
    const handlers: Handlers = { "tools/list": () => (reads++, { tools: names.map((name) => tool(name)) }) };
    const wire = new FakeWire("stdio", legacyHandlers({ capabilities: ALL, handlers }));
    const { connection, clock } = await connected(wire);
    await clock.advance(100);
    reads = 0;
    for (let n = 0; n < 100; n++) {
      names = [`t${n}`];
      wire.notify("notifications/tools/list_changed");
      if (n % 10 === 0) await settle(1);
    }
    await clock.advance(200);
    expect(reads).toBeGreaterThanOrEqual(1);
    expect(reads).toBeLessThanOrEqual(3);
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["t99"]);
  });

  it("[sound-17a] of a large list are read the less often the larger it is, and the last state is seen", async () => {
    let reads = 0;
    const handlers: Handlers = {
      "tools/list": () => ({ tools: [tool(`t${++reads}`, { description: "d".repeat(1024 * 1024) })] }),
    };
    const wire = new FakeWire("stdio", legacyHandlers({ capabilities: ALL, handlers }));
    const { connection, clock } = await connected(wire);
    await clock.advance(10_000);
    reads = 0;
    for (let ms = 0; ms < 20_000; ms += 100) {
      wire.notify("notifications/tools/list_changed");
      await clock.advance(100);
      if (ms === 0) expect(reads).toBe(1);
    }
    expect(reads).toBeGreaterThan(5);
    expect(reads).toBeLessThanOrEqual(11);
    await clock.advance(5_000);
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual([`t${reads}`]);
    const last = reads;
    await clock.advance(20_000);
    expect(reads).toBe(last);
  });

  it("[spine-13b] are read at once for the first announcement", async () => {
    let tools = [tool("a")];
    const wire = new FakeWire("stdio", legacyHandlers({ handlers: { "tools/list": () => ({ tools }) } }));
    const { connection, clock } = await connected(wire);
    await clock.advance(100);
    let changes = 0;
    connection.onChange(() => changes++);
    tools = [tool("b")];
    wire.notify("notifications/tools/list_changed");
    await settle();
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["b"]);
    expect(changes).toBe(1);
  });

  it("[spine-13b] of one kind do not read the others; resources bring templates", async () => {
    const wire = new FakeWire(
      "stdio",
      legacyHandlers({
        capabilities: ALL,
        handlers: { "resources/list": () => ({ resources: [] }), "prompts/list": () => ({ prompts: [] }) },
      }),
    );
    const { clock } = await connected(wire);
    await clock.advance(100);
    const before = wire.sent.length;
    wire.notify("notifications/resources/list_changed");
    await settle();
    expect(wire.methods().slice(before)).toEqual(["resources/list", "resources/templates/list"]);
  });

  it("[spine-13b] that nobody announced are found by refresh()", async () => {
    let tools = [tool("a")];
    const wire = new FakeWire("stdio", legacyHandlers({ handlers: { "tools/list": () => ({ tools }) } }));
    const { connection } = await connected(wire);
    tools = [tool("a"), tool("b")];
    await connection.refresh();
    expect(connection.definitions().tools).toHaveLength(2);
  });

  it("[spine-13b] that fail to be read leave what is listed", async () => {
    let broken = false;
    const handlers: Handlers = {
      "tools/list": () => {
        if (broken) throw new RpcFailure(-32603, "not now");
        return { tools: [tool("a")] };
      },
    };
    const { connection } = await connected(new FakeWire("stdio", legacyHandlers({ handlers })));
    broken = true;
    await connection.refresh();
    expect(connection.definitions().tools).toHaveLength(1);
  });
});

describe("the stream of a modern server", () => {
  it("[spine-13b] is asked for the lists that change, and opened again when it ends", async () => {
    let tools = [tool("a")];
    const handlers: Handlers = { "tools/list": () => ({ tools }), "prompts/list": () => ({ prompts: [] }) };
    const capabilities = { tools: { listChanged: true }, prompts: {} };
    const wire = new FakeWire("http", modernHandlers({ capabilities, handlers }));
    const { connection, clock } = await connected(wire, { url: "https://x.example/mcp" });
    expect(wire.params("subscriptions/listen")["notifications"]).toEqual({ toolsListChanged: true });
    tools = [tool("b")];
    wire.notify("notifications/tools/list_changed");
    await clock.advance(100);
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["b"]);

    const listen = wire.sent.find(
      ({ message }) => "method" in message && message.method === "subscriptions/listen",
    )?.message;
    tools = [tool("c")];
    if (listen !== undefined && "id" in listen && listen.id !== null)
      wire.answer(listen.id, { resultType: "complete" });
    await clock.advance(999);
    expect(wire.methods().filter((method) => method === "subscriptions/listen")).toHaveLength(1);
    await clock.advance(100);
    expect(wire.methods().filter((method) => method === "subscriptions/listen")).toHaveLength(2);
    // What changed while the stream was down is found too.
    expect(connection.definitions().tools.map(({ name }) => name)).toEqual(["c"]);
    await connection.close();
  });

  it("is ended by the server's cancellation on stdio", async () => {
    const wire = new FakeWire("stdio", modernHandlers({ capabilities: { tools: { listChanged: true } } }));
    const { clock } = await connected(wire);
    const listen = wire.sent.find(
      ({ message }) => "method" in message && message.method === "subscriptions/listen",
    )?.message;
    if (listen === undefined || !("id" in listen)) throw new Error("no listen");
    wire.notify("notifications/cancelled", { requestId: listen.id });
    await clock.advance(1000);
    expect(wire.methods().filter((method) => method === "subscriptions/listen")).toHaveLength(2);
  });

  it("is not insisted on where the server does not know it", async () => {
    const handlers: Handlers = { "subscriptions/listen": () => Promise.reject(new RpcFailure(-32601, "no")) };
    const wire = new FakeWire("stdio", modernHandlers({ capabilities: { tools: { listChanged: true } }, handlers }));
    const { clock, warnings, connection } = await connected(wire);
    await clock.advance(60_000);
    expect(connection.state.kind).toBe("ready");
    expect(wire.methods().filter((method) => method === "subscriptions/listen")).toHaveLength(1);
    expect(warnings).toEqual([expect.stringContaining("not live")]);
  });
});
