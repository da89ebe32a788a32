/** Details of the protocol that a client would get from the server itself, in both eras. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { eventually } from "../../support/eventually.ts";
import { doorOn, LegacyClient, ModernClient } from "./door-bench.ts";

/**
 * A server on stdio that writes down what it is sent. `--modern` speaks 2026-07-28 only. Its tools: `announce` says that the lists
 * have changed, which they have not; `visit` needs an address to be visited; `slow` asks a question and then makes progress, as the prompt
 * `wait` and the resource do; `step` makes progress of what runs.
 */
const SERVER = `
const { appendFileSync } = require("node:fs");
const [file, era] = process.argv.slice(1);
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const capabilities = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true } };
const text = (value) => ({ resultType: era === "--modern" ? "complete" : undefined, content: [{ type: "text", text: value }] });
const VISIT = { mode: "url", message: "Log in.", url: "https://login.example/x" };
let visits = 0;
let listening;
let answered;
let running;
const TOOLS = {
  announce: () => {
    for (const kind of ["tools", "prompts", "resources"]) {
      send({ method: "notifications/" + kind + "/list_changed", params: listening && { _meta: { "io.modelcontextprotocol/subscriptionId": listening } } });
    }
    return text("announced");
  },
  visit: ({ inputResponses }) => {
    if (era === "--modern") {
      if (inputResponses) return text("visited: " + JSON.stringify(inputResponses));
      return { resultType: "input_required", inputRequests: { login: { method: "elicitation/create", params: VISIT } } };
    }
    if (visits++ > 0) return text("visited");
    throw { code: -32042, message: "Log in first.", data: { elicitations: [{ ...VISIT, elicitationId: "e1" }] } };
  },
  step: () => {
    if (running !== undefined) send({ method: "notifications/progress", params: { progressToken: running, progress: 1.5 } });
    return text("made a step");
  },
  slow: async ({ _meta }) => {
    const progressToken = (running = _meta?.progressToken);
    send({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    send({ id: "q1", method: "elicitation/create", params: { message: "Go on?", requestedSchema: { type: "object", properties: {} } } });
    await new Promise((resolve) => (answered = resolve));
    send({ method: "notifications/progress", params: { progressToken, progress: 2 } });
    return text("done");
  },
};
const answers = {
  initialize: ({ protocolVersion }) => {
    if (era === "--modern") throw { code: -32601, message: "no" };
    return { protocolVersion, capabilities, serverInfo: { name: "s", version: "1" } };
  },
  "server/discover": () => {
    if (era !== "--modern") throw { code: -32601, message: "no" };
    return { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "private" };
  },
  "tools/list": () => ({ tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: "object" } })), resultType: "complete", ttlMs: 0, cacheScope: "private" }),
  "prompts/list": () => ({ prompts: [{ name: "ask" }, { name: "wait" }], resultType: "complete", ttlMs: 0, cacheScope: "private" }),
  "resources/list": () => ({ resources: [{ uri: "mem://slow", name: "slow" }], resultType: "complete", ttlMs: 0, cacheScope: "private" }),
  "resources/templates/list": () => ({ resourceTemplates: [], resultType: "complete", ttlMs: 0, cacheScope: "private" }),
  "prompts/get": async (params) => {
    if (params.name === "wait") await TOOLS.slow(params);
    return { messages: [], resultType: "complete" };
  },
  "resources/read": async (params) => {
    await TOOLS.slow(params);
    return { contents: [{ uri: params.uri, text: "x" }] };
  },
  "tools/call": (params) => TOOLS[params.name](params),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const message = JSON.parse(line);
  const { id, method, params = {} } = message;
  appendFileSync(file, line + "\\n");
  if (method === undefined) return answered?.();
  if (method === "subscriptions/listen") {
    listening = id;
    return send({ method: "notifications/subscriptions/acknowledged", params: { notifications: params.notifications, _meta: { "io.modelcontextprotocol/subscriptionId": id } } });
  }
  if (id === undefined) return;
  try { send({ id, result: (await answers[method]?.(params)) ?? {} }); } catch (error) { send({ id, error }); }
}).on("close", () => process.exit());
`;

