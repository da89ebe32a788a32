/** What is measured: something that offers the tools of echo servers, and how to start it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Endpoint, listTools } from "../client/connect.ts";
import type { McpClient } from "../client/protocol.ts";
import { commandOf, descendantsOf, type Started } from "../processes.ts";

export const ECHO_STDIO = join(import.meta.dirname, "../servers/echo-stdio.mjs");
export const ECHO_HTTP = join(import.meta.dirname, "../servers/echo-http.mjs");

/** The servers behind a subject. */
export interface Load {
  readonly upstream: "stdio" | "http";
  readonly servers: number;
  /** Of each server. */
  readonly tools: number;
  /** One more stdio server, for what a second session does. Relay and Toolcrib only. */
  readonly second?: boolean;
  /** Socket on which the gateway is to say how late its event loop is; see bench/servers/loop-probe.mjs. */
  readonly probe?: string;
}

export type Kind = "floor" | "relay" | "toolcrib" | "other" | "peer";

export interface Subject {
  readonly name: string;
  readonly kind: Kind;
  can(load: Load): boolean;
  /** Only starts it: what it takes until it serves is part of what is measured. `urls` are the HTTP servers of the load. */
  start(load: Load, urls: readonly string[]): Promise<Running>;
}

export interface Running {
  readonly endpoint: Endpoint;
  readonly process: Started | undefined;
  /** Where the second server is reached, if it is not a further tool at the same endpoint, with `second` in its name. */
  readonly second?: Endpoint;
  /** Started beside the main process and not below it, such as a daemon. */
  readonly companions?: () => readonly number[];
  /** Where the probe of the load answers, if it was loaded. */
  readonly probe?: string | undefined;
  stop(): Promise<void>;
}

const RETRY_MS = 4;
const PATIENCE_MS = 60_000;

export interface Ready {
  readonly client: McpClient;
  /** Public names of the tools. */
  readonly tools: readonly string[];
}

/** Connects again and again until all tools of all servers are listed. */
export async function whenComplete(running: Running, load: Load): Promise<Ready> {
  const deadline = performance.now() + PATIENCE_MS;
  let client: McpClient | undefined;
  let seen = "nothing answers";
  while (performance.now() < deadline) {
    if (running.process?.ended === true) throw new Error(`It ended: ${lastLines(running.process.output())}`);
    try {
      client ??= await connect(running.endpoint);
      const tools = (await listTools(client)).filter((name) => name.includes("echo"));
      if (tools.length >= load.servers * load.tools) return { client, tools };
      seen = `${tools.length} tools`;
    } catch (error) {
      seen = error instanceof Error ? error.message : String(error);
      await client?.close().catch(() => {});
      client = undefined;
    }
    await sleep(RETRY_MS);
  }
  throw new Error(
    `Not all tools were listed within ${PATIENCE_MS / 1000} s: ${seen}. ${lastLines(running.process?.output() ?? "")}`,
  );
}

/** The processes that are the gateway: itself and its helpers, not the servers behind it. */
export function gatewayPids(running: Running): number[] {
  const { process: main, companions = () => [] } = running;
  const all = [...(main === undefined ? [] : [main.pid, ...descendantsOf(main.pid)]), ...companions()];
  return all.filter((pid) => pid === main?.pid || !isEcho(commandOf(pid)));
}

function isEcho(command: string): boolean {
  // A shell that runs the server counts as the server: it waits and does nothing.
  return command.includes("echo-stdio.mjs") || command.includes("echo-http.mjs");
}

function lastLines(text: string): string {
  return text.split("\n").slice(-5).join(" | ").slice(-400);
}

/** A folder for one run of a subject, and how to remove it. */
export function scratch(): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-bench-"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** The usual `mcpServers` object for the echo servers of a load: `s0`, `s1`, … */
export function mcpServers(
  { upstream, servers, tools, second }: Load,
  urls: readonly string[],
): Record<string, object> {
  const entry = (index: number): object =>
    upstream === "http"
      ? { url: urls[index] ?? "" }
      : { command: process.execPath, args: [ECHO_STDIO, `--tools=${tools}`] };
  return {
    ...Object.fromEntries(Array.from({ length: servers }, (_, index) => [`s${index}`, entry(index)])),
    ...(second === true ? { second: { command: process.execPath, args: [ECHO_STDIO] } } : {}),
  };
}
