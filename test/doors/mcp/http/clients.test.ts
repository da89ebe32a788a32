/** Whole flows with the real engine, judged by the official clients of both generations. */
import {
  Client as ModernSdkClient,
  StreamableHTTPClientTransport as ModernSdkTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CreateMessageRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/base/clock.ts";
import type { Tool } from "../../../../src/model/tool.ts";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { everything } from "../../../support/servers.ts";
import { tool } from "../../../tools/support.ts";
import { doorOn } from "../door-bench.ts";
import { Bench } from "./bench.ts";
import { eventually } from "../../../support/eventually.ts";

let bench: Bench;
let registry: ToolRegistry;
let started = 0;
let aborted = 0;
const clients: { close(): Promise<void> }[] = [];

/** Called by a client that has heard of the last step. The SDK drops progress that comes in one piece with the answer. */
let heard: () => void = () => {};
const steps: Partial<Tool> = {
  execute: async (_id, { alone }, _signal, onUpdate) => {
    const all = new Promise<void>((resolve) => (heard = resolve));
    for (const step of ["one", "two"]) onUpdate?.({ content: [{ type: "text", text: step }] });
    if (alone !== true) await all;
    return { content: [{ type: "text", text: "done" }] };
  },
};

/** Notes each step, and lets the tool go on after the second. */
function noteIn(progress: unknown[]): (update: { message?: string | undefined }) => void {
  return ({ message }) => {
    if (progress.push(message) === 2) heard();
  };
}
const waits: Partial<Tool> = {
  execute: (_id, _params, signal) =>
    new Promise((_resolve, reject) => {
      started++;
      signal?.addEventListener("abort", () => {
        aborted++;
        reject(new Error("aborted"));
      });
    }),
};

beforeEach(async () => {
  started = aborted = 0;
  registry = new ToolRegistry();
  registry.register(tool("echo"));
  registry.register(tool("steps", steps));
  registry.register(tool("waits", waits));
  const overrides = { e__echo: { name: "say", parameters: { message: { fixed: "hello from the view" } } } };
  const views = { talk: { tools: ["e__echo", "e__get-sum"], overrides, instructions: "Say something." } };
  const config = { mcpServers: { e: everything() }, views, limits: { callsPerMinute: 10_000 } };
  const { door } = await doorOn(config, { registry });
  bench = await new Bench(door, { clock: systemClock }).open();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await bench.close();
});

async function legacyClient(transport: Transport, capabilities = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  await client.connect(transport);
  clients.push(client);
  return client;
}

const streamable = (path = "/mcp"): Transport => new StreamableHTTPClientTransport(new URL(path, bench.url));
const sse = (path = "/sse"): Transport => new SSEClientTransport(new URL(path, bench.url));

async function modernClient(mode: "auto" | "legacy"): Promise<ModernSdkClient> {
  const client = new ModernSdkClient({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new ModernSdkTransport(new URL("/mcp", bench.url)));
  clients.push(client);
  return client;
}

/** Why it failed; a call that succeeds fails the test. */
function reasonOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => expect.fail("the call succeeded"),
    (error: unknown) => String(error),
  );
}

const textIn = (result: object): unknown =>
  "content" in result ? (result.content as { text: string }[])[0]?.text : undefined;

