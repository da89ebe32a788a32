import { afterEach, describe, expect, it } from "vitest";
import { agentTools, type McpToolDetails } from "../../../src/hub/view/agent-tools.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { loadMCPServers } from "../../../src/hub/create/load-mcp-servers.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";
import type { Tool } from "../../../src/model/tool.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { misbehaving } from "../../support/servers.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

const named = (tools: Tool[], name: string): Tool => {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined) throw new Error(`no ${name} in ${tools.map((tool) => tool.name).join(", ")}`);
  return found;
};

describe("[trust-06d] tools whose schemas are too much for a model", () => {
  const schema = () => ({ type: "object", properties: { a: { enum: Array.from({ length: 19_000 }, (_, i) => i) } } });
  const capability = (source: string, number: number): ToolCapability => ({
    kind: "tool",
    name: `${source}__t${number}`,
    origin: { source, name: `t${number}` },
    fingerprint: "",
    definition: { name: `t${number}`, inputSchema: number < 0 ? { type: "object" } : schema() },
  });

  it("are left out with a reason, and those of other servers are not", async () => {
    hub = await createHub({});
    const unusable: string[] = [];
    const greedy = Array.from({ length: 7 }, (_, number) => capability("greedy", number));
    const tools = agentTools([...greedy, capability("modest", -1)], {
      provider: "openai",
      session: hub.session,
      inlineBytes: 1000,
      serverName: (id) => id,
      call: () => Promise.reject(new Error("not called")),
      toolBehind: (tool) => tool,
      onUnusable: (tool, reason) => unusable.push(`${tool.name}: ${reason}`),
    });
    expect(tools.map(({ name }) => name)).toEqual([...[0, 1, 2, 3, 4].map((i) => `greedy__t${i}`), "modest__t-1"]);
    expect(unusable).toEqual([
      expect.stringMatching(/greedy__t5: .*100000 values/),
      expect.stringContaining("greedy__t6"),
    ]);
  });
});

