import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { McpToolDetails } from "../../../src/hub/view/agent-tools.ts";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { loadMCPServers } from "../../../src/hub/create/load-mcp-servers.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { Outcome } from "../../../src/model/errors.ts";
import type { CallToolResult } from "../../../src/model/protocol.ts";
import { ToolInputError, type Tool } from "../../../src/model/tool.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { filesystem, memory, misbehaving } from "../../support/servers.ts";

const STAND_INS = ["toolcrib_search", "toolcrib_describe", "toolcrib_call"];

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

function tool(name: string, description: string, more: Partial<Tool> = {}): Tool {
  return { name, description, parameters: { type: "object" }, execute: async () => text(`${name} ran`), ...more };
}

/** More tools than the `max` of 6 that the tests set. */
const MANY: readonly Tool[] = [
  tool("read_file", "Read a file from disk.\nHas a second line."),
  tool("write_file", "Write a file to disk. Overwrites what is there."),
  tool("send_mail", "Send an email to somebody."),
  tool("weather", "Tell the weather of a city.", {
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "Which city." } },
      required: ["city"],
    },
    execute: async (_id, params) => ({ ...text(`Sunny in ${String(params["city"])}.`), details: { celsius: 21 } }),
  }),
  tool("create_event", "Put a meeting into the calendar."),
  tool("refuse", "Always refuses.", {
    execute: async () => {
      throw new ToolInputError("not like this");
    },
  }),
  tool("fail", "Always fails.", {
    execute: async () => {
      throw new Error("disk full");
    },
  }),
];

let hub: Hub;
const folders: string[] = [];
afterEach(async () => {
  await hub?.close();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "toolcrib-offer-"));
  folders.push(made);
  return made;
}

async function hubWith(config: ConfigInput, tools: readonly Tool[] = MANY, options: HubOptions = {}): Promise<Hub> {
  const registry = new ToolRegistry();
  for (const each of tools) registry.register(each);
  hub = await createHub(config, { registry, ...options });
  return hub;
}

const names = (tools: readonly { name: string }[]): string[] => tools.map((one) => one.name);

const firstText = (outcome: Outcome<CallToolResult>): string => String(outcome.result?.content[0]?.["text"]);

const search = (query: string, session = hub.session): Promise<Outcome<CallToolResult>> =>
  hub.call({ session, name: "toolcrib_search", arguments: { query } });

const callThrough = (name: string, args: object = {}, session = hub.session): Promise<Outcome<CallToolResult>> =>
  hub.call({ session, name: "toolcrib_call", arguments: { name, arguments: args } });

describe("[guard-05b] what is offered", () => {
  it("is everything without tools.max, and the search tools do not exist then", async () => {
    await hubWith({});
    expect(names(hub.internals.offered(hub.session))).toEqual(names(MANY));
    expect(await search("file")).toMatchObject({ ok: false, error: { code: "not_found" } });
  });

  it("is everything up to tools.max; the search tools can be called but are not offered", async () => {
    await hubWith({ tools: { max: MANY.length } });
    expect(hub.internals.offered(hub.session)).toBe(hub.view(hub.session).tools);
    expect(await search("file")).toMatchObject({ ok: true });
  });

  it("is tools.max tools above it, three of them the search tools; the view stays whole and all stay callable", async () => {
    await hubWith({ tools: { max: 6 } });
    expect(names(hub.internals.offered(hub.session))).toEqual(["read_file", "write_file", "send_mail", ...STAND_INS]);
    expect(names(hub.tools())).toEqual(names(hub.internals.offered(hub.session)));
    expect(names(hub.view(hub.session).tools)).toEqual(names(MANY));
    expect(await hub.call({ name: "create_event" })).toMatchObject({ ok: true });
  });

  it("is what fits a query best, then the usual choice, in the catalog's order", async () => {
    await hubWith({ tools: { max: 6 } });
    const offered = hub.internals.offered(hub.session, { query: "put a meeting into my calendar" });
    expect(names(offered)).toEqual(["read_file", "write_file", "create_event", ...STAND_INS]);
    expect(names(hub.tools({ query: "what is the weather like" }))).toContain("weather");
  });

  it("is the same list until something changes", async () => {
    await hubWith({ tools: { max: 6 } });
    const offered = hub.internals.offered(hub.session);
    expect(hub.internals.offered(hub.session)).toBe(offered);
    hub.registry.register(tool("late", "Comes late."));
    expect(names(hub.internals.offered(hub.session))).toEqual(names(offered));
    hub.registry.unregister("read_file");
    expect(names(hub.internals.offered(hub.session))).toEqual(["write_file", "send_mail", "weather", ...STAND_INS]);
  });

  it("takes in-process tools first, then one of each server in turn", async () => {
    const dir = await folder();
    const mcpServers = { files: filesystem(dir), memory: memory(join(dir, "m.json")), demo: misbehaving("ok") };
    await hubWith({ mcpServers, tools: { max: 10 } }, [tool("own", "My own.")]);
    const sources = hub.internals.offered(hub.session).map((one: ToolCapability) => one.origin.source);
    const count = (source: string): number => sources.filter((one) => one === source).length;
    expect(sources).toHaveLength(10);
    expect([count("local"), count("files"), count("memory"), count("demo")]).toEqual([1, 2, 2, 2]);
  });

  it("leaves at least the search tools, however small tools.max is", async () => {
    await hubWith({ tools: { max: 1 } });
    expect(names(hub.internals.offered(hub.session))).toEqual(STAND_INS);
  });

  it("reaches a registry that loadMCPServers keeps", async () => {
    const dir = await folder();
    const registry = new ToolRegistry();
    const provider = await loadMCPServers({ mcpServers: { files: filesystem(dir) }, tools: { max: 5 } }, registry);
    hub = provider.hub;
    expect(names(registry.list()).slice(-3)).toEqual(STAND_INS);
    expect(registry.size).toBe(5);
    const result = await registry.get("toolcrib_search")?.execute("1", { query: "directory tree" });
    expect(result?.content[0]?.["text"]).toMatch(/^files__directory_tree: /);
  });
});

