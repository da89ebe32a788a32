import { describe, expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { HttpChannel } from "./channels.ts";
import { ERAS } from "./doors.ts";
import { type Gateway, type GatewayOptions, openGateway } from "./gateway.ts";
import { listIn, RawClient, resultOf } from "./raw-client.ts";
import { everyFieldStdio, everyFieldUpstream } from "./upstreams.ts";
import { eventually } from "../support/eventually.ts";

const MIB = 1024 * 1024;

async function gatewayOn(config: Parameters<typeof openGateway>[0], options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await openGateway(config, options);
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

interface Connected {
  readonly client: RawClient;
  readonly channel: HttpChannel;
}

describe.each(ERAS)("a %s client", (era) => {
  async function connect(gateway: Gateway, headers: Record<string, string> = {}): Promise<Connected> {
    const channel = new HttpChannel(`${gateway.url}/mcp`, headers);
    const client = await RawClient.open(channel, era);
    onTestFinished(() => client.close());
    return { client, channel };
  }

  async function names(client: RawClient): Promise<string[]> {
    return listIn(await client.request("tools/list"), "tools").map(({ name }) => String(name));
  }

  const pidOf = async (client: RawClient, server: string): Promise<number> => {
    const result = resultOf(await client.call(`${server}__report`));
    return Number((result["structuredContent"] as JsonObject)["pid"]);
  };

  it("[gate-06a] keeps the tools of a server that is gone, which say so when called", async () => {
    const gateway = await gatewayOn({ mcpServers: { every: { ...everyFieldStdio("legacy"), restart: false } } });
    const { client } = await connect(gateway);
    const before = await names(client);
    process.kill(await pidOf(client, "every"), "SIGKILL");
    await eventually(() => gateway.hub.servers.list()[0]?.status !== "connected");
    expect(await names(client)).toEqual(before);
    const { error } = await client.call("every__echo");
    expect(error).toMatchObject({ code: -32013, data: { code: "server_unavailable" } });
    expect(client.noticed("notifications/tools/list_changed")).toEqual([]);
  });

  it("[gate-06a] loses them when the grace period is over, and is told", async () => {
    const gateway = await gatewayOn({
      mcpServers: { every: { ...everyFieldStdio("legacy"), restart: false } },
      limits: { graceMs: 200 },
    });
    const { client } = await connect(gateway);
    if (era === "modern") {
      client.start("subscriptions/listen", { notifications: { toolsListChanged: true } });
      await eventually(() => client.noticed("notifications/subscriptions/acknowledged").length > 0);
    }
    process.kill(await pidOf(client, "every"), "SIGKILL");
    await eventually(() => client.noticed("notifications/tools/list_changed").length > 0);
    expect(await names(client)).toEqual([]);
    expect((await client.call("every__echo")).error).toMatchObject({ data: { code: "server_unavailable" } });
  });

  it("[gate-06b] reads a result of 12 MiB where the short answer says, and nobody else can", async () => {
    await using upstream = await everyFieldUpstream("http");
    const tokens = ["token-of-ada-0123456789", "token-of-bob-0123456789"];
    const gateway = await gatewayOn({
      mcpServers: { every: upstream.entry },
      http: { auth: { tokens: tokens.map((token, index) => ({ token, user: `user${index}` })) } },
    });
    const connected = await Promise.all(tokens.map((token) => connect(gateway, { authorization: `Bearer ${token}` })));
    const [ada, bob] = connected.map(({ client }) => client);
    if (ada === undefined || bob === undefined) throw new Error("both connect");
    const answer = await ada.call("every__big", { bytes: 12 * MIB });
    const link = listIn(answer, "content").find(({ type }) => type === "resource_link");
    expect(JSON.stringify(answer).length).toBeLessThan(100_000);
    const uri = String(link?.["uri"]);
    const [content] = listIn(await ada.request("resources/read", { uri }), "contents");
    expect(content?.["uri"]).toBe(uri);
    // Fields that only JSON can hold are kept as well.
    const kept = JSON.parse(String(content?.["text"])) as { content: { text: string }[]; "x-unknown": number };
    expect(kept.content[0]?.text.length).toBe(12 * MIB);
    expect(kept["x-unknown"]).toBe(1);
    const stolen = await bob.request("resources/read", { uri });
    expect(stolen.error).toMatchObject({ code: era === "modern" ? -32602 : -32002, data: { uri } });
    // Below the limit nothing is kept back.
    const whole = await ada.call("every__big", { bytes: 9 * MIB });
    expect(whole.result).toMatchObject({ "x-unknown": 1, content: [{ type: "text" }] });
  });

  it("[gate-06c] finds and calls tools that the list leaves out", async () => {
    await using upstream = await everyFieldUpstream("http");
    const gateway = await gatewayOn({ mcpServers: { every: upstream.entry }, tools: { max: 6 } });
    const { client } = await connect(gateway);
    const listed = await names(client);
    expect(listed).toEqual(expect.arrayContaining(["toolcrib_search", "toolcrib_describe", "toolcrib_call"]));
    expect(listed.length).toBeLessThanOrEqual(9);
    const found = await client.call("toolcrib_search", { query: "progress" });
    expect(JSON.stringify(found.result)).toContain("every__progress");
    const answer = await client.call(
      "toolcrib_call",
      { name: "every__progress", arguments: {} },
      { progressToken: "p" },
    );
    expect(JSON.stringify(answer.result)).toContain("progressed");
    expect(client.noticed("notifications/progress")).toHaveLength(3);
    expect(client.noticed("notifications/progress")[1]).toMatchObject({
      progressToken: "p",
      "x-progress": { deep: [1] },
    });
    const refused = await client.call("toolcrib_call", {
      name: "every__refuse",
      arguments: { code: 77, message: "m" },
    });
    expect(refused.result).toMatchObject({
      isError: true,
      structuredContent: { error: { details: { rpc: { code: 77, message: "m" } } } },
    });
  });

  it("[gate-06c] [gate-10a] is asked and hears log messages while it calls a tool that the list leaves out", async () => {
    await using upstream = await everyFieldUpstream("http", era);
    const gateway = await gatewayOn({ mcpServers: { every: upstream.entry }, tools: { max: 6, ask: ["every__log"] } });
    const options = {
      capabilities: { elicitation: {} },
      serve: () => ({ action: "accept", content: { answer: "once" } }),
    };
    const client = await RawClient.open(new HttpChannel(`${gateway.url}/mcp`), era, options);
    onTestFinished(() => client.close());
    const { result } = await client.complete("tools/call", {
      name: "toolcrib_call",
      arguments: { name: "every__log", arguments: {} },
      ...(era === "modern" ? { _meta: { "io.modelcontextprotocol/logLevel": "error" } } : {}),
    });
    expect(JSON.stringify(result)).toContain("logged");
    expect(client.asked.map(({ method }) => method)).toEqual(["elicitation/create"]);
    expect(client.noticed("notifications/message").at(-1)).toMatchObject({ level: "emergency", "x-log": "emergency" });
  });

  it("[gate-11b] loses only the calls of a server that is killed, and has it back", async () => {
    const restart = { initialDelay: 10 };
    const gateway = await gatewayOn({
      mcpServers: { bad: { ...everyFieldStdio("legacy"), restart }, good: everyFieldStdio("legacy") },
    });
    const { client } = await connect(gateway);
    const pid = await pidOf(client, "bad");
    const waiting = ["bad", "good"].map((server) =>
      client.start("tools/call", { name: `${server}__wait`, arguments: { tag: server } }),
    );
    // One of them is cut by us.
    for (const { answer } of waiting) answer.catch(() => {});
    await eventually(() => gateway.door.busy === 2);
    process.kill(pid, "SIGKILL");
    expect((await waiting[0]?.answer)?.error).toMatchObject({ data: { code: "server_unavailable" } });
    expect(gateway.door.busy).toBe(1);
    expect((await client.call("good__echo")).error).toBeUndefined();
    await eventually(async () => (await client.call("bad__echo")).error === undefined);
    if (waiting[1] !== undefined) await client.cancel(waiting[1].id);
    await eventually(() => gateway.door.busy === 0);
  });

  it("[gate-11b] waits for a server that hangs no longer than it may, and cancels the call", async () => {
    await using upstream = await everyFieldUpstream("http");
    const gateway = await gatewayOn({ mcpServers: { every: { ...upstream.entry, toolTimeout: 200 } } });
    const { client } = await connect(gateway);
    const { error } = await client.call("every__wait", { tag: "hung" });
    expect(error).toMatchObject({ code: -32014, data: { code: "timeout" } });
    await eventually(() => upstream.fixture?.server.seen.cancelled.includes("hung"));
  });

  it.each(ERAS)("[gate-11c] that vanishes without a word cancels its calls at a %s server", async (serverEra) => {
    await using upstream = await everyFieldUpstream("http", serverEra);
    // A legacy client gets a moment to take its stream up again.
    const gateway = await gatewayOn({ mcpServers: { every: upstream.entry } }, { mcp: { resumeGraceMs: 100 } });
    const { client, channel } = await connect(gateway);
    client.start("tools/call", { name: "every__wait", arguments: { tag: "gone" } }).answer.catch(() => {});
    await eventually(() => upstream.fixture?.server.seen.started.includes("gone"));
    channel.vanish();
    await eventually(() => upstream.fixture?.server.seen.cancelled.includes("gone"));
    await eventually(() => gateway.door.busy === 0);
    expect(upstream.fixture?.server.seen.cancelled).toEqual(["gone"]);
  });
});
