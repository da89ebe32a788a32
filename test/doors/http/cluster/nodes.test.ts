import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { JsonObject } from "../../../../src/model/json.ts";
import { type Ground, missing, startGround } from "../../../hub/cluster/nodes.ts";
import { ENVELOPE, modernHeaders, modernRequest } from "../../mcp/http/bench.ts";
import { Talk } from "../live/live-setup.ts";
import { ask, type Answer } from "../support.ts";
import { ADA, EVE, openScene, OPS, type Scene, type SceneNode } from "./cluster-setup.ts";
import { isMissing } from "../../../support/skips.ts";

isMissing("the doors of nodes", missing);

const WITHIN = { timeout: 60_000, interval: 20 };
const JSON_AND_STREAM = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const CAPABILITIES = { ...ENVELOPE, "io.modelcontextprotocol/clientCapabilities": { sampling: {} } };

interface Ready {
  readonly status: string;
  readonly problems: string[];
  readonly cluster: { readonly nodes: number; readonly nats: string };
  readonly store: string;
}

describe.skipIf(missing !== undefined)("the doors of nodes", { timeout: 60_000 }, () => {
  let ground: Ground;
  let scene: Scene;
  let a: SceneNode;
  let b: SceneNode;

  beforeAll(async () => {
    ground = await startGround();
    scene = await openScene(ground);
    [a, b] = await Promise.all([scene.start("a"), scene.start("b")]);
    await Promise.all([a.hub.servers.settled(), b.hub.servers.settled()]);
  });
  afterAll(async () => {
    await scene?.close();
    await ground?.stop();
  });

  const rest = (node: SceneNode, method: string, path: string, body?: JsonObject, token = ADA): Promise<Answer> =>
    ask(`${node.url}/api/v1${path}`, {
      method,
      token,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
  async function modern(node: SceneNode, method: string, params: JsonObject, token = ADA): Promise<JsonObject> {
    const request = modernRequest(method, params, 1);
    const answer = await ask(`${node.url}/mcp`, {
      method: "POST",
      token,
      headers: { ...JSON_AND_STREAM, ...modernHeaders(method, params) },
      body: JSON.stringify(request),
    });
    // What comes before an answer makes it a stream.
    const text = /^data: (.*"id":1.*)$/m.exec(answer.text)?.[1] ?? answer.text;
    return JSON.parse(text) as JsonObject;
  }
  async function session(node: SceneNode): Promise<string> {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const answer = await ask(`${node.url}/mcp`, { method: "POST", token: ADA, headers: JSON_AND_STREAM, body });
    return String(answer.headers["mcp-session-id"]);
  }
  let calls = 1;
  const callIn = (node: SceneNode, id: string, name: string): Promise<Answer> =>
    ask(`${node.url}/mcp`, {
      method: "POST",
      token: ADA,
      headers: { ...JSON_AND_STREAM, "mcp-session-id": id },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++calls, method: "tools/call", params: { name, arguments: {} } }),
    });
  const readyz = async (node: SceneNode): Promise<[number, Ready]> => {
    const answer = await ask(`${node.url}/readyz`);
    return [answer.status, answer.json<Ready>()];
  };

  it("[scale-07b] a session that REST opened is used, shown and closed at any node, by its caller", async () => {
    const opened = await rest(a, "POST", "/sessions", {});
    expect(opened.status).toBe(201);
    const { sessionId, id } = opened.json<{ sessionId: string; id: string }>();
    expect([id, opened.headers.location]).toEqual([sessionId, `/api/v1/sessions/${sessionId}`]);
    for (const node of [a, b]) {
      const called = await rest(node, "POST", "/mcp/tools/whereami/call", { session: sessionId });
      expect([called.status, called.text]).toEqual([200, expect.stringContaining('"a"')]);
      expect((await rest(node, "GET", `/mcp/tools?session=${sessionId}`)).status).toBe(200);
      expect((await rest(node, "GET", `/sessions/${sessionId}`)).json<{ session: object }>().session).toMatchObject({
        door: "rest",
        user: "ada",
      });
      const stolen = await rest(node, "POST", "/mcp/tools/whereami/call", { session: sessionId }, EVE);
      expect([stolen.status, stolen.json().error.code]).toEqual([404, "not_found"]);
      // Without the scope admin nobody learns whether another's session is there.
      const closed = await rest(node, "DELETE", `/sessions/${sessionId}`, undefined, EVE);
      expect([closed.status, closed.headers["www-authenticate"]]).toEqual([403, undefined]);
      expect((await rest(node, "POST", "/mcp/tools/whereami/call", { session: `${sessionId}x` })).status).toBe(404);
    }
    const [near, far] = await Promise.all([a, b].map(({ url }) => Talk.open(`${url.replace("http", "ws")}/ws`, ADA)));
    const call = { id: 1, type: "mcp.callTool", toolName: "whereami", session: sessionId };
    expect(await near?.ask(call)).toMatchObject({ ok: true });
    const tools = { id: 2, type: "sessions.setExtraTools", session: sessionId, tools: [] };
    expect(await near?.ask(tools)).toMatchObject({ ok: true });
    const elsewhere = { code: "not_found", message: expect.stringContaining("another node") as string };
    expect(await far?.ask(call)).toMatchObject({ ok: false, error: elsewhere });
    expect(await far?.ask(tools)).toMatchObject({ ok: false, error: elsewhere });
    expect((await rest(b, "DELETE", `/sessions/${sessionId}`)).json<object>()).toEqual({ sessionId });
    for (const node of [a, b]) {
      expect((await rest(node, "POST", "/mcp/tools/whereami/call", { session: sessionId })).status).toBe(404);
    }
  });

  it("[scale-07b] a kept result is read at any node, by its caller", async () => {
    const uriIn = (text: string): string => /toolcrib:\/\/results\/[\w-]+/.exec(text)?.[0] ?? expect.fail(text);
    const kept = uriIn(JSON.stringify(await modern(a, "tools/call", { name: "big", arguments: {} })));
    const read = JSON.stringify(await modern(b, "resources/read", { uri: kept }));
    expect(read).toContain(`a ${"b".repeat(1000)}`);
    expect(JSON.stringify(await modern(a, "resources/read", { uri: kept }))).toBe(read);
    expect(JSON.stringify(await modern(b, "resources/read", { uri: kept }, EVE))).toContain("is not kept");
  });

  it("[scale-07b] a call that waits for an answer goes on when that comes to another node", async () => {
    const call = {
      name: "e__trigger-sampling-request",
      arguments: { prompt: "hi", maxTokens: 5 },
      _meta: CAPABILITIES,
    };
    const { result } = (await modern(a, "tools/call", call)) as { result: JsonObject };
    const [key = ""] = Object.keys(result["inputRequests"] as JsonObject);
    const sampled = { role: "assistant", model: "m", content: { type: "text", text: "from the client" } };
    const retry = { ...call, requestState: result["requestState"] ?? null, inputResponses: { [key]: sampled } };
    expect(JSON.stringify(await modern(b, "tools/call", retry, EVE))).toContain("-32602");
    expect(JSON.stringify(await modern(b, "tools/call", retry))).toContain("from the client");
    expect(JSON.stringify(await modern(b, "tools/call", retry))).toContain("-32602");
  });

  it("[scale-07b] a browser stays logged in at any node, and out; a link works once in the whole cluster", async () => {
    const page = (node: SceneNode, headers: Record<string, string> = {}) => ({
      headers: { origin: node.url, "x-toolcrib": "page", "content-type": "application/json", ...headers },
    });
    const code = new URLSearchParams(new URL(a.doors.listener.loginLink()).hash.slice(1)).get("login");
    const body = JSON.stringify({ code });
    const answers = await Promise.all(
      [b, a, b].map((node) => ask(`${node.url}/api/v1/login`, { method: "POST", body, ...page(node) })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401]);
    const answer = answers.find(({ status }) => status === 200);
    const login = {
      cookie: String(answer?.headers["set-cookie"]).split(";")[0] ?? "",
      "x-toolcrib": answer?.json<{ pageKey: string }>().pageKey ?? "",
    };
    const status = async (node: SceneNode, headers: Record<string, string>): Promise<number> =>
      (await ask(`${node.url}/api/v1/config`, page(node, headers))).status;
    expect([await status(a, login), await status(b, login)]).toEqual([200, 200]);
    expect(await status(b, { ...login, "x-toolcrib": "A".repeat(43) })).toBe(401);
    await ask(`${a.url}/api/v1/logout`, { method: "POST", ...page(a, login) });
    expect(await status(a, login)).toBe(401);
    await vi.waitFor(async () => expect(await status(b, login)).toBe(401), WITHIN);
  });

  it("[scale-05a] who watches at one node sees the calls of all", async () => {
    const gone = new AbortController();
    const stream = await fetch(`${b.url}/api/v1/events?events=call.*`, {
      headers: { authorization: `Bearer ${OPS}` },
      signal: gone.signal,
    });
    expect(stream.status).toBe(200);
    let seen = "";
    const reading = (async () => {
      for await (const chunk of stream.body ?? []) seen += Buffer.from(chunk as Uint8Array).toString();
    })().catch(() => {});
    await vi.waitFor(async () => {
      await modern(a, "tools/call", { name: "whereami", arguments: {} });
      expect(seen).toMatch(/event: call.finished\s+data: .*"whereami"/);
    }, WITHIN);
    gone.abort();
    await reading;
  });

  it("[scale-09c] a node that ends says so, serves on, finishes what is under way, and its sessions begin anew", async () => {
    const c = await scene.start("c");
    await vi.waitFor(() => expect(a.hub.internals.cluster?.nodes()).toHaveLength(3), WITHIN);
    const id = await session(c);
    const direct = callIn(c, id, "waits");
    const through = callIn(a, id, "waits");
    const byRest = rest(c, "POST", "/mcp/tools/waits/call", {});
    await vi.waitFor(() => expect(c.waited.begun).toBe(3), WITHIN);
    const stopped = c.doors.stop();
    const [status, ready] = await readyz(c);
    expect([status, ready.status]).toEqual([503, "stopping"]);
    const served = await callIn(c, id, "whereami");
    expect([served.status, served.headers.connection]).toEqual([200, "close"]);
    await vi.waitFor(() => expect(ask(`${c.url}/healthz`)).rejects.toMatchObject({ code: "ECONNREFUSED" }), WITHIN);
    // New work is for other nodes, and not begun here.
    expect((await callIn(a, id, "whereami")).status).toBe(404);
    for (const finish of c.waited.all.splice(0)) finish();
    for (const under of [direct, through, byRest]) {
      const { status: code, text } = await under;
      expect([code, text]).toEqual([200, expect.stringContaining("waited at c")]);
    }
    await stopped;
    await c.close();
    await vi.waitFor(() => expect(a.hub.internals.cluster?.nodes()).toHaveLength(2), WITHIN);
    expect((await callIn(b, id, "whereami")).status).toBe(404);
  });

  it("[scale-09d] [scale-07b] without NATS a node is degraded and says so; a session elsewhere is away, not gone", async () => {
    expect(await readyz(a)).toEqual([
      200,
      { status: "ready", problems: [], cluster: { nodes: 2, nats: "up" }, store: "up" },
    ]);
    const id = await session(a);
    expect((await callIn(b, id, "whereami")).status).toBe(200);
    await ground.nats.kill();
    await vi.waitFor(async () => {
      const [status, { status: state, problems, cluster }] = await readyz(b);
      expect([status, state, cluster.nats]).toEqual([200, "degraded", "down"]);
      expect(problems).toEqual([expect.stringContaining("NATS cannot be reached")]);
    }, WITHIN);
    const away = await callIn(b, id, "whereami");
    expect([away.status, away.headers["retry-after"]]).toEqual([503, "10"]);
    expect(away.text).toContain("cannot be reached at the moment");
    expect((await callIn(a, id, "whereami")).status).toBe(200);
    expect((await rest(b, "GET", "/mcp/tools", undefined, OPS)).status).toBe(200);
    await ground.nats.restart();
    await vi.waitFor(async () => expect((await readyz(b))[1].status).toBe("ready"), WITHIN);
    await vi.waitFor(async () => expect((await callIn(b, id, "whereami")).status).toBe(200), WITHIN);
  });
});