describe("[guard-05b] searching and describing", () => {
  it("gives names with one line about each, best first", async () => {
    await hubWith({ tools: { max: 6 } });
    const outcome = await search("read a file");
    expect(firstText(outcome).split("\n").slice(0, 2)).toEqual([
      "read_file: Read a file from disk.",
      "write_file: Write a file to disk.",
    ]);
    expect(outcome.result?.structuredContent).toMatchObject({
      tools: [{ name: "read_file", description: "Read a file from disk." }, { name: "write_file" }],
    });
    const one = await hub.call({ name: "toolcrib_search", arguments: { query: "file", limit: 1 } });
    expect(firstText(one).split("\n")).toHaveLength(1);
    expect(firstText(await search("xylophone"))).toBe("No tool matches. Try other words.");
  });

  it("gives the whole definition under the public name", async () => {
    await hubWith({ mcpServers: { demo: misbehaving("ok") }, tools: { max: 6 } });
    const local = await hub.call({ name: "toolcrib_describe", arguments: { name: "weather" } });
    expect(local.result?.structuredContent).toMatchObject({ name: "weather", inputSchema: { required: ["city"] } });
    expect(JSON.parse(firstText(local))).toEqual(local.result?.structuredContent);
    const remote = await hub.call({ name: "toolcrib_describe", arguments: { name: "demo__echo" } });
    const known = hub.view(hub.session).tools.find((one) => one.name === "demo__echo");
    expect(remote.result?.structuredContent).toEqual({ ...known?.definition, name: "demo__echo" });
  });

  it("refuses arguments that do not fit, and says what may be meant by an unknown name", async () => {
    await hubWith({ tools: { max: 6 } });
    for (const args of [
      {},
      { query: 5 },
      { query: "a", limit: 0 },
      { query: "a", limit: 1000 },
      { query: "a", more: 1 },
    ]) {
      const outcome = await hub.call({ name: "toolcrib_search", arguments: args });
      expect(outcome, JSON.stringify(args)).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    }
    const unknown = await hub.call({ name: "toolcrib_describe", arguments: { name: "wether" } });
    expect(unknown).toMatchObject({ ok: false, error: { code: "not_found", details: { nearMatches: ["weather"] } } });
  });

  it("shows a session only what it may see", async () => {
    const tools = [...MANY, tool("read_secret_file", "Read a secret file.", { ownerOnly: true })];
    await hubWith({ tools: { max: 4, deny: ["write_*"] } }, tools);
    const guest = hub.openSession({ owner: false });
    expect(firstText(await search("read secret file", guest))).toBe("read_file: Read a file from disk.");
    expect(firstText(await search("read secret file"))).toMatch(/^read_secret_file/);
    expect(firstText(await search("write a file"))).not.toContain("write_file");
    for (const name of ["read_secret_file", "write_file"]) {
      const described = await hub.call({ session: guest, name: "toolcrib_describe", arguments: { name } });
      expect(described).toMatchObject({ ok: false, error: { code: "not_found" } });
      expect(JSON.stringify(described.ok ? {} : (described.error.details ?? {}))).not.toContain(name);
      const called = await callThrough(name, {}, guest);
      expect(called.result).toMatchObject({ isError: true, structuredContent: { error: { code: "not_found" } } });
    }
  });

  it("follows the catalog", async () => {
    await hubWith({ tools: { max: 6 } });
    expect(firstText(await search("translate"))).toMatch(/^No tool/);
    hub.registry.register(tool("translate", "Translate a text."));
    expect(firstText(await search("translate"))).toBe("translate: Translate a text.");
  });
});

