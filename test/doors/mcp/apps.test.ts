/** MCP Apps through the door: servers and host are those of the official packages. */
import { resolve } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { App } from "@modelcontextprotocol/ext-apps";
import { AppBridge, getToolUiResourceUri, isToolVisibilityAppOnly } from "@modelcontextprotocol/ext-apps/app-bridge";
import { InMemoryTransport, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import type { McpDoor } from "../../../src/doors/mcp/mcp-door.ts";
import type { LegacySession } from "../../../src/doors/mcp/legacy-session.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { RpcResponse } from "../../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { decode, doorOn, OWNER } from "./door-bench.ts";

const SERVER = resolve(import.meta.dirname, "../../fixtures/app-server.ts");
const app = (label: string): ServerEntryInput => ({ command: process.execPath, args: [SERVER, label] });

/** The official client's end of a session at the door. */
class DoorTransport implements Transport {
  onmessage: Transport["onmessage"];
  onclose?: () => void;
  readonly #session: LegacySession;

  constructor(door: McpDoor) {
    this.#session = door.openSession({ caller: OWNER, scope: {} }, this.#sink);
  }

  readonly #sink = { send: (message: Parameters<typeof decode>[0]) => this.#receive(message) };

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message)) this.#session.answer(message as RpcResponse);
    else if (!("id" in message)) this.#session.notify(message);
    else void this.#session.request(message, this.#sink).then((answer) => answer !== null && this.#receive(answer));
  }

  async close(): Promise<void> {
    this.#session.close();
    this.onclose?.();
  }

  #receive(message: Parameters<typeof decode>[0]): void {
    this.onmessage?.(decode(message) as JSONRPCMessage);
  }
}

async function host(config: ConfigInput, { extension = true } = {}) {
  const { hub, door } = await doorOn(config, { wait: true });
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
  const client = new Client(
    { name: "host", version: "1" },
    { capabilities: extension ? { extensions } : {}, versionNegotiation: { mode: "legacy" } },
  );
  await client.connect(new DoorTransport(door));
  onTestFinished(() => client.close());
  const { tools } = await client.listTools();
  return { hub, client, tools };
}

/** A page in its frame: what it calls goes through the host's bridge. */
async function openPage(client: Client): Promise<App> {
  const [inside, outside] = InMemoryTransport.createLinkedPair();
  const bridge = new AppBridge(client, { name: "host", version: "1" }, { serverTools: {} });
  await bridge.connect(outside);
  const page = new App({ name: "page", version: "1" }, {}, { autoResize: false });
  await page.connect(inside);
  onTestFinished(() => page.close());
  return page;
}

describe("[whole-23a] tools that are only for a page", () => {
  it("are listed for a host that shows pages, and for no one else, models and search included", async () => {
    const config: ConfigInput = { mcpServers: { clock: app("clock") } };
    const { hub, tools } = await host(config);
    expect(tools.map(({ name }) => name).toSorted()).toEqual(["clock__refresh", "clock__show-time", "clock__think"]);
    expect(tools.filter(isToolVisibilityAppOnly).map(({ name }) => name)).toEqual(["clock__refresh"]);
    const plain = await host(config, { extension: false });
    expect(plain.tools.map(({ name }) => name).toSorted()).toEqual(["clock__show-time", "clock__think"]);
    expect(hub.tools().map(({ name }) => name)).not.toContain("clock__refresh");
    expect(hub.internals.search(hub.session, "reads the clock again", 10).map(({ name }) => name)).not.toContain(
      "clock__refresh",
    );
  });
});

describe("[whole-23b] the page of a tool", () => {
  it("can be read by its link, also where two servers name theirs alike", async () => {
    const { client, tools } = await host({ mcpServers: { one: app("one"), two: app("two") } });
    const links = ["one", "two"].map((id) => {
      const tool = tools.find(({ name }) => name === `${id}__show-time`);
      return tool === undefined ? undefined : getToolUiResourceUri(tool);
    });
    expect(new Set(links).size).toBe(2);
    const pages = await Promise.all(links.map((uri) => client.readResource({ uri: String(uri) })));
    expect(pages.map(({ contents }) => contents[0])).toMatchObject([
      { text: "<title>one</title>", mimeType: "text/html;profile=mcp-app" },
      { text: "<title>two</title>" },
    ]);
    expect(pages.map(({ contents }) => contents[0]?.uri)).toEqual(links);
  });
});

describe("[whole-23c] a page that calls tools by its server's own names", () => {
  it("reaches that server and no other", async () => {
    const { client, tools } = await host({ mcpServers: { one: app("one"), two: app("two") } });
    const shown = tools.find(({ name }) => name === "two__show-time");
    await client.readResource({ uri: String(shown && getToolUiResourceUri(shown)) });
    const page = await openPage(client);
    const result = await page.callServerTool({ name: "refresh", arguments: { zone: "UTC" } });
    expect(result.content).toEqual([{ type: "text", text: "two refreshed UTC" }]);
    await expect(page.callServerTool({ name: "think", arguments: {} })).rejects.toThrow(/no tool/);
    const other = tools.find(({ name }) => name === "one__show-time");
    await client.readResource({ uri: String(other && getToolUiResourceUri(other)) });
    await expect(page.callServerTool({ name: "refresh", arguments: { zone: "UTC" } })).rejects.toThrow(/unclear whose/);
  });

  it("is under the same rules, and a client without pages has no such names", async () => {
    const { client } = await host({ mcpServers: { one: app("one") }, tools: { deny: ["one__refresh"] } });
    const page = await openPage(client);
    await expect(page.callServerTool({ name: "refresh", arguments: { zone: "UTC" } })).rejects.toThrow(
      /no tool|denied/i,
    );
    const plain = await host({ mcpServers: { one: app("one") } }, { extension: false });
    await expect(plain.client.callTool({ name: "refresh", arguments: { zone: "UTC" } })).rejects.toThrow(/no tool/);
  });
});