describe("[spine-16d] tools for agents", () => {
  it("carry the label and the marked description of their server", async () => {
    hub = await createHub({ mcpServers: { demo: { ...misbehaving("ok"), name: "Demo" } } });
    const echo = named(hub.tools({ for: "anthropic" }), "demo__echo");
    expect(echo.label).toBe("MCP: Demo/echo");
    expect(echo.description).toMatch(/^\[MCP: Demo\] \S/);
    await hub.call({ name: "demo__change" });
    await hub.servers.refresh("demo");
    const bare = named(hub.tools(), "demo__tool-1");
    expect(bare.description).toBe("[MCP: Demo] Tool tool-1 of the server Demo.");
  });

  it("return content for the model and the whole result as details", async () => {
    hub = await createHub({ mcpServers: { demo: { ...misbehaving("ok"), trust: "trusted" } } });
    const result = await named(hub.tools({ for: "openai" }), "demo__echo").execute("1", { text: "hi" });
    expect(result.content).toEqual([{ type: "text", text: "hi" }]);
    expect(result.isError).toBeUndefined();
    // Tools of MCP servers have these details.
    const details = result.details as McpToolDetails;
    expect(details).toMatchObject({
      server: "demo",
      tool: "echo",
      result: { content: [{ type: "text", text: "hi" }] },
    });
    expect(details.externalContent).toBeUndefined();
  });

  it("[guard-12c] wrap what an untrusted server says, and tell the program so", async () => {
    hub = await createHub({ mcpServers: { demo: misbehaving("ok") } });
    const result = await named(hub.tools({ for: "openai" }), "demo__echo").execute("1", { text: "hi" });
    expect(result.content).toEqual([
      {
        type: "text",
        text: expect.stringMatching(
          /^<<<UNTRUSTED_TOOL_RESULT id="[\w-]+" server="demo" tool="echo">>>\n[^]*\nhi\n<<<END_/,
        ),
      },
    ]);
    // Tools of MCP servers have these details.
    const details = result.details as McpToolDetails;
    expect(details.externalContent).toEqual({
      untrusted: true,
      source: "mcp",
      server: "demo",
      tool: "echo",
      wrapped: true,
    });
  });

  it("[spine-11c] turn progress into onUpdate", async () => {
    hub = await createHub({ mcpServers: { demo: misbehaving("ok") } });
    const updates: unknown[] = [];
    const progress = named(hub.tools(), "demo__progress");
    await progress.execute("1", { steps: 3, delay: 1 }, undefined, (update) => updates.push(update.details));
    expect(updates).toHaveLength(3);
    expect(updates.at(-1)).toMatchObject({ progress: 3, total: 3 });
  });

  it("give errors as error results, never as exceptions", async () => {
    hub = await createHub({ mcpServers: { demo: misbehaving("ok") }, tools: { deny: ["demo__slow"] } });
    const tools = hub.tools();
    expect(tools.map((tool) => tool.name)).not.toContain("demo__slow");
    const failed = await named(tools, "demo__fail").execute("1", {});
    expect(failed).toMatchObject({ isError: true, details: { error: { code: "tool_error" } } });
    await hub.servers.disconnect("demo");
    await hub.close();
    const gone = await named(tools, "demo__echo").execute("2", { text: "x" });
    expect(gone).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/cancelled|server_unavailable/) }],
    });
  });

  it("[spine-18] shorten long text and keep the whole readable in the session", async () => {
    const registry = new ToolRegistry();
    const long = `${"a".repeat(3000)}${"b".repeat(3000)}`;
    registry.register({
      name: "long",
      description: "Long text.",
      parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "text", text: long }] }),
    });
    hub = await createHub({ limits: { inlineBytes: 1000 } }, { registry });
    const result = await named(hub.tools({ for: "anthropic" }), "long").execute("1", {});
    const text = String(result.content[0]?.["text"]);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1000);
    expect(text).toMatch(/^a+/);
    expect(text).toMatch(/b+$/);
    const uri = /toolcrib:\/\/results\/[\w-]+/.exec(text)?.[0] ?? "";
    const whole = await hub.read({ uri });
    expect(whole).toMatchObject({ ok: true, result: { contents: [{ text: long }] } });
    const other = hub.openSession();
    expect(await hub.read({ session: other, uri })).toMatchObject({ ok: false, error: { code: "not_found" } });
    const raw = await named(hub.tools({ for: "raw" }), "long").execute("1", {});
    expect(raw.content[0]?.["text"]).toBe(long);
  });

  it("hand a local tool's details to the program", async () => {
    const registry = new ToolRegistry();
    registry.register({
      name: "count",
      label: "Counter",
      description: "Counts.",
      parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "text", text: "3" }], details: { exact: 3 } }),
    });
    hub = await createHub({}, { registry });
    const count = named(hub.tools({ for: "gemini" }), "count");
    expect(count).toMatchObject({ label: "Counter", description: "Counts." });
    expect(await count.execute("1", {})).toEqual({ content: [{ type: "text", text: "3" }], details: { exact: 3 } });
  });
});