describe("[guard-05b] calling through the same path", () => {
  it("passes the result on unchanged, with a record for each of the two calls", async () => {
    await hubWith({ mcpServers: { demo: misbehaving("ok") }, tools: { max: 6 } });
    const records: CallRecord[] = [];
    hub.on("call", (record) => records.push(record));
    const direct = await hub.call({ name: "weather", arguments: { city: "Rome" } });
    const through = await callThrough("weather", { city: "Rome" });
    expect(through.result).toEqual(direct.result);
    expect(through.result).toMatchObject({ content: [{ text: "Sunny in Rome." }] });
    expect(records.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["weather", "ok"],
      ["weather", "ok"],
      ["toolcrib_call", "ok"],
    ]);
    const echoed = await callThrough("demo__echo", { text: "hi" });
    expect(echoed.result).toEqual((await hub.call({ name: "demo__echo", arguments: { text: "hi" } })).result);
  });

  it("takes the arguments as JSON text too", async () => {
    await hubWith({ tools: { max: 6 } });
    const call = (args: unknown) =>
      hub.call({ name: "toolcrib_call", arguments: { name: "weather", arguments: args } });
    expect(firstText(await call('{"city":"Oslo"}'))).toBe("Sunny in Oslo.");
    expect(await call("[1]")).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    expect(await call("{oops")).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
  });

  it("gives failures as error results that carry the code", async () => {
    await hubWith({ tools: { max: 3, deny: ["send_mail"] } });
    const codeOf = async (name: string, args = {}) => (await callThrough(name, args)).result;
    expect(await codeOf("nothing")).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "not_found" } },
    });
    expect(await codeOf("send_mail")).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "denied" } },
    });
    expect(await codeOf("weather")).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "invalid_arguments" } },
    });
    expect(await codeOf("refuse")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^invalid_arguments: .*not like this/) }],
    });
    // How a refusal could be lifted is not for a model.
    const through = hub.tools({ for: "openai" }).find(({ name }) => name === "toolcrib_call");
    expect(await through?.execute("1", { name: "send_mail", arguments: {} })).toMatchObject({
      isError: true,
      content: [{ text: 'denied: Policy denies send_mail: deny "send_mail" in the rules.' }],
    });
    // The tool's own error result is its own.
    expect(await codeOf("fail")).toEqual((await hub.call({ name: "fail" })).result);
  });

  it("runs hooks and policy for the inner call under its own name", async () => {
    await hubWith({ tools: { max: 6 } });
    const seen: string[] = [];
    hub.use({
      before: (call) => {
        seen.push(call.name);
        return call.name === "weather" ? { refuse: "no weather today" } : {};
      },
    });
    const outcome = await callThrough("weather", { city: "Rome" });
    expect(seen).toEqual(["toolcrib_call", "weather"]);
    expect(outcome.result).toMatchObject({ isError: true, structuredContent: { error: { code: "denied" } } });
  });

  it("asks for the inner call, once", async () => {
    const asked: string[] = [];
    await hubWith({ tools: { max: 6, ask: ["*"] } }, MANY, {
      onAsk: (request) => {
        asked.push(request.name);
        return "once";
      },
    });
    expect(await callThrough("weather", { city: "Rome" })).toMatchObject({ ok: true });
    expect(await search("weather")).toMatchObject({ ok: true });
    expect(asked).toEqual(["weather"]);
  });

  it("does not run itself or its like", async () => {
    await hubWith({ tools: { max: 6 } });
    for (const name of [...STAND_INS, "toolcrib_other"]) {
      const outcome = await callThrough(name, { name: "weather", arguments: {} });
      expect(outcome, name).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    }
  });

  it("counts the inner call only against limits", async () => {
    await hubWith({ tools: { max: 6 }, limits: { callsPerMinute: 2, concurrency: 1 } });
    for (let i = 0; i < 5; i += 1) expect(await search("weather")).toMatchObject({ ok: true });
    expect(await callThrough("weather", { city: "Rome" })).toMatchObject({ ok: true });
    expect(await callThrough("weather", { city: "Rome" })).toMatchObject({ ok: true });
    const third = await callThrough("weather", { city: "Rome" });
    expect(third.result).toMatchObject({ isError: true, structuredContent: { error: { code: "rate_limited" } } });
  });

  it("passes progress and cancellation on", async () => {
    let seen: AbortSignal | undefined;
    const slow = tool("slow", "Takes its time.", {
      execute: (_id, _params, signal, onUpdate) => {
        seen = signal;
        onUpdate?.(text("half"));
        return new Promise(() => {});
      },
    });
    await hubWith({ tools: { max: 6 } }, [...MANY, slow]);
    const controller = new AbortController();
    const progress: unknown[] = [];
    const pending = hub.call({
      name: "toolcrib_call",
      arguments: { name: "slow" },
      signal: controller.signal,
      onProgress: (report) => progress.push(report["message"]),
    });
    await expect.poll(() => progress).toEqual(["half"]);
    controller.abort();
    expect(await pending).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(seen?.aborted).toBe(true);
  });
});

