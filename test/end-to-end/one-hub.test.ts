/** One hub for all clients of a home: real processes, real stdio and HTTP clients. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MAIN } from "../support/main-program.ts";
import { type Run, runProgram } from "../support/run-program.ts";
import { isAlive } from "../support/processes.ts";
import { everything } from "../support/servers.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const BRIDGE = join(dirname(MAIN), "bridge", `main${extname(MAIN)}`);
const WITHIN = { timeout: 60_000, interval: 50 };

interface HubFile {
  readonly pid: number;
  readonly url: string;
  readonly token: string;
}

let home: string;
let env: Record<string, string>;
const clients: Client[] = [];
const children: ChildProcess[] = [];
const hubPids = new Set<number>();

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-one-")));
  env = { PATH: process.env["PATH"] ?? "", HOME: home, TOOLCRIB_HOME: home };
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close().catch(() => {})));
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const { pid } of hubs()) hubPids.add(pid);
  for (const pid of hubPids) if (isAlive(pid)) process.kill(pid, "SIGTERM");
  await vi.waitFor(() => expect([...hubPids].filter(isAlive)).toEqual([]), WITHIN);
  hubPids.clear();
  rmSync(home, { recursive: true, force: true });
});

function configure(config: object): void {
  writeFileSync(join(home, "toolcrib.json"), JSON.stringify({ guard: { pins: "off" }, ...config }));
}

function hubs(): HubFile[] {
  const folder = join(home, "hubs");
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const names = isFolder ? readdirSync(folder).filter((name) => /^\d+\.json$/.test(name)) : [];
  return names
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as HubFile)
    .filter(({ pid }) => isAlive(pid));
}

function onlyHub(): HubFile {
  const [hub, ...others] = hubs();
  expect(others).toEqual([]);
  if (hub === undefined) throw new Error("no hub runs");
  hubPids.add(hub.pid);
  return hub;
}

/** The processes that a process has started. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}

async function stdioClient(...args: string[]): Promise<Client> {
  const client = new Client({ name: `client-${clients.length}`, version: "1" });
  clients.push(client);
  const command = {
    command: process.execPath,
    args: [BRIDGE, "mcp", ...args],
    env,
    stderr: "ignore" as const,
    cwd: home,
  };
  await client.connect(new StdioClientTransport(command));
  return client;
}

async function say(client: Client, message: string): Promise<string> {
  const result = await client.callTool({ name: "e__echo", arguments: { message } });
  return (result.content as { text: string }[])[0]?.text ?? "";
}

/** Below those that the system gives out: another test must not get it while the hub restarts. */
async function freePort(): Promise<number> {
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

describe("one hub on a home", () => {
  it("[counter-01a] two stdio clients and an HTTP client share it, and each server is one process", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    const hub = onlyHub();
    const web = new Client({ name: "web", version: "1" });
    clients.push(web);
    await web.connect(new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`)));
    expect(await Promise.all([say(one, "a"), say(two, "b"), say(web, "c")])).toEqual(["Echo: a", "Echo: b", "Echo: c"]);
    expect(childrenOf(hub.pid)).toHaveLength(1);
  });

  it("[counter-04a] each call is attributed to the client that made it", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    await say(one, "a");
    await say(two, "b");
    await say(two, "c");
    const { url, token } = onlyHub();
    const ask = async <Answer>(path: string): Promise<Answer> => {
      const answer = await fetch(`${url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } });
      return (await answer.json()) as Answer;
    };
    const callsOf = async (client: string): Promise<number> => {
      const { entries } = await ask<{ entries: { client?: object }[] }>(`audit?type=call&client=${client}`);
      for (const entry of entries) expect(entry.client).toEqual({ name: client, version: "1" });
      return entries.length;
    };
    await vi.waitFor(
      async () => expect([await callsOf("client-0"), await callsOf("client-1")]).toEqual([1, 2]),
      WITHIN,
    );
    const { sessions } = await ask<{ sessions: { client: { name: string; pid?: number } | null }[] }>("sessions");
    const ours = sessions.flatMap(({ client }) => client ?? []).toSorted((a, b) => a.name.localeCompare(b.name));
    expect(ours).toMatchObject([
      { name: "client-0", version: "1", transport: "stdio", cwd: home },
      { name: "client-1", version: "1", transport: "stdio", cwd: home },
    ]);
    expect(new Set(ours.map(({ pid }) => pid)).size).toBe(2);
  });

  it("[counter-01g] commands run at the hub, and see what its clients see", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, tools: { deny: ["e__get-env"] } });
    await stdioClient();
    const { pid, url, token } = onlyHub();
    await vi.waitFor(() => expect(childrenOf(pid)).toHaveLength(1), WITHIN);
    const run = (args: string[], input = ""): Promise<Run> =>
      runProgram(process.execPath, [MAIN, ...args], { cwd: home, env, input });
    const [listed, called, piped, status, unknown, refused, explained] = await Promise.all([
      run(["list", "--json"]),
      run(["call", "e__echo", "message=hello"]),
      run(["call", "e__echo", "--args", "-", "--json"], '{"message":"ä from stdin"}'),
      run(["status", "--json"]),
      run(["call", "e__nothing"]),
      run(["call", "e__get-env"]),
      run(["policy", "explain", "e__get-env", "--json"]),
    ]);
    expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ name: "e__echo", server: "e" }));
    expect(called).toMatchObject({ code: 0, stdout: "Echo: hello\n" });
    expect(JSON.parse(piped.stdout)).toMatchObject({ content: [{ text: "Echo: ä from stdin" }] });
    expect(JSON.parse(status.stdout)).toMatchObject([{ id: "e", state: "ready" }]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain("e__nothing");
    expect([refused.code, JSON.parse(explained.stdout)]).toMatchObject([3, { decision: { verdict: "deny" } }]);
    // No second process of the server was started, and the hub has the sessions.
    expect(childrenOf(pid)).toHaveLength(1);
    const sessionsOfCommands = async (): Promise<number> => {
      const answer = await fetch(`${url}/api/v1/sessions?state=all&door=cli`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return ((await answer.json()) as { total: number }).total;
    };
    expect(await sessionsOfCommands()).toBe(7);
    const alone = await run(["call", "e__echo", "message=alone", "--standalone"]);
    expect(alone).toMatchObject({ code: 0, stdout: "Echo: alone\n" });
    expect(await sessionsOfCommands()).toBe(7);
    onlyHub();
  });

  it("[counter-01b] twenty that start at the same moment make one hub", async () => {
    configure({ mcpServers: {}, http: { port: 0 } });
    const all = Array.from({ length: 20 }, () => {
      const child = spawn(process.execPath, [BRIDGE, "mcp"], { env, cwd: home, stdio: ["pipe", "pipe", "pipe"] });
      children.push(child);
      let said = "";
      child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
      const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "many", version: "1" } };
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
      return { said: () => said };
    });
    await vi.waitFor(() => expect(all.filter(({ said }) => said().includes('"result"'))).toHaveLength(20), {
      ...WITHIN,
      timeout: 110_000,
    });
    onlyHub();
    expect(readdirSync(join(home, "hubs")).filter((name) => name.endsWith(".log"))).toHaveLength(1);
  });

  it("[counter-01c] killed under load, it comes back for all its clients", async () => {
    const port = await freePort();
    configure({ mcpServers: { e: everything() }, http: { port } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    const first = onlyHub();
    const outcomes: string[] = [];
    const ended = new AbortController();
    const load = [one, two].map(async (client) => {
      while (!ended.signal.aborted) {
        await say(client, "x").then(
          (text) => outcomes.push(text),
          (error: unknown) => outcomes.push(String(error)),
        );
      }
    });
    await vi.waitFor(() => expect(outcomes.length).toBeGreaterThan(50), WITHIN);
    process.kill(first.pid, "SIGKILL");
    await vi.waitFor(() => expect(hubs().map(({ pid }) => pid)).not.toEqual([]), WITHIN);
    const before = outcomes.length;
    await vi.waitFor(() => expect(outcomes.length).toBeGreaterThan(before + 50), WITHIN);
    ended.abort();
    await Promise.all(load);
    const failed = outcomes.filter((text) => text !== "Echo: x");
    const interrupted = failed.filter((text) => text.includes("may have run"));
    // Each client had one call in progress. On a busy machine the next hub answers before its server has started.
    expect(interrupted.length).toBeLessThanOrEqual(2);
    expect(failed.filter((text) => !/may have run|connect|no tool/i.test(text))).toEqual([]);
    expect(await Promise.all([say(one, "a"), say(two, "b")])).toEqual(["Echo: a", "Echo: b"]);
    const web = new Client({ name: "web", version: "1" });
    clients.push(web);
    await web.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
    expect(await say(web, "c")).toBe("Echo: c");
    expect(onlyHub().pid).not.toBe(first.pid);
  });

  it("[counter-01d] it ends by itself when its last client has left, and leaves no process behind", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, hub: { idleMinutes: 0.02 } });
    const client = await stdioClient();
    const { pid } = onlyHub();
    await vi.waitFor(() => expect(childrenOf(pid)).toHaveLength(1), WITHIN);
    const started = [pid, ...childrenOf(pid)];
    // It does not end while a client is there.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(await say(client, "still")).toBe("Echo: still");
    await client.close();
    await vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), WITHIN);
    expect(hubs()).toEqual([]);
  });

  it("[counter-01e] where no hub can be shared, a client gets its own and a warning", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    // In the place of the folder: nothing can be written there.
    writeFileSync(join(home, "hubs"), "");
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [BRIDGE, "mcp"],
      env,
      cwd: home,
      stderr: "pipe",
    });
    let said = "";
    transport.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const client = new Client({ name: "alone", version: "1" });
    clients.push(client);
    await client.connect(transport);
    expect(await say(client, "alone")).toBe("Echo: alone");
    expect(said).toContain("a hub of its own");
  });

  it("[counter-01f] a project's config has a hub of its own, and so has a named one", async () => {
    configure({ mcpServers: {}, http: { port: 0 } });
    const other = join(home, "..", `${home.split("/").at(-1)}-named.json`);
    writeFileSync(
      other,
      JSON.stringify({ mcpServers: { e: everything() }, http: { port: 0 }, guard: { pins: "off" } }),
    );
    try {
      await stdioClient();
      const named = await stdioClient("--config", other);
      expect(await say(named, "n")).toBe("Echo: n");
      expect(hubs()).toHaveLength(2);
    } finally {
      rmSync(other);
    }
  });

  it("[counter-03a] with http.auth a stdio client has not the owner's rights, and --role narrows it", async () => {
    mkdirSync(join(home, "files"));
    configure({
      mcpServers: { e: everything() },
      http: { port: 0, auth: { tokens: [{ token: "a-token-of-sixteen-characters" }] } },
      roles: { quiet: { tools: { deny: ["e__*"] } } },
    });
    const [plain, quiet] = await Promise.all([stdioClient(), stdioClient("--role", "quiet")]);
    expect(await say(plain, "x")).toBe("Echo: x");
    expect((await quiet.listTools()).tools.filter(({ name }) => name.startsWith("e__"))).toEqual([]);
    const { url, token } = onlyHub();
    const answer = await fetch(`${url}/api/v1/sessions`, { headers: { authorization: `Bearer ${token}` } });
    const { sessions } = (await answer.json()) as {
      sessions: { door: string; role: string | null; owner: boolean }[];
    };
    const ours = sessions.filter(({ door }) => door === "mcp");
    expect(ours.map(({ role }) => role)).toEqual(expect.arrayContaining([null, "quiet"]));
    expect(ours.map(({ owner }) => owner)).toEqual([false, false]);
  });
});