describe.each([
  ["[gate-01a] Streamable HTTP", streamable],
  ["[gate-01c] HTTP+SSE", sse],
])("%s with the SDK 1.x client", (_name, transport) => {
  const below = transport === sse ? "/sse" : "/mcp";

  it("[shape-06b] serves a view at its name, and a server at its own with bare names", async () => {
    const viewing = await legacyClient(transport(`${below}/talk`));
    const { tools } = await viewing.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["say", "e__get-sum"]);
    expect(tools[0]?.inputSchema.properties).toEqual({});
    expect(viewing.getInstructions()).toContain("Say something.");
    expect(textIn(await viewing.callTool({ name: "say", arguments: {} }))).toContain("hello from the view");
    expect(await reasonOf(viewing.callTool({ name: "say", arguments: { message: "mine" } }))).toMatch(/no argument/);
    const single = await legacyClient(transport(`${below}/e`));
    const bare = (await single.listTools()).tools.map(({ name }) => name);
    expect(bare).toContain("echo");
    expect(bare.filter((name) => name.includes("__"))).toEqual([]);
    expect(textIn(await single.callTool({ name: "echo", arguments: { message: "mine" } }))).toContain("mine");
  });

  it("[gate-17a] lists, calls, reports progress, answers sampling, hears of changes", async () => {
    const client = await legacyClient(transport(), { sampling: {} });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: "test",
      role: "assistant",
      content: { type: "text", text: "sampled" },
    }));
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["echo", "steps", "e__echo"]));
    const progress: unknown[] = [];
    const done = await client.callTool({ name: "steps", arguments: {} }, undefined, {
      onprogress: noteIn(progress),
    });
    expect([textIn(done), progress]).toEqual(["done", ["one", "two"]]);
    const asked = await client.callTool({
      name: "e__trigger-sampling-request",
      arguments: { prompt: "hi", maxTokens: 5 },
    });
    expect(textIn(asked)).toContain("sampled");
    registry.register(tool("later"));
    await eventually(() => changes > 0);
  });

  it("[gate-11c] a call that is given up, or whose client is gone, is cancelled", async () => {
    const client = await legacyClient(transport());
    const gaveUp = new AbortController();
    const call = reasonOf(client.callTool({ name: "waits", arguments: {} }, undefined, { signal: gaveUp.signal }));
    await eventually(() => started === 1);
    gaveUp.abort();
    expect(await call).toContain("AbortError");
    await eventually(() => aborted === 1);
    const other = await legacyClient(transport());
    const cut = reasonOf(other.callTool({ name: "waits", arguments: {} }));
    await eventually(() => started === 2);
    await other.close();
    expect(await cut).toContain("Connection closed");
    await eventually(() => aborted === 2);
  });
});

describe("[gate-17a] the SDK 2.x client", () => {
  it("[gate-01b] speaks the modern era", async () => {
    const client = await modernClient("auto");
    expect(client.getProtocolEra()).toBe("modern");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("e__echo");
    expect(textIn(await client.callTool({ name: "e__echo", arguments: { message: "hi" } }))).toContain("hi");
    const progress: unknown[] = [];
    const done = await client.callTool({ name: "steps", arguments: {} }, { onprogress: noteIn(progress) });
    expect(textIn(done)).toBe("done");
    expect(progress).toEqual(["one", "two"]);
    expect(bench.http.sessions).toBe(0);
  });

  it("[gate-01b] [gate-11c] cancels by closing the connection", async () => {
    const client = await modernClient("auto");
    const gaveUp = new AbortController();
    const call = reasonOf(client.callTool({ name: "waits", arguments: {} }, { signal: gaveUp.signal }));
    await eventually(() => started === 1);
    gaveUp.abort();
    expect(await call).toContain("AbortError");
    await eventually(() => aborted === 1);
  });

  it("[gate-01a] speaks the legacy era at the same address", async () => {
    const client = await modernClient("legacy");
    expect(textIn(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    expect(bench.http.sessions).toBe(1);
  });
});

describe("[gate-05b] views by the address", () => {
  it("narrow what is listed and what can be called", async () => {
    const client = await legacyClient(streamable("/mcp?servers=e"));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("get-sum");
    // Of this process, which is not part of it.
    expect(await reasonOf(client.callTool({ name: "steps", arguments: {} }))).toContain("steps");
    const overSse = await legacyClient(sse("/sse?servers=e"));
    expect((await overSse.listTools()).tools).toHaveLength(tools.length);
  });
});

it("[gate-01a] 200 calls at once on one session, streaming and not, get their own answers", async () => {
  const client = await legacyClient(streamable());
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      n % 2 === 0
        ? client.callTool({ name: "echo", arguments: { n } })
        : client.callTool({ name: "steps", arguments: { alone: true } }, undefined, { onprogress: () => {} }),
    ),
  );
  expect(answers.map(textIn)).toEqual(Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? `{"n":${n}}` : "done")));
});