describe("[guard-05b] rules and the search tools", () => {
  it("are not hidden by an allow list or by a role that names its servers", async () => {
    const dir = await folder();
    await hubWith({
      mcpServers: { files: filesystem(dir) },
      tools: { max: 5, allow: ["files__*"] },
      roles: { reader: { servers: ["files"] } },
    });
    for (const session of [hub.session, hub.openSession({ owner: false, role: "reader" })]) {
      expect(names(hub.internals.offered(session))).toEqual(expect.arrayContaining(STAND_INS));
      expect(firstText(await search("list directory", session))).toMatch(/^files__list_/);
      expect(firstText(await search("weather", session))).not.toContain("weather");
    }
  });

  it("are taken away by a deny that names them, and not by one of a class of tools", async () => {
    await hubWith({ tools: { max: 4, deny: ["toolcrib_call"] } });
    expect(names(hub.internals.offered(hub.session))).toEqual([
      "read_file",
      "write_file",
      "toolcrib_search",
      "toolcrib_describe",
    ]);
    expect(await callThrough("weather", { city: "Rome" })).toMatchObject({ ok: false, error: { code: "denied" } });
    await hub.close();
    await hubWith({ tools: { max: 4, deny: ["send_mail", "openWorld"] } }, [
      ...MANY.map((one) => ({ ...one, annotations: { openWorldHint: one.name === "weather" } })),
    ]);
    expect(names(hub.internals.offered(hub.session))).toEqual(expect.arrayContaining(STAND_INS));
    expect((await callThrough("weather", { city: "Rome" })).result).toMatchObject({
      structuredContent: { error: { code: "denied" } },
    });
  });

  it("give an agent the inner tool's result as untrusted as it is, and marked once", async () => {
    await hubWith({ mcpServers: { demo: misbehaving("ok") }, tools: { max: 5 } });
    const [call] = hub.tools({ for: "anthropic" }).filter((one) => one.name === "toolcrib_call");
    const direct = await hub
      .tools({ for: "anthropic", query: "demo echo" })
      .find((one) => one.name === "demo__echo")
      ?.execute("1", { text: "hi" });
    const through = await call?.execute("2", { name: "demo__echo", arguments: { text: "hi" } });
    const withoutIds = (result: unknown) => JSON.stringify(result).replace(/[0-9a-f]{8,}(?:-[0-9a-f]{4,})*/g, "ID");
    expect(withoutIds(through)).toBe(withoutIds(direct));
    expect(through?.details).toMatchObject({
      externalContent: { untrusted: true, server: "demo", tool: "echo", wrapped: true },
    });
  });

  it("give an agent the inner tool's result with the inner tool's details", async () => {
    await hubWith({ mcpServers: { demo: misbehaving("ok") }, tools: { max: 5 }, guard: { wrap: "none" } });
    const [call] = hub.tools({ for: "anthropic" }).filter((one) => one.name === "toolcrib_call");
    expect(call).toMatchObject({ label: "Call a tool", description: expect.stringMatching(/^Run a tool/) });
    const remote = await call?.execute("1", { name: "demo__echo", arguments: { text: "hi" } });
    // Tools of MCP servers have these details.
    expect(remote?.details as McpToolDetails).toMatchObject({ server: "demo", tool: "echo" });
    expect(remote?.content).toEqual([{ type: "text", text: "hi" }]);
    const local = await call?.execute("2", { name: "weather", arguments: { city: "Bern" } });
    expect(local?.details).toEqual({ celsius: 21 });
    const missing = await call?.execute("3", { name: "demo__ech" });
    expect(missing).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^not_found: .*demo__echo/) }],
    });
  });
});