function server(...flags: string[]): { entry: ServerEntryInput; sent: (method: string) => JsonObject[] } {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-details-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "sent.jsonl");
  return {
    entry: { command: process.execPath, args: ["-e", SERVER, file, ...flags] },
    sent: (method) =>
      readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { method?: string; params: JsonObject })
        .filter((message) => message.method === method)
        .map(({ params }) => params),
  };
}

const ERAS = [
  { era: "legacy", flags: [] },
  { era: "modern", flags: ["--modern"] },
];

describe.each(ERAS)("before a $era server", ({ era, flags }) => {
  it("[whole-25a] prompts/get without arguments stays without, and with an empty object has one", async () => {
    const { entry, sent } = server(...flags);
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new LegacyClient(door);
    await client.initialize();
    await client.request("prompts/get", { name: "s__ask" });
    await client.request("prompts/get", { name: "s__ask", arguments: {} });
    const [without, empty] = sent("prompts/get");
    expect(without).not.toHaveProperty("arguments");
    expect(empty).toHaveProperty("arguments", {});
  });

  it("[whole-25b] an announced change reaches open streams, also where the list is as it was", async () => {
    const { entry } = server(...flags);
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new ModernClient(door);
    const other = new ModernClient(door);
    const end = new AbortController();
    const { signal } = end;
    const listening = [
      client.request("subscriptions/listen", { notifications: { toolsListChanged: true } }, { signal }),
      other.request("subscriptions/listen", { notifications: { promptsListChanged: true } }, { signal }),
    ];
    await eventually(() => client.noticed("notifications/subscriptions/acknowledged").length > 0);
    await client.request("tools/call", { name: "s__announce", arguments: {} });
    await eventually(() => client.noticed("notifications/tools/list_changed").length > 0);
    await eventually(() => other.noticed("notifications/prompts/list_changed").length > 0);
    expect(client.noticed("notifications/prompts/list_changed")).toEqual([]);
    expect(other.noticed("notifications/tools/list_changed")).toEqual([]);
    end.abort();
    await Promise.all(listening);
  });

  it("[whole-25c] a modern client visits an address and sends its request again", async () => {
    const { entry } = server(...flags);
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new ModernClient(door);
    const call = { name: "s__visit", arguments: {} };
    const capabilities = { elicitation: { url: {} } };
    const first = await client.request("tools/call", call, { capabilities });
    const asked = Object.entries((first?.result?.["inputRequests"] ?? {}) as JsonObject);
    expect(first?.result).toMatchObject({ resultType: "input_required" });
    expect(asked).toMatchObject([
      [expect.any(String), { method: "elicitation/create", params: { mode: "url", url: "https://login.example/x" } }],
    ]);
    const inputResponses = { [String(asked[0]?.[0])]: { action: "accept" } };
    const second = await client.request("tools/call", { ...call, inputResponses }, { capabilities });
    expect(second?.result).toMatchObject({ content: [{ text: expect.stringContaining("visited") }] });
  });

  it("[whole-25c] a legacy client gets the address with the id that its version requires", async () => {
    const { entry } = server(...flags);
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const asked: JsonObject[] = [];
    const serve = (_method: string, params: JsonObject): JsonObject => (asked.push(params), { action: "accept" });
    const client = new LegacyClient(door, { serve });
    await client.initialize({ elicitation: { url: {} } });
    const answer = await client.call("s__visit");
    if (era === "modern") {
      expect(asked).toMatchObject([{ mode: "url", url: "https://login.example/x", elicitationId: expect.any(String) }]);
      expect(answer.result).toMatchObject({ content: [{ text: expect.stringContaining("visited") }] });
    } else {
      expect(answer.error).toMatchObject({ code: -32042, data: { elicitations: [{ elicitationId: "e1" }] } });
    }
  });
});

