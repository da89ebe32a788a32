import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { JsonObject } from "../../../../src/model/json.ts";
import { type Ground, missing, startGround } from "../../../hub/cluster/nodes.ts";
import { tool } from "../../../tools/support.ts";
import { ADA, EVE, inTurn, openScene, type Scene, type SceneNode, thenOnly } from "./cluster-setup.ts";
import { isMissing } from "../../../support/skips.ts";

isMissing("sessions over nodes", missing);

const WITHIN = { timeout: 60_000, interval: 20 };
const JSON_AND_STREAM = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const textIn = (result: object): unknown =>
  "content" in result ? (result.content as { text: string }[])[0]?.text : undefined;

describe.skipIf(missing !== undefined)("sessions over nodes", { timeout: 60_000 }, () => {
  let ground: Ground;
  let scene: Scene;
  let a: SceneNode;
  let b: SceneNode;
  const clients: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    ground = await startGround();
    scene = await openScene(ground);
    [a, b] = await Promise.all([scene.start("a"), scene.start("b")]);
    await Promise.all([a.hub.servers.settled(), b.hub.servers.settled()]);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });
  afterAll(async () => {
    await scene?.close();
    await ground?.stop();
  });

  const streamable = (using: typeof fetch): StreamableHTTPClientTransport =>
    new StreamableHTTPClientTransport(new URL("/mcp", a.url), { fetch: using });
  async function connected(
    transport: StreamableHTTPClientTransport | SSEClientTransport,
    capabilities = {},
  ): Promise<Client> {
    const client = new Client({ name: "test", version: "1" }, { capabilities });
    await client.connect(transport);
    clients.push(client);
    return client;
  }
  const post = (node: SceneNode, body: JsonObject, headers: Record<string, string> = {}, token = ADA) =>
    fetch(`${node.url}/mcp`, {
      method: "POST",
      headers: { ...JSON_AND_STREAM, authorization: `Bearer ${token}`, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  async function initialized(node: SceneNode, token = ADA): Promise<string> {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
    const answer = await post(node, { id: 1, method: "initialize", params }, {}, token);
    expect(answer.status).toBe(200);
    await answer.text();
    return answer.headers.get("mcp-session-id") ?? expect.fail("no session id");
  }
  const call = (name: string): JsonObject => ({ id: 2, method: "tools/call", params: { name, arguments: {} } });

  it("[scale-07b] all that a session does works through a node that does not have it", async () => {
    const client = new Client({ name: "test", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: "test",
      role: "assistant",
      content: { type: "text", text: "sampled" },
    }));
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: "decline" }));
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    const transport = streamable(thenOnly(a.url, b.url));
    await client.connect(transport);
    clients.push(client);
    expect(textIn(await client.callTool({ name: "whereami", arguments: {} }))).toBe("a");
    const progress: unknown[] = [];
    const stepped = await client.callTool({ name: "steps", arguments: {} }, undefined, {
      onprogress: ({ message }) => progress.push(message),
    });
    expect([textIn(stepped), progress]).toEqual(["a", ["one", "two"]]);
    const sampled = await client.callTool({
      name: "e__trigger-sampling-request",
      arguments: { prompt: "hi", maxTokens: 5 },
    });
    expect(textIn(sampled)).toContain("sampled");
    const elicited = await client.callTool({ name: "e__trigger-elicitation-request", arguments: {} });
    expect(JSON.stringify(elicited)).toContain("declined");
    a.registry.register(tool("later"));
    await vi.waitFor(() => expect(changes).toBeGreaterThan(0), WITHIN);
    await transport.terminateSession();
    const gone = await post(a, call("whereami"), { "mcp-session-id": transport.sessionId ?? "" });
    expect(gone.status).toBe(404);
  });

  it("[scale-07b] each request may come to another node, and the client that leaves is noticed at the owner", async () => {
    const client = await connected(streamable(inTurn([a.url, b.url])));
    const places = new Set<unknown>();
    for (let count = 0; count < 6; count++) places.add(textIn(await client.callTool({ name: "whereami" })));
    expect([...places]).toHaveLength(1);
    const owner = places.has("a") ? a : b;
    const { ended } = owner.waited;
    const giveUp = new AbortController();
    const calls = [1, 2].map(() => client.callTool({ name: "waits" }, undefined, { signal: giveUp.signal }));
    await vi.waitFor(() => expect(owner.waited.begun).toBeGreaterThanOrEqual(2), WITHIN);
    giveUp.abort();
    for (const each of calls) await expect(each).rejects.toThrow("AbortError");
    await vi.waitFor(() => expect(owner.waited.ended).toBe(ended + 2), WITHIN);
  });

  it("[scale-07b] a stream that was cut goes on from its last event at any node", async () => {
    const session = { "mcp-session-id": await initialized(a) };
    await (await post(b, { method: "notifications/initialized" }, session)).text();
    const open = async (node: SceneNode, last?: string): Promise<string> => {
      const gone = new AbortController();
      const answer = await fetch(`${node.url}/mcp`, {
        headers: {
          accept: "text/event-stream",
          authorization: `Bearer ${ADA}`,
          ...session,
          ...(last === undefined ? {} : { "last-event-id": last }),
        },
        signal: gone.signal,
      });
      expect(answer.status).toBe(200);
      if (last === undefined) a.registry.register(tool("another"));
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of answer.body ?? []) {
        text += decoder.decode(chunk as Uint8Array);
        if (text.includes("list_changed")) break;
      }
      gone.abort();
      return text;
    };
    const heard = await open(b);
    expect(/^id: (\S+)$/m.exec(heard)?.[1]).toBe("0-1");
    expect(await open(b, "0-0")).toContain("id: 0-1");
    const unknown = await fetch(`${b.url}/mcp`, {
      headers: { accept: "text/event-stream", authorization: `Bearer ${ADA}`, ...session, "last-event-id": "9-9" },
    });
    expect(unknown.status).toBe(400);
  });

  it("[scale-07b] the older transport posts to any node", async () => {
    const transport = new SSEClientTransport(new URL("/sse", a.url), {
      eventSourceInit: { fetch: inTurn([a.url]) },
      fetch: inTurn([b.url, a.url]),
    });
    const client = await connected(transport);
    for (let count = 0; count < 3; count++) expect(textIn(await client.callTool({ name: "whereami" }))).toBe("a");
  });

  it("[scale-07a] a forged id, and another's id, are unknown at every node", async () => {
    const id = await initialized(a);
    for (const node of [a, b]) {
      expect((await post(node, call("whereami"), { "mcp-session-id": id })).status).toBe(200);
      expect((await post(node, call("whereami"), { "mcp-session-id": id }, EVE)).status).toBe(404);
      for (const forged of [`${id.slice(0, -2)}AA`, "A".repeat(id.length), id.slice(0, 20), `${id}x`]) {
        const answer = await post(node, call("whereami"), { "mcp-session-id": forged });
        expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("No such session")]);
      }
    }
    const notForSse = await fetch(`${b.url}/messages?sessionId=${id}`, {
      method: "POST",
      headers: { ...JSON_AND_STREAM, authorization: `Bearer ${ADA}` },
      body: JSON.stringify({ jsonrpc: "2.0", ...call("whereami") }),
    });
    expect(notForSse.status).toBe(404);
  });

  it("[scale-07b] of an owner that has gone the client gets 404, and a new session works", async () => {
    const c = await scene.start("c");
    await vi.waitFor(() => expect(a.hub.internals.cluster?.nodes()).toHaveLength(3), WITHIN);
    const id = await initialized(c);
    const answer = await post(a, call("whereami"), { "mcp-session-id": id });
    expect(await answer.text()).toContain('"c"');
    await c.close();
    await vi.waitFor(() => expect(a.hub.internals.cluster?.nodes()).toHaveLength(2), WITHIN);
    const gone = await post(a, call("whereami"), { "mcp-session-id": id });
    expect([gone.status, await gone.text()]).toEqual([404, expect.stringContaining("start a new one")]);
    const next = await initialized(a);
    expect(await (await post(b, call("whereami"), { "mcp-session-id": next })).text()).toContain('"a"');
  });
});
