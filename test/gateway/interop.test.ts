/** Clients that others have written, against the real programs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAIN, PATIENT } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { everything } from "../support/servers.ts";
import { openGateway } from "./gateway.ts";
import { ASKED, judge, type Judged, newClient, oldClient } from "./judged-client.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "toolcrib-interop-"));
const config = join(dir, "toolcrib.json");
const env = { ...process.env, ...PATIENT, TOOLCRIB_HOME: join(dir, "home") } as Record<string, string>;

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
      await judge(client);
      expect(client.asked).toEqual(ASKED);
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
      env: { ...PATIENT, TOOLCRIB_HOME: join(dir, "home") },
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

it("[whole-06c] an official client of 1.x lists everything beside definitions that it cannot read", async () => {
  const object = { type: "object" };
  const tools = [
    { name: "php", inputSchema: { type: "object", properties: [] } },
    { name: "rust", inputSchema: { type: "object", properties: { value: true, never: false } } },
    { name: "python", inputSchema: object, title: null, description: null, annotations: null, outputSchema: null },
    { name: "list", inputSchema: object, outputSchema: { type: "array", items: { type: "string" } } },
    { name: "hints", inputSchema: object, icons: "i.png", annotations: { readOnlyHint: "true" } },
    { name: "plain", inputSchema: object },
  ];
  const resources = [{ uri: "file:///a", name: "a", mimeType: null }];
  const prompts = [{ name: "p", arguments: [{ name: "a", description: null }] }];
  writeFileSync(join(dir, "script.json"), JSON.stringify({ tools, resources, prompts }));
  const server = join(ROOT, "test/fixtures/scripted-server.mjs");
  const odd = { command: process.execPath, args: [server, join(dir, "script.json")] };
  const gateway = await openGateway({ mcpServers: { odd } });
  try {
    const client = await oldClient(new OldHttp(new URL(`${gateway.url}/mcp`)));
    expect(await client.tools()).toEqual(tools.map(({ name }) => `odd__${name}`));
    expect(await client.resources()).toEqual(["file:///a"]);
    await client.close();
    const modern = await newClient(new NewHttp(new URL(`${gateway.url}/mcp`)), "auto");
    expect(await modern.tools()).toHaveLength(tools.length);
    await modern.close();
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
});
