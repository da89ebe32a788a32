/** `details` of an in-process tool, with a canary in them, through every door. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ToolcribClient } from "../../src/api-client/index.ts";
import type { HubEvent } from "../../src/contract/websocket.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { startScriptedModel, type ScriptedModel } from "../../src/testing/index.ts";
import { ServedHub } from "../load/served-hub.ts";
import { MAIN } from "../support/main-program.ts";
import { misbehaving } from "../support/servers.ts";
import { eventually } from "../support/eventually.ts";

const CANARY = "canary-8f2b1c-details";
const PLUGIN = `
const parameters = { type: "object" };
const details = { note: "${CANARY}", ["${CANARY}"]: true };
const text = (text) => [{ type: "text", text }];
export default (api) => {
  api.registerTool({ name: "plain", description: "Gives details.", parameters,
    execute: async () => ({ content: text("plain text"), details, structuredContent: { ok: true } }) });
  api.registerTool({ name: "fails", description: "Fails with details.", parameters,
    execute: async () => ({ content: text("failed text"), details, isError: true }) });
  api.registerTool({ name: "steps", description: "Tells how far it is, with details.", parameters,
    execute: async (_id, _params, _signal, onUpdate) => {
      onUpdate?.({ content: text("halfway"), details });
      return { content: text("steps text"), details };
    } });
  api.registerTool({ name: "large", description: "Gives more than is taken at once.", parameters,
    execute: async () => ({ content: text("large text " + "x".repeat(40_000)), details }) });
};
`;
const TOOLS = ["plain", "fails", "steps", "large"] as const;

let hub: ServedHub;
let model: ScriptedModel;
let config: string;
let env: Record<string, string>;

beforeAll(async () => {
  model = await startScriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? { text: "finished" } : { calls: [{ name: "plain", arguments: {} }] },
  );
  hub = await ServedHub.start({
    mcpServers: { one: misbehaving("ok") },
    limits: { resultBytes: 20_000 },
    audit: { arguments: true },
    agent: { model: { baseUrl: `${model.url}/v1`, model: "one" } },
  });
  config = join(hub.dir, "with-plugin.json");
  writeFileSync(join(hub.dir, "tools.mjs"), PLUGIN);
  const file = join(hub.dir, "toolcrib.json");
  const whole = { ...(JSON.parse(readFileSync(file, "utf8")) as object), plugins: ["./tools.mjs"] };
  for (const each of [file, config]) writeFileSync(each, JSON.stringify(whole));
  await hub.stop();
  hub = await hub.again();
  env = { PATH: process.env["PATH"] ?? "", HOME: hub.dir, TOOLCRIB_HOME: join(hub.dir, "other-home") };
});

afterAll(async () => {
  await model.close();
  await hub.remove();
});

/** That the tool ran, and that nothing of its details came along. */
function expectOnly(text: string, what: string, tool: string): void {
  expect(text, what).toMatch(tool === "fails" ? /failed text/ : new RegExp(`${tool} text|larger than the limit`));
  expect(text, what).not.toContain(CANARY);
}

async function printed(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args, "--config", config], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  }
  await new Promise((done) => child.once("close", done));
  return text;
}

