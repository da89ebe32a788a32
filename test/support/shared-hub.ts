/** A home whose clients share one hub: real processes, real stdio and HTTP clients. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { BRIDGE, MAIN, PATIENT } from "./main-program.ts";
import { isAlive } from "./processes.ts";
import { type Run, runProgram } from "./run-program.ts";

export const WITHIN = { timeout: 60_000, interval: 50 };

export interface HubFile {
  readonly pid: number;
  readonly url: string;
  readonly token: string;
  readonly version: string;
}

export let home: string;
export let env: Record<string, string>;
export const clients: Client[] = [];
const children: ChildProcess[] = [];
const hubPids = new Set<number>();

/** Makes and removes a home for each test of a file, and ends what was started on it. */
export function useSharedHome(): void {
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-one-")));
    env = { PATH: process.env["PATH"] ?? "", HOME: home, ...PATIENT, TOOLCRIB_HOME: home };
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => {})));
    for (const child of children.splice(0)) child.kill("SIGKILL");
    // One that is being replaced starts another.
    await vi.waitFor(() => {
      for (const { pid } of hubs()) hubPids.add(pid);
      for (const pid of hubPids) if (isAlive(pid)) process.kill(pid, "SIGTERM");
      expect([...hubPids].filter(isAlive)).toEqual([]);
      expect(hubs()).toEqual([]);
    }, WITHIN);
    hubPids.clear();
    rmSync(home, { recursive: true, force: true });
  });
}

export function configure(config: object): void {
  writeFileSync(join(home, "toolcrib.json"), JSON.stringify({ guard: { pins: "off" }, ...config }));
}

export function hubs(): HubFile[] {
  const folder = join(home, "hubs");
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const names = isFolder ? readdirSync(folder).filter((name) => /^\d+\.json$/.test(name)) : [];
  return names
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as HubFile)
    .filter(({ pid }) => isAlive(pid));
}

export function onlyHub(): HubFile {
  const [hub, ...others] = hubs();
  expect(others).toEqual([]);
  if (hub === undefined) throw new Error("no hub runs");
  hubPids.add(hub.pid);
  return hub;
}

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}

interface StdioOptions {
  readonly program?: string;
  readonly env?: Record<string, string>;
}

export async function stdioClient(args: readonly string[] = [], options: StdioOptions = {}): Promise<Client> {
  const client = new Client({ name: `client-${clients.length}`, version: "1" });
  clients.push(client);
  const command = {
    command: process.execPath,
    args: [options.program ?? BRIDGE, "mcp", ...args],
    env: { ...env, ...options.env },
    stderr: "ignore" as const,
    cwd: home,
  };
  await client.connect(new StdioClientTransport(command));
  return client;
}

export async function httpClient(url: string, token?: string, name = "web"): Promise<Client> {
  const client = new Client({ name, version: "1" });
  clients.push(client);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  return client;
}

/** A bridge whose lines the test writes itself. */
export function rawBridge(args: readonly string[] = []): { readonly child: ChildProcess; readonly said: () => string } {
  const child = spawn(process.execPath, [BRIDGE, "mcp", ...args], { env, cwd: home, stdio: ["pipe", "pipe", "pipe"] });
  children.push(child);
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return { child, said: () => said };
}

export async function say(client: Client, message: string): Promise<string> {
  const result = await client.callTool({ name: "e__echo", arguments: { message } });
  return (result.content as { text: string }[])[0]?.text ?? "";
}

export function command(args: readonly string[], input = "", more: Record<string, string> = {}): Promise<Run> {
  return runProgram(process.execPath, [MAIN, ...args], { cwd: home, env: { ...env, ...more }, input });
}

export async function ask<Answer>(path: string): Promise<Answer> {
  const { url, token } = onlyHub();
  const answer = await fetch(`${url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } });
  return (await answer.json()) as Answer;
}

/** Below those that the system gives out: another test must not get it while the hub restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
