/** A StdioWire on the misbehaving server, with what it told. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { PidRecords } from "../../../src/upstream/stdio/pid-records.ts";
import { type StdioOptions, StdioWire } from "../../../src/upstream/stdio/stdio-wire.ts";
import type { RpcMessage } from "../../../src/model/protocol.ts";

export const SERVER = fileURLToPath(new URL("../../fixtures/misbehaving-server.mjs", import.meta.url));

export interface StdioBench {
  readonly wire: StdioWire;
  readonly messages: RpcMessage[];
  readonly warnings: string[];
  readonly lost: Promise<ToolcribError>;
  /** Sends a request and gives its answer, without its envelope. */
  ask(method: string, params?: JsonObject): Promise<JsonObject>;
  /** The text of a tool's result. */
  call(name: string, args?: JsonObject): Promise<string>;
}

const runDir = mkdtempSync(join(tmpdir(), "toolcrib-run-"));
export const pids = new PidRecords(runDir);

export function wireOn(options: Partial<StdioOptions> = {}): StdioBench {
  const wire = new StdioWire({
    mask: (text) => text,
    serverId: "test",
    command: process.execPath,
    args: [SERVER, "ok"],
    env: { PATH: process.env["PATH"] ?? "" },
    pids,
    closeGraceMs: 1000,
    ...options,
  });
  onTestFinished(async () => {
    await wire.close();
    rmSync(runDir, { recursive: true, force: true });
  });
  const messages: RpcMessage[] = [];
  const warnings: string[] = [];
  const waiting = new Map<unknown, (answer: JsonObject) => void>();
  wire.listen({
    message({ message }) {
      messages.push(message);
      if ("method" in message) return;
      const answer = "result" in message ? message.result : { error: message.error };
      waiting.get(message.id)?.(answer);
    },
    warning: (text) => warnings.push(text),
  });
  const lost = new Promise<ToolcribError>((resolve) => wire.listen({ lost: resolve }));
  let nextId = 1;
  const ask = async (method: string, params: JsonObject = {}): Promise<JsonObject> => {
    const id = nextId++;
    const answer = new Promise<JsonObject>((resolve) => waiting.set(id, resolve));
    await wire.send({ jsonrpc: "2.0", id, method, params });
    return answer;
  };
  const call = async (name: string, args: JsonObject = {}): Promise<string> => {
    const result = await ask("tools/call", { name, arguments: args });
    const content: unknown = result["content"];
    return Array.isArray(content) ? String(content[0].text) : JSON.stringify(result);
  };
  return { wire, messages, warnings, lost, ask, call };
}

export async function openOn(
  mode: string,
  argument?: string,
  options: Partial<StdioOptions> = {},
): Promise<StdioBench> {
  const args = argument === undefined ? [SERVER, mode] : [SERVER, mode, argument];
  const bench = wireOn({ args, ...options });
  await bench.wire.open(new AbortController().signal);
  return bench;
}
