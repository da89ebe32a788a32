import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { Era } from "../../src/model/protocol.ts";
import { channelTo, CLIENTS, type Door, ERAS } from "./doors.ts";
import { type Gateway, openGateway } from "./gateway.ts";
import { type ClientOptions, RawClient } from "./raw-client.ts";
import { comparable } from "./transcript.ts";
import { everyFieldUpstream, type Transport, type Upstream } from "./upstreams.ts";
import { eventually } from "../support/eventually.ts";

const CAPABILITIES = {
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
};

const sample = {
  method: "sampling/createMessage",
  params: {
    messages: [{ role: "user", content: { type: "text", text: "hello", "x-c": 1 }, "x-m": [1] }],
    maxTokens: 10,
    modelPreferences: { hints: [{ name: "m" }], costPriority: 0.1, "x-p": 1 },
    systemPrompt: "be brief",
    includeContext: "none",
    temperature: 0.5,
    stopSequences: ["\n"],
    metadata: { any: null },
    tools: [{ name: "t", inputSchema: { type: "object" } }],
    toolChoice: { mode: "auto" },
    _meta: { s: 1 },
    "x-unknown": {},
  },
};
const form = {
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "who?",
    requestedSchema: {
      type: "object",
      properties: {
        name: { type: "string", title: "Name", default: "x", "x-f": 1 },
        e: { type: "string", enum: ["a"], enumNames: ["A"] },
      },
      required: ["name"],
    },
    "x-unknown": 1,
  },
};
const url = {
  method: "elicitation/create",
  params: { mode: "url", message: "go", url: "https://example.com/go", elicitationId: "e1", "x-unknown": [1] },
};
const roots = { method: "roots/list" };

const ANSWERS: Record<string, JsonObject> = {
  "sampling/createMessage": {
    role: "assistant",
    model: "m",
    stopReason: "endTurn",
    content: { type: "text", text: "hi", "x-c": 1 },
    "x-unknown": 1,
  },
  "elicitation/create": { action: "accept", content: { name: "Ada", n: 1, list: ["a"] }, "x-unknown": { a: null } },
  "roots/list": { roots: [{ uri: "file:///a", name: "a", _meta: { r: 1 }, "x-root": 1 }], "x-unknown": 1 },
};
const answering: ClientOptions = { capabilities: CAPABILITIES, serve: (method) => ANSWERS[method] ?? {} };

const MESSAGE = "notifications/message";

