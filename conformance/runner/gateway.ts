/** Toolcrib in front of the fixture, as a user starts it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigInput } from "../../src/model/config.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { type Running, start } from "./processes.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const START_MS = 60_000;
const MANY = 1_000_000;

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  /** What it wrote, for a message. */
  output(): string;
}

/** `toolPrefix: ""` gives bare names: the suites call tools by the names that they know. */
export async function startGateway(entry: ServerEntryInput): Promise<Gateway> {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-conformance-"));
  const file = join(home, "toolcrib.json");
  const config: ConfigInput = {
    mcpServers: { fixture: { ...entry, toolPrefix: "" } },
    limits: { callsPerMinute: MANY },
    http: { limits: { requestsPerMinute: MANY } },
  };
  writeFileSync(file, JSON.stringify(config));
  const env = { HOME: home, USERPROFILE: home, TOOLCRIB_HOME: join(home, ".toolcrib") };
  const gateway = start([MAIN, "serve", "--config", file, "--port", "0"], { env });
  const close = async (): Promise<void> => {
    await gateway[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const url = await gateway.said(/https?:\/\/[^\s"']+\/mcp(?![\w/-])/, START_MS);
    await untilListed(url, gateway);
    return { url, output: gateway.output, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The suites expect a server that is ready; the gateway's own server may take a moment longer than itself. */
async function untilListed(url: string, gateway: Running): Promise<void> {
  const until = Date.now() + START_MS;
  for (;;) {
    const answer = await listTools(url).catch((error: unknown) => String(error));
    if (answer.includes("test_simple_text")) return;
    if (Date.now() > until) throw new Error(`No tools through the gateway: ${answer}\n${gateway.output()}`);
    await new Promise((resolve) => void setTimeout(resolve, 100));
  }
}

async function listTools(url: string): Promise<string> {
  const version = "2026-07-28";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } }),
    signal: AbortSignal.timeout(10_000),
  });
  return response.text();
}