describe("[whole-25c] a refusal until an address is visited", () => {
  it("stays one for a modern client that cannot visit, or does not want to", async () => {
    const { entry } = server();
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new ModernClient(door);
    const call = { name: "s__visit", arguments: {} };
    const inputResponses = { "url-1": { action: "decline" } };
    const capabilities = { elicitation: { url: {} } };
    const declined = await client.request("tools/call", { ...call, inputResponses }, { capabilities });
    expect(declined?.error).toMatchObject({ code: -32042 });
    const { door: second } = await doorOn({ mcpServers: { s: server().entry } }, { wait: true });
    const unable = await new ModernClient(second).request("tools/call", call);
    expect(unable?.error).toMatchObject({ code: -32042 });
  });
});

describe("[whole-33a] progress of a call that asks in between", () => {
  it("comes under the token of the request that waits for it", async () => {
    const { entry } = server();
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new ModernClient(door);
    const call = { name: "s__slow", arguments: {} };
    const capabilities = { elicitation: { form: {} } };
    const first = await client.request("tools/call", call, { capabilities, meta: { progressToken: "one" } });
    expect(client.noticed("notifications/progress")).toEqual([{ progressToken: "one", progress: 1 }]);
    const [name] = Object.keys(first?.result?.["inputRequests"] ?? {});
    const retry = {
      ...call,
      requestState: first?.result?.["requestState"],
      inputResponses: { [String(name)]: { action: "accept", content: {} } },
    };
    const second = await client.request("tools/call", retry, { capabilities, meta: { progressToken: "two" } });
    expect(second?.result).toMatchObject({ content: [{ text: "done" }] });
    expect(client.noticed("notifications/progress").slice(1)).toEqual([{ progressToken: "two", progress: 2 }]);
  });

  it.each([
    ["tools/call", { name: "s__slow", arguments: {} }],
    ["prompts/get", { name: "s__wait" }],
    ["resources/read", { uri: "mem://slow" }],
  ])("%s: none comes while no request waits, and none under the token of the first", async (method, params) => {
    const { entry, sent } = server();
    const { door } = await doorOn({ mcpServers: { s: entry } }, { wait: true });
    const client = new ModernClient(door);
    const capabilities = { elicitation: { form: {} } };
    const first = await client.request(method, params, { capabilities, meta: { progressToken: "one" } });
    const [name] = Object.keys(first?.result?.["inputRequests"] ?? {});
    // The server goes on meanwhile.
    await client.request("tools/call", { name: "s__step", arguments: {} });
    expect(client.noticed("notifications/progress")).toEqual([{ progressToken: "one", progress: 1 }]);
    const retry = {
      ...params,
      requestState: first?.result?.["requestState"],
      inputResponses: { [String(name)]: { action: "accept", content: {} } },
    };
    const second = await client.request(method, retry, { capabilities, meta: { progressToken: "two" } });
    expect(second?.result).toMatchObject({ resultType: "complete" });
    expect(client.noticed("notifications/progress").slice(1)).toEqual([{ progressToken: "two", progress: 2 }]);
    // Who wants no progress has the server send none.
    await client.request(method, params, { capabilities });
    const asked = sent(method).map(({ _meta }) => (_meta as JsonObject | undefined)?.["progressToken"] !== undefined);
    expect(asked).toContain(true);
    expect(asked.at(-1)).toBe(method === "tools/call");
  });
});

describe("[whole-23d] the extension for pages", () => {
  const UI = "io.modelcontextprotocol/ui";
  const KEY = "io.modelcontextprotocol/clientCapabilities";

  it("is offered to legacy servers, and to modern ones with the calls of clients that have it", async () => {
    const [legacy, modern] = [server(), server("--modern")];
    const { door } = await doorOn({ mcpServers: { old: legacy.entry, new: modern.entry } }, { wait: true });
    expect(legacy.sent("initialize")).toMatchObject([{ capabilities: { extensions: { [UI]: expect.anything() } } }]);
    const client = new ModernClient(door);
    const call = { name: "new__announce", arguments: {} };
    await client.request("tools/call", call, { capabilities: { extensions: { [UI]: { mimeTypes: ["a/b"] } } } });
    await client.request("tools/call", call);
    const offered = modern.sent("tools/call").map(({ _meta }) => (_meta as JsonObject)[KEY]);
    expect(offered).toEqual([{ extensions: { [UI]: { mimeTypes: ["a/b"] } } }, {}]);
  });
});