describe.each(
  (["stdio", "http"] as const satisfies Transport[]).flatMap((transport) => ERAS.map((era) => ({ transport, era }))),
)("a $era server over $transport", ({ transport, era: serverEra }) => {
  let upstream: Upstream;
  let gateway: Gateway;

  beforeAll(async () => {
    upstream = await everyFieldUpstream(transport, serverEra);
    gateway = await openGateway({
      mcpServers: { every: { ...upstream.entry, toolPrefix: "" } },
      limits: { callsPerMinute: 1_000_000 },
    });
  });

  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  /** What the server has noticed. */
  async function seen(): Promise<Record<string, string[]>> {
    const outcome = await gateway.hub.call({ name: "report" });
    return (outcome.ok ? outcome.result["structuredContent"] : {}) as Record<string, string[]>;
  }

  describe.each(CLIENTS)("and a $era client at the $door door", ({ era, door }) => {
    const open: RawClient[] = [];
    const connect = async (options: ClientOptions = {}): Promise<RawClient> => {
      const client = await RawClient.open(channelTo(gateway, door), era, options);
      open.push(client);
      return client;
    };
    const closeAll = async (): Promise<void> => {
      for (const client of open.splice(0)) await client.close();
    };
    afterAll(closeAll);

    it("[gate-02a] the server asks for samples, forms, addresses and roots, several at once and in turn", async () => {
      const client = await connect(answering);
      const rounds = [{ s: sample, f: form }, { u: url }, { r: roots }];
      const { result, error } = await client.complete("tools/call", { name: "ask", arguments: { rounds } });
      expect(error).toBeUndefined();
      const asked = client.asked.map(({ method, params }) => ({
        method,
        ...(params === undefined || Object.keys(params).length === 0 ? {} : { params }),
      }));
      expect(comparable(asked)).toBe(comparable([sample, form, url, roots]));
      const answer = (method: string): unknown => ANSWERS[method];
      expect(comparable(result?.["structuredContent"])).toBe(
        comparable({
          answers: [
            { s: answer(sample.method), f: answer(form.method) },
            { u: answer(url.method) },
            { r: answer(roots.method) },
          ],
        }),
      );
      await closeAll();
    });

    it("[gate-02a] a client that cannot answer is not asked, and the call ends", async () => {
      const client = await connect();
      const answer = await client.request("tools/call", { name: "ask", arguments: { rounds: [{ s: sample }] } });
      expect(client.asked).toEqual([]);
      if (serverEra === "legacy") {
        expect(answer.result?.["structuredContent"]).toMatchObject({ answers: [{ s: { refused: { code: -32601 } } }] });
      } else if (era === "modern") {
        // What this server asks is carried as it is; it could have known that the client cannot answer.
        expect(answer.result).toMatchObject({ resultType: "input_required" });
      } else {
        expect(JSON.stringify(answer.error)).toContain(sample.method);
      }
      await closeAll();
    });

    it("[gate-02b] changed lists are told, and only those that changed", async () => {
      const client = await connect();
      if (era === "modern") {
        const wanted = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        client.start("subscriptions/listen", { notifications: wanted });
        await eventually(() => client.noticed("notifications/subscriptions/acknowledged").length > 0);
      }
      for (const kind of ["tools", "prompts", "resources"]) {
        const changed = `notifications/${kind}/list_changed`;
        for (const isThere of [true, false]) {
          client.notices.length = 0;
          await client.call("change", { list: kind });
          await eventually(() => client.noticed(changed).length > 0);
          expect(client.notices.map(({ method }) => method)).toEqual([changed]);
          const { result } = await client.request(`${kind}/list`);
          expect(JSON.stringify(result).includes('"name":"optional"')).toBe(isThere);
        }
      }
      await closeAll();
    });

    it("[gate-02b] a followed resource's updates come, and it is unfollowed when the client goes", async () => {
      const client = await connect();
      const uri = `every://files/${door}-${era}`;
      if (era === "legacy") expect((await client.request("resources/subscribe", { uri })).error).toBeUndefined();
      else {
        client.start("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } });
        const acknowledged = await eventually(() => client.noticed("notifications/subscriptions/acknowledged")[0]);
        expect(acknowledged["notifications"]).toEqual({ resourceSubscriptions: [uri] });
      }
      await eventually(async () => (await seen())["subscribed"]?.includes(uri));
      await client.call("touch", { uri: "every://files/another" });
      await client.call("touch", { uri });
      const updated = await eventually(() => client.noticed("notifications/resources/updated")[0]);
      expect(updated).toMatchObject({ uri, title: "touched", "x-update": [1], _meta: { u: 1 } });
      expect(client.noticed("notifications/resources/updated")).toHaveLength(1);
      await client.close();
      await eventually(async () => (await seen())["unsubscribed"]?.includes(uri));
    });

    it("[gate-02c] log messages come as loud as each client wants them", async () => {
      const [loud, quiet] = [await connect(), await connect()];
      const levelsOf = async (client: RawClient, level: string | undefined): Promise<unknown[]> => {
        client.notices.length = 0;
        const meta =
          era === "modern" && level !== undefined ? { "io.modelcontextprotocol/logLevel": level } : undefined;
        await client.call("log", {}, meta);
        if (level !== undefined)
          await eventually(() => client.noticed(MESSAGE).some((message) => message?.["level"] === "emergency"));
        return client.noticed(MESSAGE).map((message) => message?.["level"]);
      };
      if (era === "legacy") {
        for (const [client, level] of [
          [loud, "debug"],
          [quiet, "alert"],
        ] as const) {
          expect((await client.request("logging/setLevel", { level })).error).toBeUndefined();
        }
        await eventually(async () => serverEra === "modern" || (await seen())["levels"]?.at(-1) === "debug");
      } else {
        await levelsOf(loud, "debug");
        expect(await levelsOf(loud, undefined)).toEqual([]);
      }
      expect(await levelsOf(quiet, "alert")).toEqual(["alert", "emergency"]);
      expect(await levelsOf(loud, "debug")).toEqual([
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
      ]);
      await closeAll();
    });

    it("[gate-02c] [gate-11c] a cancelled call is cancelled at the server, and so is one whose client goes away", async () => {
      const client = await connect();
      const tag = (what: string): string => `${what} ${era} ${door}`;
      const begun = async (what: string): Promise<number> => {
        const { id, answer } = client.start("tools/call", { name: "wait", arguments: { tag: tag(what) } });
        // A request that is cut by us is no failure.
        answer.catch(() => {});
        await eventually(async () => (await seen())["started"]?.includes(tag(what)));
        return id;
      };
      await client.cancel(await begun("cancelled"));
      await eventually(async () => (await seen())["cancelled"]?.includes(tag("cancelled")));
      await begun("gone");
      await client.close();
      await eventually(async () => (await seen())["cancelled"]?.includes(tag("gone")));
      expect(gateway.door.busy).toBe(0);
    });
  });
});

describe("[gate-02a] what a legacy client answers with an error", () => {
  const refusal = { code: -1, message: "User rejected sampling request", data: { why: [null] } };
  const refusing: ClientOptions = { capabilities: CAPABILITIES, serve: () => Promise.reject(refusal) };

  it.each<{ door: Door; transport: Transport }>([
    { door: "http", transport: "http" },
    { door: "stdio", transport: "stdio" },
  ])("reaches a legacy server over $transport with code, message and data", async ({ door, transport }) => {
    await using upstream = await everyFieldUpstream(transport, "legacy");
    await using gateway = await openGateway({ mcpServers: { every: upstream.entry } });
    const client = await RawClient.open(channelTo(gateway, door), "legacy" satisfies Era, refusing);
    const { result } = await client.call("every__ask", { rounds: [{ s: sample }] });
    expect(result?.["structuredContent"]).toEqual({ answers: [{ s: { refused: refusal } }] });
    await client.close();
  });
});
