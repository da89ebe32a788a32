import { describe, expect, it } from "vitest";
import { listBytes } from "../../../src/doors/mcp/shared-requests.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { everything, misbehaving } from "../../support/servers.ts";
import { doorOn, guest, LegacyClient, ModernClient } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

const text = (value: string) => ({ content: [{ type: "text", text: value }] });
const ANY = { type: "object" };

function registryWith(...tools: Parameters<ToolRegistry["register"]>[0][]): ToolRegistry {
  const registry = new ToolRegistry();
  for (const tool of tools) registry.register(tool);
  return registry;
}

function toolNames(result: JsonObject | undefined): string[] {
  const tools = result?.["tools"];
  return Array.isArray(tools) ? tools.map(({ name }: { name: string }) => name) : [];
}

const echo = {
  name: "echo",
  label: "Says it again",
  description: "Echo",
  parameters: ANY,
  execute: async (_id: string, params: JsonObject) => text(JSON.stringify(params)),
};

describe("[gate-02e] in-process tools", () => {
  it("are listed with their label as title and answer calls of both eras", async () => {
    const { door } = await doorOn({}, { registry: registryWith(echo) });
    const client = new LegacyClient(door);
    await client.initialize();
    const { result } = await client.request("tools/list");
    expect(result).toEqual({
      tools: [{ name: "echo", title: "Says it again", description: "Echo", inputSchema: ANY }],
    });
    expect((await client.call("echo", { a: 1 })).result).toEqual(text('{"a":1}'));
    const modern = new ModernClient(door);
    expect((await modern.request("tools/call", { name: "echo", arguments: { a: 2 } }))?.result).toEqual({
      resultType: "complete",
      ...text('{"a":2}'),
    });
  });

  it("[whole-07b] lists a tool of the program's own without a root union, and calls it as before", async () => {
    const find = {
      ...echo,
      name: "find",
      parameters: {
        oneOf: [
          { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
          { type: "object", properties: { email: { type: "string" } }, required: ["email"] },
        ],
      },
      execute: async (_id: string, params: object) => ({
        content: [{ type: "text" as const, text: JSON.stringify(params) }],
      }),
    };
    const { door } = await doorOn({}, { registry: registryWith(find) });
    const client = new LegacyClient(door);
    await client.initialize();
    const { result } = await client.request("tools/list");
    const text = { type: "string" };
    expect(result?.["tools"]).toMatchObject([
      { name: "find", inputSchema: { type: "object", properties: { id: text, email: text } } },
    ]);
    expect(JSON.stringify(result)).not.toContain("oneOf");
    const called = await client.request("tools/call", { name: "find", arguments: { email: "a@b.example" } });
    expect(JSON.stringify(called.result)).toContain("a@b.example");
    const wrong = await client.request("tools/call", { name: "find", arguments: {} });
    expect(JSON.stringify(wrong)).toMatch(/isError":true|error/);
  });

  it("report updates as progress under the client's own token, before the answer", async () => {
    const slow = {
      name: "slow",
      description: "",
      parameters: ANY,
      execute: async (_id: string, _params: JsonObject, _signal?: AbortSignal, onUpdate?: (update: object) => void) => {
        onUpdate?.(text("one"));
        onUpdate?.(text("two"));
        return text("done");
      },
    };
    const { door } = await doorOn({}, { registry: registryWith(slow as typeof echo) });
    const client = new LegacyClient(door);
    await client.initialize();
    await client.call("slow", {}, { progressToken: "tok" });
    expect(client.noticed("notifications/progress")).toEqual([
      { progressToken: "tok", progress: 1, message: "one" },
      { progressToken: "tok", progress: 2, message: "two" },
    ]);
    await client.call("slow");
    expect(client.noticed("notifications/progress")).toHaveLength(2);
  });

  it("get a client's cancellation as their AbortSignal, and give no answer then", async () => {
    const aborted: string[] = [];
    const started: string[] = [];
    const waits = {
      name: "waits",
      description: "",
      parameters: ANY,
      execute: (_id: string, { who }: JsonObject, signal?: AbortSignal) =>
        new Promise<never>(() => {
          started.push(String(who));
          signal?.addEventListener("abort", () => aborted.push(String(who)));
        }),
    };
    const { door } = await doorOn({}, { registry: registryWith(waits) });
    const client = new LegacyClient(door);
    await client.initialize();
    const { id, answer } = client.start("tools/call", { name: "waits", arguments: { who: "legacy" } });
    await eventually(() => started.includes("legacy"));
    expect(door.busy).toBe(1);
    client.session.notify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    expect(await answer).toBeNull();
    const controller = new AbortController();
    const modern = new ModernClient(door);
    const running = modern.request(
      "tools/call",
      { name: "waits", arguments: { who: "modern" } },
      { signal: controller.signal },
    );
    await eventually(() => started.includes("modern"));
    controller.abort();
    expect(await running).toBeNull();
    const other = new LegacyClient(door);
    await other.initialize();
    const gone = other.start("tools/call", { name: "waits", arguments: { who: "closed" } });
    await eventually(() => started.includes("closed"));
    other.session.close();
    expect(await gone.answer).toBeNull();
    expect(aborted).toEqual(["legacy", "modern", "closed"]);
    expect(door.busy).toBe(0);
    await door.whenIdle();
  });
});

describe("errors", () => {
  it("of the hub have the table's code, the hint in the message, and the error object as data", async () => {
    const { door } = await doorOn({ tools: { deny: ["echo"] } }, { registry: registryWith(echo) });
    const client = new LegacyClient(door);
    await client.initialize();
    const { error } = await client.call("echo");
    expect(error).toMatchObject({ code: -32010, data: { code: "denied", details: { rule: { list: "deny" } } } });
    expect(error?.message).toMatch(/Policy denies echo.*toolcrib policy explain echo/s);
    const stranger = new LegacyClient(door, { origin: { caller: guest("eve") } });
    await stranger.initialize();
    expect((await stranger.call("echo")).error).toMatchObject({ code: -32602, data: { code: "not_found" } });
  });

  it("name a missing resource as each era does", async () => {
    const { door } = await doorOn({});
    const client = new LegacyClient(door);
    await client.initialize();
    const legacy = await client.request("resources/read", { uri: "x://no" });
    expect(legacy.error).toMatchObject({ code: -32002, data: { uri: "x://no" } });
    const modern = await new ModernClient(door).request("resources/read", { uri: "x://no" });
    expect(modern?.error).toMatchObject({ code: -32602, data: { uri: "x://no" } });
  });

  it.each([
    ["tools/call", {}, -32602],
    ["tools/call", { name: "echo", arguments: [] }, -32602],
    ["prompts/get", { name: "p", arguments: { a: 1 } }, -32602],
    ["completion/complete", { ref: { type: "ref/else" }, argument: { name: "a", value: "b" } }, -32602],
    ["tools/list", { cursor: "x" }, -32602],
    ["logging/setLevel", { level: "loud" }, -32602],
    ["no/such", {}, -32601],
    ["server/discover", {}, -32601],
  ])("answer %s with %j by %d", async (method, params, code) => {
    const { door } = await doorOn({}, { registry: registryWith(echo) });
    const client = new LegacyClient(door);
    await client.initialize();
    expect((await client.request(method, params)).error?.code).toBe(code);
  });

  it("come for requests before initialize, a second initialize, and an id that is in use", async () => {
    const { door } = await doorOn({}, { registry: registryWith(echo) });
    const client = new LegacyClient(door);
    expect((await client.request("tools/list")).error?.code).toBe(-32600);
    expect((await client.request("ping")).result).toEqual({});
    await client.initialize();
    expect((await client.request("initialize", {})).error?.code).toBe(-32600);
    client.session.close();
    expect((await client.request("tools/list")).error?.code).toBe(-32600);
  });
});

describe("the handshake", () => {
  it("may be followed by more before it is answered", async () => {
    const registry = registryWith(echo);
    const { door } = await doorOn({ mcpServers: { e: everything() } }, { wait: false, registry });
    const client = new LegacyClient(door);
    const clientInfo = { name: "t", version: "1" };
    const handshake = client.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    client.session.notify({ jsonrpc: "2.0", method: "notifications/initialized" });
    const second = await client.request("initialize", {});
    expect((await handshake).result).toMatchObject({ protocolVersion: "2025-11-25" });
    expect(second.error?.code).toBe(-32600);
    await eventually(async () => toolNames((await client.request("tools/list")).result).includes("e__echo"));
    registry.register({ ...echo, name: "later" });
    await eventually(() => client.noticed("notifications/tools/list_changed")[0]);
  });

  it("[agent-02a] makes a session that is told of tools that it alone gets", async () => {
    const { hub, door } = await doorOn({});
    const [client, other] = [new LegacyClient(door), new LegacyClient(door)];
    await client.initialize();
    await other.initialize();
    const [session] = hub.internals.sessions().filter(({ door: name }) => name !== "library");
    session?.own.setTools("socket", [echo]);
    await eventually(() => client.noticed("notifications/tools/list_changed")[0]);
    expect(toolNames((await client.request("tools/list")).result)).toEqual(["echo"]);
    expect(other.notices).toEqual([]);
  });

  it("of a client that is gone leaves no session behind", async () => {
    const { door, hub } = await doorOn({ mcpServers: { e: everything() } }, { wait: false });
    const client = new LegacyClient(door);
    const handshake = client.request("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
    client.session.close();
    expect((await handshake).error?.code).toBe(-32600);
    expect(hub.internals.sessions()).toHaveLength(1);
  });
});

describe("versions", () => {
  it.each([
    ["2024-11-05", "2024-11-05"],
    ["2025-03-26", "2025-03-26"],
    ["2025-06-18", "2025-06-18"],
    ["2025-11-25", "2025-11-25"],
    ["1999-01-01", "2025-11-25"],
  ])("a client of %s is answered with %s", async (wanted, given) => {
    const { door } = await doorOn({});
    const client = new LegacyClient(door);
    expect(await client.initialize({}, wanted)).toMatchObject({ protocolVersion: given });
    expect(client.session.version).toBe(given);
  });

  it("of the modern era are told by server/discover", async () => {
    const { door } = await doorOn({});
    const answer = await new ModernClient(door).request("server/discover");
    expect(answer?.result).toMatchObject({
      resultType: "complete",
      supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "toolcrib" } },
    });
    for (const method of ["ping", "initialize", "logging/setLevel", "resources/subscribe"]) {
      expect((await new ModernClient(door).request(method))?.error?.code).toBe(-32601);
    }
  });
});

describe("[gate-05c] instructions", () => {
  it("of several servers stand under their names, those of an only server alone", async () => {
    const two = await doorOn({ mcpServers: { one: { ...everything(), name: "First" }, two: everything() } });
    const client = new LegacyClient(two.door);
    const { instructions } = await client.initialize();
    expect(instructions).toMatch(/^# First\n\n[^]+\n\n# two\n\n/);
    const narrowed = new LegacyClient(two.door, { origin: { scope: { servers: ["two"] } } });
    expect((await narrowed.initialize())["instructions"]).toMatch(/^# two\n\n/);
    const one = await doorOn({ mcpServers: { one: everything() } });
    const only = await new ModernClient(one.door).request("server/discover");
    expect(String(only?.result?.["instructions"])).toMatch(/^(?!# one)/);
  });
});

describe("[gate-02b] changed lists", () => {
  it("are told to clients whose list is another, in both eras, and to nobody else", async () => {
    const registry = registryWith(echo);
    const { door } = await doorOn({ roles: { quiet: { servers: [] } } }, { registry });
    const client = new LegacyClient(door);
    const silent = new LegacyClient(door, { origin: { scope: { role: "quiet" } } });
    const early = new LegacyClient(door);
    await client.initialize();
    await silent.initialize();
    await early.request("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
    const listener = new ModernClient(door);
    const controller = new AbortController();
    const listening = listener.request(
      "subscriptions/listen",
      { notifications: { toolsListChanged: true } },
      { signal: controller.signal },
    );
    await eventually(() => listener.noticed("notifications/subscriptions/acknowledged")[0]);
    const remove = registry.register({ ...echo, name: "second" });
    await eventually(() => client.noticed("notifications/tools/list_changed")[0]);
    const [told] = await eventually(
      () =>
        listener.noticed("notifications/tools/list_changed").length > 0 &&
        listener.noticed("notifications/tools/list_changed"),
    );
    expect(told).toEqual({ _meta: { "io.modelcontextprotocol/subscriptionId": 1 } });
    remove();
    await eventually(() => client.noticed("notifications/tools/list_changed").length === 2);
    expect(client.noticed("notifications/prompts/list_changed")).toEqual([]);
    expect(silent.notices).toEqual([]);
    expect(early.notices).toEqual([]);
    controller.abort();
    expect(await listening).toBeNull();
  });

  it("listen acknowledges what it will tell, and ends at once if that is nothing", async () => {
    const { door } = await doorOn({});
    const client = new ModernClient(door);
    const wanted = { notifications: { resourceSubscriptions: ["x://nobody-has-it"] } };
    const answer = await client.request("subscriptions/listen", wanted);
    expect(client.notices).toEqual([
      {
        method: "notifications/subscriptions/acknowledged",
        params: { notifications: {}, _meta: { "io.modelcontextprotocol/subscriptionId": 1 } },
      },
    ]);
    expect(answer?.result).toMatchObject({ resultType: "complete" });
    expect((await client.request("subscriptions/listen", {}))?.error?.code).toBe(-32602);
  });

  it("listen tells of nothing before it has acknowledged", async () => {
    const registry = registryWith(echo);
    const { door, hub } = await doorOn({ mcpServers: { e: everything() } }, { registry });
    const [resource] = hub.view(hub.session).resources;
    const client = new ModernClient(door);
    const controller = new AbortController();
    const wanted = { toolsListChanged: true, resourceSubscriptions: [resource?.name ?? ""] };
    const listening = client.request("subscriptions/listen", { notifications: wanted }, { signal: controller.signal });
    registry.register({ ...echo, name: "second" });
    await eventually(() => client.notices.length === 2);
    expect(client.notices.map(({ method }) => method)).toEqual([
      "notifications/subscriptions/acknowledged",
      "notifications/tools/list_changed",
    ]);
    controller.abort();
    await listening;
  });

  it("a door that closes ends its streams with an answer", async () => {
    const { door } = await doorOn({});
    const client = new ModernClient(door);
    const listening = client.request("subscriptions/listen", { notifications: { promptsListChanged: true } });
    await eventually(() => client.notices[0]);
    door.close();
    expect((await listening)?.result).toMatchObject({ resultType: "complete" });
  });
});

describe("[gate-05b] parts of the catalog", () => {
  it("are what ?servers= and ?tags= name, for lists and calls alike", async () => {
    const { door } = await doorOn(
      { mcpServers: { one: everything(), two: { ...everything(), tags: ["work"] } } },
      { registry: registryWith(echo) },
    );
    const namesOf = async (scope: JsonObject): Promise<Set<string>> => {
      const client = new LegacyClient(door, { origin: { scope } });
      await client.initialize();
      const { result } = await client.request("tools/list");
      const tools = result?.["tools"] as { name: string }[];
      return new Set(tools.map(({ name }) => name.split("__")[0] ?? ""));
    };
    expect(await namesOf({})).toEqual(new Set(["one", "two", "echo"]));
    expect(await namesOf({ servers: ["local", "one"] })).toEqual(new Set(["one", "echo"]));
    expect(await namesOf({ tags: ["work"] })).toEqual(new Set(["two"]));
    expect(await namesOf({ servers: ["local"] })).toEqual(new Set(["echo"]));
    const modern = new ModernClient(door, { caller: guest("a"), scope: { servers: ["one"] } });
    const call = { name: "two__echo", arguments: { message: "x" } };
    expect((await modern.request("tools/call", call))?.error?.code).toBe(-32602);
    expect(door.toolDefinition({ caller: guest("a"), scope: { servers: ["one"] } }, "two__echo")).toBeUndefined();
    expect(door.toolDefinition({ caller: guest("a"), scope: {} }, "two__echo")?.name).toBe("echo");
  });

  it("[whole-34a] are under the server's own names if they are one server", async () => {
    const { door, hub } = await doorOn(
      { mcpServers: { one: everything(), two: everything(), kept: { ...everything(), toolPrefix: "k_" } } },
      { registry: registryWith(echo) },
    );
    const called: string[] = [];
    hub.on("call", ({ name }) => void called.push(name));
    const listed = async (method: string, key: string, scope: JsonObject): Promise<string[]> => {
      const client = new LegacyClient(door, { origin: { scope } });
      await client.initialize();
      const { result } = await client.request(method);
      const list = (result?.[key] ?? []) as { name: string }[];
      return list.map(({ name }) => name);
    };
    const direct = hub.view(hub.session).tools.filter(({ origin }) => origin.source === "one");
    expect((await listed("tools/list", "tools", { servers: ["one"] })).toSorted()).toEqual(
      direct.map(({ origin }) => origin.name).toSorted(),
    );
    expect(await listed("prompts/list", "prompts", { servers: ["one"] })).toContain("simple-prompt");
    // A prefix that someone chose is kept, and so are public names of more than one server.
    expect(await listed("tools/list", "tools", { servers: ["kept"] })).toContain("k_echo");
    expect(await listed("tools/list", "tools", { servers: ["one", "two"] })).toContain("one__echo");

    const legacy = new LegacyClient(door, { origin: { scope: { servers: ["two"] } } });
    await legacy.initialize();
    for (const name of ["echo", "two__echo"]) {
      const { result } = await legacy.request("tools/call", { name, arguments: { message: "hi" } });
      expect(JSON.stringify(result)).toContain("hi");
    }
    const prompt = await legacy.request("prompts/get", { name: "args-prompt", arguments: { city: "Oslo" } });
    expect(JSON.stringify(prompt.result)).toContain("Oslo");
    const ref = { type: "ref/prompt", name: "completable-prompt" };
    const argument = { name: "department", value: "E" };
    const completed = await legacy.request("completion/complete", { ref, argument });
    expect(JSON.stringify(completed.result)).toContain("Engineering");
    const origin = { caller: guest("a"), scope: { servers: ["two"] } };
    const modern = new ModernClient(door, origin);
    const answer = await modern.request("tools/call", { name: "echo", arguments: { message: "hi" } });
    expect(JSON.stringify(answer?.result)).toContain("hi");
    expect(door.toolDefinition(origin, "echo")?.name).toBe("echo");
    // Rules and records are about public names.
    expect(called.filter((name) => name.endsWith("echo"))).toEqual(["two__echo", "two__echo", "two__echo"]);
  });
});

describe("[counter-04a] sessions of clients that name themselves in every request", () => {
  it("show the client that used them last, its process, and the conversation of its bridge", async () => {
    const { hub, door } = await doorOn({}, { registry: registryWith(echo) });
    const peer = { transport: "stdio", pid: 7, program: "claude", cwd: "/work" };
    const origin = { caller: guest("a"), scope: {}, peer, conversation: "bridge 1" };
    const modern = new ModernClient(door, origin);
    const named = (name: string) => ({ meta: { "io.modelcontextprotocol/clientInfo": { name, version: "1" } } });
    await modern.request("server/discover", {}, named("claude-code"));
    const [session] = hub.internals.sessions().filter(({ user }) => user === "a");
    expect(session).toMatchObject({
      clientInfo: { name: "claude-code", version: "1", ...peer },
      conversation: "bridge 1",
    });
    await modern.request("tools/list", {}, named("inspector"));
    expect(session?.clientInfo).toMatchObject({ name: "inspector", ...peer });
    // A request without a name changes nothing.
    await modern.request("tools/list");
    expect(session?.clientInfo?.name).toBe("inspector");
  });

  it("have the process that the system finds, and those of streams have the client too", async () => {
    const { hub, door } = await doorOn({}, { registry: registryWith(echo) });
    let looked = 0;
    const locate = async () => ({ pid: 8, program: `node ${++looked}` });
    const modern = new ModernClient(door, { caller: guest("a"), peer: { transport: "http" }, locate });
    const ended = new AbortController();
    const options = { meta: { "io.modelcontextprotocol/clientInfo": { name: "one" } } };
    await modern.request("tools/list", {}, options);
    const listening = modern.request(
      "subscriptions/listen",
      { notifications: { toolsListChanged: true } },
      { ...options, signal: ended.signal },
    );
    await eventually(
      () => hub.internals.sessions().filter(({ clientInfo }) => clientInfo?.name === "one").length === 2,
    );
    const shown = { name: "one", transport: "http", pid: 8, program: "node 1" };
    const ours = hub.internals.sessions().filter(({ user }) => user === "a");
    expect(ours.map(({ clientInfo }) => clientInfo)).toEqual([shown, shown]);
    ended.abort();
    await listening;
  });
});

describe("[whole-30a] names for a client that puts its own before them", () => {
  const LONG = `read_${"x".repeat(55)}`;
  const opened = async () =>
    doorOn(
      { mcpServers: { one: everything(), ["server-with-a-name-of-some-length"]: everything() } },
      { registry: registryWith({ ...echo, name: LONG }, { ...echo, name: `${LONG}y` }) },
    );
  const listed = async (client: LegacyClient): Promise<string[]> => {
    const { result } = await client.request("tools/list");
    const tools = (result?.["tools"] ?? []) as { name: string }[];
    return tools.map(({ name }) => name);
  };

  it.each([
    ["opencode", "toolcrib_"],
    ["kilo", "toolcrib_"],
    ["goose-cli", "toolcrib__"],
    ["claude-code", "mcp__toolcrib__"],
    ["codex-mcp-client", "mcp__toolcrib__"],
    ["gemini-cli-mcp-client", "mcp_toolcrib_"],
    ["qwen-code", "mcp__toolcrib__"],
    ["github-copilot-developer", "toolcrib-"],
    ["openclaw-bundle-mcp", "toolcrib__"],
    ["pi-mcp-toolcrib", "toolcrib_"],
    ["grok-shell", "toolcrib__"],
  ])("%s: at most 64 characters in all, each name is a tool, and short ones stay", async (client, prefix) => {
    const { door, hub } = await opened();
    const legacy = new LegacyClient(door);
    await legacy.initialize({}, undefined, client);
    const names = await listed(legacy);
    expect(names).toHaveLength(hub.view(hub.session).tools.length);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => `${prefix}${name}`.length > 64)).toEqual([]);
    const short = client.startsWith("grok") ? "one-echo" : "one__echo";
    expect(names).toContain(short);
    const called: string[] = [];
    hub.on("call", ({ name }) => void called.push(name));
    const long = names.filter((name) => name.startsWith("read_"));
    expect(long).toHaveLength(2);
    for (const name of [short, ...long, LONG]) {
      const { result } = await legacy.request("tools/call", { name, arguments: { message: "hi" } });
      expect(result, name).toBeDefined();
    }
    // Rules and records are about public names.
    expect(called.toSorted()).toEqual(["one__echo", LONG, LONG, `${LONG}y`].toSorted());
  });

  it("Grok gets no second `__`, in both eras", async () => {
    const { door } = await opened();
    const legacy = new LegacyClient(door);
    await legacy.initialize({}, undefined, "grok");
    expect((await listed(legacy)).filter((name) => name.includes("__"))).toEqual([]);
    const modern = new ModernClient(door);
    const meta = { "io.modelcontextprotocol/clientInfo": { name: "grok", version: "1" } };
    const answer = await modern.request("tools/list", {}, { meta });
    expect(JSON.stringify(answer?.result)).not.toContain('"name":"one__');
    const call = { name: "one-echo", arguments: { message: "hi" } };
    expect(JSON.stringify((await modern.request("tools/call", call, { meta }))?.result)).toContain("hi");
  });

  it("others see public names", async () => {
    const { door, hub } = await opened();
    const legacy = new LegacyClient(door);
    await legacy.initialize();
    expect(await listed(legacy)).toEqual(hub.view(hub.session).tools.map(({ name }) => name));
  });

  it("of one server alone have room for its id", async () => {
    const { door } = await opened();
    const legacy = new LegacyClient(door, { origin: { scope: { servers: ["server-with-a-name-of-some-length"] } } });
    await legacy.initialize({}, undefined, "claude-code");
    const names = await listed(legacy);
    expect(names).toContain("echo");
    expect(names.filter((name) => `mcp__server-with-a-name-of-some-length__${name}`.length > 64)).toEqual([]);
  });
});

describe("[gate-13a] lists", () => {
  it("are encoded once for each version and view", async () => {
    const registry = registryWith(echo);
    const { door, hub } = await doorOn({ roles: { all: {} } }, { registry });
    const [first, second] = [new LegacyClient(door), new LegacyClient(door)];
    await first.initialize();
    await second.initialize();
    const bytes = listBytes(hub.internals.offered(hub.session));
    const encoded = await first.session.request(
      { jsonrpc: "2.0", id: 9, method: "tools/list", params: {} },
      { send: () => {} },
    );
    expect(encoded?.some((part) => part === bytes)).toBe(true);
    expect(listBytes(hub.internals.offered(hub.session))).toBe(bytes);
    registry.register({ ...echo, name: "more" });
    await eventually(() => hub.view(hub.session).tools.length === 2);
    expect(listBytes(hub.internals.offered(hub.session))).not.toBe(bytes);
  });
});

describe("[gate-14a] a thousand sessions", () => {
  it("share one view of the catalog", async () => {
    const { door, hub } = await doorOn({ mcpServers: { one: everything() } });
    const clients = Array.from({ length: 1000 }, () => new LegacyClient(door));
    await Promise.all(clients.map((client) => client.initialize()));
    const views = new Set(hub.internals.sessions().map((session) => hub.view(session)));
    expect(hub.internals.sessions().length).toBeGreaterThanOrEqual(1000);
    expect(views.size).toBe(1);
    for (const client of clients) client.session.close();
    expect(hub.internals.sessions().length).toBeLessThan(10);
  });
});

describe("[gate-11b] a server that dies or hangs", () => {
  it("fails its own calls only", async () => {
    const { door } = await doorOn({
      mcpServers: { good: everything(), bad: { ...misbehaving("ok"), restart: false } },
    });
    const client = new LegacyClient(door);
    await client.initialize();
    const { result } = await client.request("tools/list");
    const tools = toolNames(result);
    expect(tools).toContain("bad__exit");
    const [broken, ...sound] = await Promise.all([
      client.call("bad__exit", {}),
      ...Array.from({ length: 5 }, (_, index) => client.call("good__echo", { message: `m${index}` })),
    ]);
    expect(broken?.error).toMatchObject({ data: { code: "server_unavailable" } });
    expect(sound.map(({ result: own }) => JSON.stringify(own)).every((own, i) => own.includes(`Echo: m${i}`))).toBe(
      true,
    );
  });
});