/** Gives the tools that it called. */
async function throughMcp(client: Client): Promise<string[]> {
  const called: string[] = [];
  for (const name of TOOLS) {
    const seen: unknown[] = [];
    const result = await client
      .callTool({ name, arguments: {} }, undefined, { onprogress: (progress) => seen.push(progress) })
      .catch((error: unknown) => error);
    const links = JSON.stringify(result).match(/toolcrib:\/\/results\/[^"\\ ]+/g) ?? [];
    for (const uri of links) seen.push(await client.readResource({ uri }));
    expectOnly(JSON.stringify([result, seen]), `mcp ${name}`, name);
    called.push(name);
  }
  return called;
}

describe("[trust-12a] details of an in-process tool", () => {
  it("stay inside at the MCP door, over HTTP and stdio, also of what is kept for later", async () => {
    const overHttp = new Client({ name: "test", version: "1" });
    await overHttp.connect(new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`)));
    onTestFinished(() => overHttp.close());
    expect(await throughMcp(overHttp)).toEqual(TOOLS);
    const overStdio = new Client({ name: "test", version: "1" });
    const command = { command: process.execPath, args: [MAIN, "mcp", "--config", config], env };
    await overStdio.connect(new StdioClientTransport({ ...command, stderr: "ignore" }));
    onTestFinished(() => overStdio.close());
    expect(await throughMcp(overStdio)).toEqual(TOOLS);
  });

  it("stay inside over REST, the WebSocket, its events and the audit log", async () => {
    const client = new ToolcribClient(hub);
    const heard: HubEvent[] = [];
    const live = client.live({ onEvent: (event) => heard.push(event) });
    onTestFinished(() => live.close());
    for (const toolName of TOOLS) {
      const rest = await client.callTool({ toolName }).catch((error: unknown) => error);
      const socket = await live.command("mcp.callTool", { toolName }).catch((error: unknown) => error);
      for (const answer of [rest, socket]) {
        expectOnly(`${String(answer)} ${JSON.stringify(answer)}`, `rest ${toolName}`, toolName);
      }
    }
    await expect.poll(() => heard.filter(({ type }) => type === "call.finished").length).toBe(TOOLS.length * 2);
    expect(JSON.stringify([heard, await client.listAudit(), await client.listSessions()])).not.toContain(CANARY);
    const journal = join(hub.home, "audit");
    const files = readdirSync(journal, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    expect(files.length).toBeGreaterThan(0);
    for (const { parentPath, name } of files) {
      expect(readFileSync(join(parentPath, name), "utf8"), name).not.toContain(CANARY);
    }
  });

  it("stay inside on the command line: call, --json, run", async () => {
    for (const name of TOOLS) {
      expectOnly(await printed(["call", name]), `call ${name}`, name);
      expectOnly(await printed(["call", name, "--json"]), `call ${name} --json`, name);
    }
    const ran = await printed(["run", "use plain", "--json", "--mode", "auto"]);
    expect(ran).toContain('"state":"done"');
    expectOnly(ran, "run", "plain");
  });

  it("stay inside at the ACP door", async () => {
    const child = spawn(process.execPath, [MAIN, "acp", "--config", config], {
      env,
      stdio: ["pipe", "pipe", "ignore"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const editor = new Editor(child);
    await editor.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await editor.request("session/new", { cwd: hub.dir, mcpServers: [] });
    await editor.request("session/set_mode", { sessionId, modeId: "auto" });
    await editor.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "use plain" }] });
    expect(editor.said).toContain('"status":"completed"');
    expectOnly(editor.said, "acp", "plain");
  });

  it("are there for the program that the tool is part of, and a server's field of that name is not touched", async () => {
    const script = join(hub.dir, "script.json");
    const said = { content: [{ type: "text", text: "hi" }], details: { of: "the server" } };
    const definition = { name: "say", inputSchema: { type: "object" } };
    writeFileSync(script, JSON.stringify({ tools: [definition], results: { say: said } }));
    const scripted = {
      command: process.execPath,
      args: [join(import.meta.dirname, "../fixtures/scripted-server.mjs"), script],
    };
    const whole = { ...(JSON.parse(readFileSync(config, "utf8")) as object), mcpServers: { scripted } };
    const file = join(hub.dir, "with-server.json");
    writeFileSync(file, JSON.stringify(whole));
    const own = await createHub(file, { home: join(hub.dir, "library-home"), store: false, wait: true });
    onTestFinished(() => own.close());
    expect((await own.call({ name: "plain" })).result).toMatchObject({ details: { note: CANARY } });
    expect((await own.call({ session: own.openSession({ door: "rest" }), name: "plain" })).result).not.toHaveProperty(
      "details",
    );
    const ofServer = await own.call({ session: own.openSession({ door: "rest" }), name: "scripted__say" });
    expect(ofServer.result).toMatchObject({ details: { of: "the server" } });
    const tool = own.tools().find(({ name }) => name === "plain");
    expect(await tool?.execute("1", {})).toMatchObject({ details: { note: CANARY } });
  });
});

/** The client's side of ACP on a process' streams, as far as it is needed: it answers nothing. */
class Editor {
  said = "";
  readonly #child: ChildProcess;
  #last = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => (this.said += chunk.toString("utf8")));
  }

  async request(method: string, params: object): Promise<Record<string, unknown>> {
    const id = (this.#last += 1);
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return eventually(() => {
      const answer = this.said
        .split("\n")
        .slice(0, -1)
        .map(
          (line) =>
            JSON.parse(line) as { id?: number; method?: string; result?: Record<string, unknown>; error?: unknown },
        )
        .find((message) => message.id === id && message.method === undefined);
      if (answer?.error !== undefined) throw new Error(JSON.stringify(answer.error));
      if (answer !== undefined) return answer.result ?? {};
      if (this.#child.exitCode !== null) throw new Error(`acp ended: ${this.said}`);
      return undefined;
    });
  }
}
