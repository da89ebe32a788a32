/** Clients that others have written, against the real programs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewHttp,
  type VersionNegotiationMode,
} from "@modelcontextprotocol/client";
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAIN } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { everything } from "../support/servers.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "toolcrib-interop-"));
const config = join(dir, "toolcrib.json");
const env = { ...process.env, TOOLCRIB_HOME: join(dir, "home") } as Record<string, string>;

let served: ChildProcess;
let addresses: { readonly mcp: string; readonly sse: string };

beforeAll(async () => {
  writeFileSync(config, JSON.stringify({ mcpServers: { e: everything() }, guard: { pins: "off" } }));
  served = spawn(process.execPath, [MAIN, "serve", "--config", config, "--port", "0", "--json"], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let said = "";
  addresses = await new Promise((found, failed) => {
    served.once("exit", () => failed(new Error(`serve ended: ${said}`)));
    served.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (/^\}/m.test(said)) found(JSON.parse(said) as typeof addresses);
    });
  });
});

afterAll(async () => {
  const gone = once(served, "exit");
  served.kill("SIGTERM");
  await gone;
  rmSync(dir, { recursive: true, force: true });
});

/** What every client must be able to do, whatever its API looks like. */
interface Judged {
  tools(): Promise<string[]>;
  call(name: string, args: Record<string, unknown>, onProgress?: (step: number) => void): Promise<string>;
  read(uri: string): Promise<string>;
  resources(): Promise<string[]>;
  prompt(name: string): Promise<string>;
  /** Methods that the server has asked for. */
  readonly asked: string[];
  close(): Promise<void>;
}

const CAPABILITIES = { sampling: {}, elicitation: { form: {} } };
const SAMPLED = { role: "assistant" as const, model: "m", content: { type: "text" as const, text: "sampled words" } };

async function oldClient(transport: Transport): Promise<Judged> {
  const client = new OldClient({ name: "old", version: "1" }, { capabilities: CAPABILITIES });
  const asked: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => {
    asked.push(method);
    return SAMPLED;
  });
  client.setRequestHandler(ElicitRequestSchema, ({ method }) => {
    asked.push(method);
    return { action: "decline" as const };
  });
  await client.connect(transport);
  return {
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, onProgress) =>
      JSON.stringify(
        await client.callTool(
          { name, arguments: args },
          undefined,
          onProgress && { onprogress: ({ progress }) => onProgress(progress) },
        ),
      ),
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    prompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
    close: () => client.close(),
  };
}

async function newClient(transport: NewHttp | NewStdio, mode: VersionNegotiationMode): Promise<Judged> {
  const client = new NewClient(
    { name: "new", version: "1" },
    { capabilities: CAPABILITIES, versionNegotiation: { mode } },
  );
  const asked: string[] = [];
  client.setRequestHandler("sampling/createMessage", () => {
    asked.push("sampling/createMessage");
    return SAMPLED;
  });
  client.setRequestHandler("elicitation/create", () => {
    asked.push("elicitation/create");
    return { action: "decline" as const };
  });
  await client.connect(transport);
  const era = mode === "legacy" ? "2025-11-25" : "2026-07-28";
  expect(client.getNegotiatedProtocolVersion()).toBe(era);
  return {
    asked,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, onProgress) =>
      JSON.stringify(
        await client.callTool(
          { name, arguments: args },
          onProgress && { onprogress: ({ progress }) => onProgress(progress) },
        ),
      ),
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    prompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
    close: () => client.close(),
  };
}

const command = () => ({
  command: process.execPath,
  args: [MAIN, "mcp", "--config", config],
  env,
  stderr: "ignore" as const,
});

const CLIENTS: readonly (readonly [string, () => Promise<Judged>])[] = [
  ["SDK 1.x over Streamable HTTP", () => oldClient(new OldHttp(new URL(addresses.mcp)))],
  ["SDK 1.x over SSE", () => oldClient(new SSEClientTransport(new URL(addresses.sse)))],
  ["SDK 1.x over stdio", () => oldClient(new OldStdio(command()))],
  ["SDK 2.x, legacy, over HTTP", () => newClient(new NewHttp(new URL(addresses.mcp)), "legacy")],
  ["SDK 2.x, modern, over HTTP", () => newClient(new NewHttp(new URL(addresses.mcp)), { pin: "2026-07-28" })],
  ["SDK 2.x, modern by negotiation, over HTTP", () => newClient(new NewHttp(new URL(addresses.mcp)), "auto")],
  ["SDK 2.x, legacy, over stdio", () => newClient(new NewStdio(command()), "legacy")],
  ["SDK 2.x, modern, over stdio", () => newClient(new NewStdio(command()), { pin: "2026-07-28" })],
];

describe.each(CLIENTS)("[gate-17a] %s", (_name, connect) => {
  it("lists, calls, reads, gets a prompt, hears of progress and is asked", async () => {
    const client = await connect();
    try {
      const tools = await client.tools();
      expect(tools).toEqual(
        expect.arrayContaining(["e__echo", "e__trigger-sampling-request", "e__trigger-elicitation-request"]),
      );
      expect(await client.call("e__echo", { message: "hello" })).toContain("Echo: hello");
      expect(await client.call("e__get-structured-content", { location: "New York" })).toContain("structuredContent");
      const [uri = ""] = await client.resources();
      expect(await client.read(uri)).toContain(uri);
      expect(await client.prompt("e__simple-prompt")).toContain("messages");
      const steps: number[] = [];
      await client.call("e__trigger-long-running-operation", { duration: 0.2, steps: 4 }, (step) => steps.push(step));
      // The SDK drops a step that comes in one piece with the answer.
      expect(steps.slice(0, 3)).toEqual([1, 2, 3]);
      expect(await client.call("e__trigger-sampling-request", { prompt: "hi", maxTokens: 5 })).toContain(
        "sampled words",
      );
      await client.call("e__trigger-elicitation-request", {});
      expect(client.asked).toEqual(["sampling/createMessage", "elicitation/create"]);
      await expect(client.read("none://such")).rejects.toThrow(/none:\/\/such/);
    } finally {
      await client.close();
    }
  });
});

describe("[gate-17a] mcporter", () => {
  const home = join(dir, "mcporter-home");
  const mcporter = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runProgram(
      join(ROOT, "node_modules/.bin/mcporter"),
      ["--config", join(dir, "mcporter.json"), ...args],
      {
        cwd: dir,
        env: { ...env, HOME: home, XDG_CONFIG_HOME: home },
      },
    );
    expect(code, `${stdout}\n${stderr}`).toBe(0);
    return stdout;
  };

  beforeAll(() => {
    const stdio = {
      command: process.execPath,
      args: [MAIN, "mcp", "--config", config],
      env: { TOOLCRIB_HOME: join(dir, "home") },
    };
    writeFileSync(
      join(dir, "mcporter.json"),
      JSON.stringify({ mcpServers: { http: { url: addresses.mcp }, stdio }, imports: [] }),
    );
  });

  it.each(["http", "stdio"])("lists, calls and reads (%s)", async (server) => {
    const [listed, called, read] = await Promise.all([
      mcporter("list", server, "--json"),
      mcporter("call", `${server}.e__echo`, "--args", JSON.stringify({ message: "from mcporter" }), "--output", "json"),
      mcporter("resource", server, "--json"),
    ]);
    expect(listed).toContain("e__get-structured-content");
    expect(called).toContain("Echo: from mcporter");
    expect(read).toContain("demo://resource");
  });
});