describe("[spine-16b] loadMCPServers", () => {
  it("puts the tools into the registry, keeps them in step, and takes them out", async () => {
    const registry = new ToolRegistry();
    registry.register({
      name: "own",
      description: "Own.",
      parameters: { type: "object" },
      execute: async () => ({ content: [] }),
    });
    const changes: string[][] = [];
    const provider = await loadMCPServers({ mcpServers: { demo: misbehaving("ok") } }, registry, {
      onToolsChanged: (tools) => changes.push(tools.map((tool) => tool.name)),
    });
    try {
      expect(registry.list().map((tool) => tool.name)).toEqual(expect.arrayContaining(["own", "demo__echo"]));
      expect(provider.tools().map((tool) => tool.name)).not.toContain("own");
      expect(provider.status()).toMatchObject([{ id: "demo", state: "ready", status: "connected" }]);
      expect(provider.resources()).toEqual([]);
      expect(provider.prompts()).toEqual([]);
      await provider.refresh();

      const kept = registry.get("demo__echo");
      await registry.get("demo__change")?.execute("1", {});
      await expect.poll(() => registry.get("demo__tool-1")).toBeDefined();
      expect(changes.at(-1)).toContain("demo__tool-1");
      expect(registry.get("demo__echo")).toBe(kept);
    } finally {
      await provider.close();
    }
    expect(registry.list().map((tool) => tool.name)).toEqual(["own"]);
  });

  const UNION_TOOL: Tool = {
    name: "find",
    description: "Finds a person.",
    parameters: {
      type: "object",
      anyOf: [
        { properties: { email: { type: "string" } }, required: ["email"] },
        { properties: { "phone number": { type: "string" }, tags: { type: "array" } }, required: ["phone number"] },
      ],
    },
    execute: async (_id, params) => ({ content: [{ type: "text", text: JSON.stringify(params) }] }),
  };

  it("[whole-07c] shows the program's own tools in the form that models accept, and runs them with their own names", async () => {
    const registry = new ToolRegistry();
    registry.register(UNION_TOOL);
    const provider = await loadMCPServers({ mcpServers: { demo: misbehaving("ok") } }, registry);
    const { parameters, execute } = named(registry.list(), "find");
    expect(parameters).toMatchObject({
      type: "object",
      properties: { email: {}, phone_number: {}, tags: { items: {} } },
    });
    expect(parameters).not.toHaveProperty("anyOf");
    expect((await execute("1", { phone_number: "1" })).content[0]).toMatchObject({ text: '{"phone number":"1"}' });
    for (const { parameters: schema } of [...registry.list(), ...provider.tools()])
      expect(schema).toMatchObject({ type: "object", properties: {} });
    await provider.close();
    expect(registry.get("find")).toBe(UNION_TOOL);
  });

  it("[whole-07c] follows the provider that it is given", async () => {
    const registry = new ToolRegistry();
    registry.register(UNION_TOOL);
    const provider = await loadMCPServers({ mcpServers: {} }, registry, { for: "openai-strict" });
    expect(named(registry.list(), "find").parameters).toMatchObject({ additionalProperties: false });
    await provider.close();
  });

  it("says what is wrong where the options are in the place of the registry", async () => {
    // What programs in JavaScript write.
    const misplaced = { for: "openai" } as unknown as ToolRegistry;
    await expect(loadMCPServers({ mcpServers: {} }, misplaced)).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("not a ToolRegistry"),
    });
  });

  it("[whole-14c] says which server's tools changed, and has the state of servers by id", async () => {
    const changes: (string | undefined)[] = [];
    const servers = { one: misbehaving("ok"), two: misbehaving("ok") };
    const provider = await loadMCPServers({ mcpServers: servers }, new ToolRegistry(), {
      onToolsChanged: (_tools, serverId) => changes.push(serverId),
    });
    expect(provider.statusById()).toMatchObject({ one: { id: "one", state: "ready" }, two: { state: "ready" } });
    await named(provider.tools(), "two__change").execute("1", {});
    await expect.poll(() => changes).toContain("two");
    expect(changes).not.toContain("one");
    await provider.close();
  });

  it("makes a registry where the program has none", async () => {
    await using provider = await loadMCPServers({ mcpServers: { demo: misbehaving("ok") } });
    expect(provider.tools().map(({ name }) => name)).toContain("demo__echo");
  });

  it("ends with its signal", async () => {
    const controller = new AbortController();
    const provider = await loadMCPServers({ mcpServers: { demo: misbehaving("ok") } }, new ToolRegistry(), {
      signal: controller.signal,
    });
    controller.abort();
    await expect.poll(() => provider.status()[0]?.state).toBe("closed");
  });
});
